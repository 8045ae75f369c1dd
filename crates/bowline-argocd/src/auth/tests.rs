//! Methods, patterns, certificates and secrets.

use std::path::Path;

use super::*;

fn method(text: &str) -> Method {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn problem(text: &str) -> String {
    text.parse::<Method>().unwrap_err().to_string()
}

#[test]
fn methods_are_read_as_upstream_writes_them() {
    let Method::Mtls { part, pattern } = method("mtls:subject:CN=([^,]+)") else { panic!() };
    assert_eq!(part, Part::Subject);
    assert_eq!(pattern.name_in("CN=agent-a,O=x").as_deref(), Ok("agent-a"));
    let Method::Mtls { part, pattern } = method("mtls:uri:spiffe://x/ns/y/sa/(.+)") else {
        panic!()
    };
    assert_eq!(part, Part::Uri);
    assert_eq!(pattern.name_in("spiffe://x/ns/y/sa/a1").as_deref(), Ok("a1"), "colons are its own");
    let Method::Mtls { part, .. } = method("mtls:CN=(.+)") else { panic!() };
    assert_eq!(part, Part::SubjectUnsaid);
    let Method::Mtls { part, pattern } = method("mtls:urn:(.+)") else { panic!() };
    assert_eq!(part, Part::SubjectUnsaid, "only subject: and uri: are parts");
    assert_eq!(pattern.name_in("urn:a").as_deref(), Ok("a"));
    let Method::UserPass { file } = method("userpass:/etc/users:1") else { panic!() };
    assert_eq!(file, Path::new("/etc/users:1"));
    let Method::Header { name, pattern } = method("header: X-Client : ^URI=a:b/(.+)$ ") else {
        panic!()
    };
    assert_eq!(name, "x-client");
    assert_eq!(pattern.name_in("URI=a:b/a1").as_deref(), Ok("a1"));
    let names = ["mtls:(.+)", "userpass:f", "header:h:(.+)"].map(|text| method(text).name());
    assert_eq!(names, METHODS);
}

#[test]
fn what_is_wrong_with_a_method_is_said_with_how_to_write_it() {
    for text in ["", "ldap:x", "MTLS:(.+)", "subject:(.+)"] {
        assert!(problem(text).contains("write mtls:subject:REGEX"), "{text}: {}", problem(text));
    }
    for (text, form) in [
        ("mtls", "mtls:uri:REGEX"),
        ("mtls:", "mtls:uri:REGEX"),
        ("mtls:subject:", "mtls:subject:REGEX"),
        ("userpass", "userpass:FILE"),
        ("userpass:", "userpass:FILE"),
        ("header", "header:NAME:REGEX"),
        ("header:x-a", "header:NAME:REGEX"),
        ("header::(.+)", "header:NAME:REGEX"),
    ] {
        assert!(problem(text).contains(form), "{text}: {}", problem(text));
    }
    let source = |text: &str| match text.parse::<Method>() {
        Err(Error::Pattern { source, .. }) => source.to_string(),
        other => panic!("{text}: {other:?}"),
    };
    assert!(source("mtls:subject:CN=.+").contains("put parentheses"));
    assert!(source("mtls:subject:CN=(").contains("not a regular expression"));
    assert!(source("header:h:(a{9999}{9999})").contains("not a regular expression"), "too large");
}

#[test]
fn a_method_must_suit_the_line() {
    let [mtls, users, header] = ["mtls:(.+)", "userpass:f", "header:h:(.+)"].map(method);
    assert!(mtls.check_line(Line::Tls).is_ok() && header.check_line(Line::Plaintext).is_ok());
    assert!(users.check_line(Line::Tls).is_ok() && users.check_line(Line::Plaintext).is_ok());
    let error = mtls.check_line(Line::Plaintext).unwrap_err().to_string();
    assert!(error.contains("remove --insecure-plaintext"), "{error}");
    let error = header.check_line(Line::Tls).unwrap_err().to_string();
    assert!(error.contains("add --insecure-plaintext"), "{error}");
}

#[test]
fn creds_are_read_as_upstream_writes_them() {
    let creds = |text: &str| text.parse::<Creds>().unwrap();
    assert_eq!(creds("mtls:any"), Creds::Mtls);
    assert_eq!(creds("header:"), Creds::Header);
    assert_eq!(creds("userpass:/a:b"), Creds::UserPass { file: "/a:b".into() });
    assert_eq!(creds("userpass:f").method(), "userpass");
    for text in ["", "userpass", "userpass:", "token:x"] {
        assert!(text.parse::<Creds>().is_err(), "{text}");
    }
}

#[test]
fn patterns_mean_what_they_mean_to_go() {
    let group = |pattern: &str, text: &str| {
        pattern.parse::<Pattern>().unwrap().group(text).map(ToOwned::to_owned)
    };
    assert_eq!(group(r"CN=(\w+)", "CN=a\u{e9}b").as_deref(), Some("a"), "ASCII");
    assert_eq!(group(r"\Qa.b(\E(.)", "a.b(c").as_deref(), Some("c"), "quoted");
    assert_eq!(group(r"(\<)", "a<").as_deref(), Some("<"), "a mark, not the start of a word");
    assert_eq!(group("([a&&b]+)", "&a").as_deref(), Some("&a"), "no operators in classes");
    assert_eq!(group("(a{,2})", "aa a{,2}").as_deref(), Some("a{,2}"), "a brace without a count");
}

#[test]
fn no_pattern_is_too_strange() {
    let pieces =
        ["\\", "[", "]", "{", "}", "(", ")", ":", "[:", ":]", "^", "Q", "E", "p", "\u{e9}", "1"];
    let mut rng = crate::rng::Rng(5);
    let mut read = 0;
    for _ in 0..20_000 {
        let text: String = (0..rng.below(9)).map(|_| rng.pick(&pieces)).collect();
        if let Ok(pattern) = text.parse::<Pattern>() {
            let _ = pattern.name_in("Q[1]\u{e9}");
            read += 1;
        }
    }
    assert!(read > 100, "only {read} were patterns");
}

#[test]
fn names_are_labels_and_nothing_else() {
    let pattern: Pattern = "CN=(.*?)(,|$)".parse().unwrap();
    for name in ["a", "a1", "a-b", "0"] {
        assert_eq!(pattern.name_in(&format!("CN={name},O=x")).as_deref(), Ok(name));
    }
    let long = "a".repeat(64);
    for name in ["", "-a", "a-", "A", "a.b", "a_b", "a/b", "\u{e9}", &long] {
        let given = format!("CN={name},O=x");
        assert_eq!(pattern.name_in(&given), Err(NameError::NoLabel(name.into())), "{name}");
    }
    assert_eq!(pattern.name_in("O=x"), Err(NameError::NoMatch("O=x".into())));
    // A group that took no part is an empty name, not a match of something else.
    let optional: Pattern = "a(b)?".parse().unwrap();
    assert_eq!(optional.name_in("a"), Err(NameError::NoLabel(String::new())));
}

#[test]
fn the_first_uri_that_matches_names_the_agent() {
    let pattern: Pattern = "^spiffe://x/(.+)$".parse().unwrap();
    let uris = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    let all = uris(&["https://x/b", "spiffe://x/a1", "spiffe://x/a2"]);
    assert_eq!(pattern.name_in_any(&all).as_deref(), Ok("a1"));
    assert_eq!(pattern.name_in_any(&[]), Err(NameError::NoUri));
    let none = uris(&["https://x/b"]);
    assert_eq!(pattern.name_in_any(&none), Err(NameError::NoUriMatches(none.clone())));
    let bad = uris(&["spiffe://x/A", "spiffe://x/a"]);
    assert_eq!(pattern.name_in_any(&bad), Err(NameError::NoLabel("A".into())), "no second chance");
}

#[test]
fn some_proved_names_are_refused() {
    assert_eq!(check_name("a1", "argocd", None), Ok(()));
    assert_eq!(check_name("a1", "argocd", Some("a1")), Ok(()));
    assert_eq!(check_name("argocd", "argocd", None), Err(NameError::Principal("argocd".into())));
    assert!(matches!(check_name("a1", "argocd", Some("a2")), Err(NameError::CommonName { .. })));
    assert!(matches!(check_name("A", "argocd", None), Err(NameError::NoLabel(_))));
}

/// One subject that a certificate of ours has, with what the facts say of its text; `tests/vectors`
/// has what Go says of stranger ones.
#[test]
fn a_certificate_names_its_holder() {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::OrganizationName, "Fleet, Inc.");
    params.distinguished_name.push(rcgen::DnType::CommonName, "agent-a");
    let uri = "spiffe://x/ns/argocd/sa/agent-b".try_into().unwrap();
    params.subject_alt_names = vec![rcgen::SanType::URI(uri)];
    let der = params.self_signed(&key).unwrap().der().to_vec();
    let certificate = Certificate::from_der(&der).unwrap();
    assert_eq!(certificate.subject, "CN=agent-a,O=Fleet\\, Inc.");
    assert_eq!(certificate.common_name, "agent-a");
    assert_eq!(certificate.fingerprint.len(), 64);
    assert!(certificate.fingerprint.bytes().all(|c| b"0123456789ABCDEF".contains(&c)));
    let subject: Pattern = "CN=([^,]+)".parse().unwrap();
    assert_eq!(certificate.agent(Part::Subject, &subject).as_deref(), Ok("agent-a"));
    let uri: Pattern = "/sa/(.+)$".parse().unwrap();
    assert_eq!(certificate.agent(Part::Uri, &uri).as_deref(), Ok("agent-b"));
    for cut in [0, 1, der.len() / 2, der.len() - 1] {
        assert_eq!(Certificate::from_der(&der[..cut]), Err(BadCertificate));
    }
}

#[test]
fn secrets_are_checked_against_bcrypt() {
    // A vector of the reference implementation.
    let file = "# fleet\n// more\n\n a1:$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW \n\
                b:$2y$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW\n";
    let (users, skipped) = Users::parse(file);
    assert_eq!((users.len(), skipped), (2, vec![]));
    assert!(users.check("a1", "U*U") && users.check("b", "U*U"));
    assert!(!users.check("a1", "U*V") && !users.check("a1", ""));
    assert!(!users.check("c", "U*U"), "nobody of that name");
    assert_eq!(format!("{users:?}"), "Users([\"a1\", \"b\"])", "no hash in a log");
}

#[test]
fn guessing_names_costs_a_real_comparison() {
    let (nobody, _) = Users::parse("");
    assert!(nobody.is_empty());
    let hash = users::NOBODY;
    assert_eq!(bcrypt::verify("x", hash).ok(), Some(false), "it is a hash, of something else");
    assert!(hash.starts_with("$2b$10$"), "as dear as the ones people make");
}

#[test]
fn bad_lines_are_skipped_and_named() {
    let hash = "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW";
    let file =
        format!("nonsense\nUPPER:{hash}\na:secret\nb:{hash}\nb:{hash}\nc:$3a{}\n", &hash[3..]);
    let (users, skipped) = Users::parse(&file);
    assert_eq!(users.len(), 1);
    let lines: Vec<_> = skipped.iter().map(|s| s.line).collect();
    assert_eq!(lines, [1, 2, 3, 5, 6]);
    assert_eq!(skipped[0].to_string(), "line 1: not name:hash");
    assert!(skipped[3].problem.contains("second time"));
    assert!(!skipped[2].to_string().contains("secret"), "a secret in the wrong file stays unsaid");
}

#[test]
fn a_login_is_the_first_line() {
    let login = Login::parse("a1: s:e:c \r\nmore").unwrap();
    assert_eq!((login.name.as_str(), login.secret.as_str()), ("a1", " s:e:c "));
    let credentials = login.credentials();
    assert_eq!(credentials["clientid"], "a1");
    assert_eq!(credentials["clientsecret"], " s:e:c ");
    assert_eq!(format!("{login:?}"), "Login(\"a1\", ..)");
    for text in ["", "\n", "a1\n", "a1\nb:c"] {
        assert_eq!(Login::parse(text), Err(BadLogin));
    }
}
