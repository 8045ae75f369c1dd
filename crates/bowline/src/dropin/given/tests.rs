//! What command line and environment make of the table of flags.

use super::super::flags::{AGENT, PRINCIPAL};
use super::*;

fn read(table: &'static [Flag], args: &[&str], env: &[(&str, &str)]) -> Result<Given, Error> {
    let args: Vec<String> = args.iter().map(|a| (*a).to_owned()).collect();
    let env = |name: &str| env.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
    Given::read(table, &args, env)
}

#[test]
fn the_command_line_beats_the_environment_which_beats_the_default() {
    let env = [("ARGOCD_PRINCIPAL_LISTEN_PORT", "9000"), ("ARGOCD_PRINCIPAL_NAMESPACE", "env")];
    let given = read(PRINCIPAL, &["-n", "line"], &env).unwrap();
    assert_eq!(given.port("listen-port"), Ok(Some(9000)));
    assert_eq!(given.text("namespace"), "line");
    assert_eq!(given.port("metrics-port"), Ok(Some(8000)));
    for args in [&["-nline"][..], &["-n=line"], &["--namespace=line"], &["--namespace", "line"]] {
        assert_eq!(read(PRINCIPAL, args, &env).unwrap().text("namespace"), "line", "{args:?}");
    }
}

#[test]
fn lists_take_commas_and_repetition_and_replace_the_environment() {
    let env = [("ARGOCD_PRINCIPAL_ALLOWED_NAMESPACES", "a, b")];
    let list = |args: &[&str]| read(PRINCIPAL, args, &env).unwrap().list("allowed-namespaces");
    assert_eq!(list(&[]), ["a", "b"]);
    let line = ["--allowed-namespaces", "c,d", "--allowed-namespaces=e"];
    assert_eq!(list(&line), ["c", "d", "e"]);
}

#[test]
fn switches_need_an_equals_sign_to_be_off() {
    let on = |args: &[&str]| read(AGENT, args, &[]).unwrap().is_on("enable-resource-proxy");
    assert!(on(&[]));
    assert!(!on(&["--enable-resource-proxy=false"]));
    assert!(!on(&["--enable-resource-proxy=F"]));
    let stray = read(AGENT, &["--enable-resource-proxy", "false"], &[]).unwrap_err();
    assert_eq!(stray, Error::Stray("false".into()));
}

#[test]
fn what_is_unknown_is_refused_with_the_nearest_name() {
    let near = |arg: &str| read(AGENT, &[arg], &[]).unwrap_err().to_string();
    let told = near("--server-adress=x");
    assert_eq!(told, "there is no flag --server-adress: is --server-address meant?");
    assert_eq!(near("--zzz"), "there is no flag --zzz");
    assert_eq!(near("-x"), "there is no flag -x");
    assert_eq!(near("--"), "there is no flag --");
    assert_eq!(near("--kubeconfig"), "--kubeconfig needs a value");
    assert_eq!(near("--server-port=x"), "--server-port: \"x\" is not a whole number");
    assert_eq!(
        near("--heartbeat-interval=3"),
        "--heartbeat-interval: \"3\" is not a duration such as 1m30s"
    );
    assert_eq!(read(AGENT, &["--help"], &[]).unwrap_err(), Error::Help);
}

#[test]
fn a_variable_that_is_no_value_is_left_alone_as_go_does() {
    let env = [("ARGOCD_AGENT_METRICS_PORT", "many"), ("ARGOCD_AGENT_TLS_INSECURE", "")];
    let given = read(AGENT, &[], &env).unwrap();
    assert_eq!(given.port("metrics-port"), Ok(Some(8181)));
    assert!(!given.is_on("insecure-tls"));
    assert_eq!(given.warnings.len(), 1, "{:?}", given.warnings);
    assert!(given.warnings[0].contains("ARGOCD_AGENT_METRICS_PORT"));
}

#[test]
fn what_has_no_effect_is_named_if_it_asks_for_something() {
    let named = |args: &[&str], env: &[(&str, &str)]| {
        let given = read(PRINCIPAL, args, env).unwrap();
        given.without_effect().into_iter().map(|n| n.flag).collect::<Vec<_>>()
    };
    let off = ["--enable-resource-proxy=false", "--disable-redis-proxy"];
    assert_eq!(named(&[], &[]), ["--enable-resource-proxy", "--disable-redis-proxy"]);
    assert!(named(&off, &[]).is_empty());
    let more = |arg| [off[0], off[1], arg];
    assert_eq!(named(&more("--event-processors=20"), &[]), ["--event-processors"]);
    assert!(named(&more("--event-processors=10"), &[]).is_empty(), "that is the default");
    assert!(named(&more("--ha-failover-timeout=0.5m"), &[]).is_empty(), "so is that");
    assert!(named(&more("--tls-ciphersuites="), &[]).is_empty());
    let env = [("ARGOCD_AGENT_KUBE_QPS", "50"), ("ARGOCD_PRINCIPAL_PPROF_PORT", "0")];
    assert_eq!(named(&off, &env), ["ARGOCD_AGENT_KUBE_QPS"]);
}

#[test]
fn the_tables_hold_together() {
    for table in [PRINCIPAL, AGENT] {
        for (index, flag) in table.iter().enumerate() {
            check(flag, flag.default).unwrap();
            assert!(!flag.name.is_empty() || !flag.env.is_empty());
            let twin = |f: &Flag| !flag.name.is_empty() && f.name == flag.name;
            assert!(!table[index + 1..].iter().any(twin), "{} is there twice", flag.name);
            let twin = |f: &Flag| !flag.env.is_empty() && f.env == flag.env;
            assert!(!table[index + 1..].iter().any(twin), "{} is there twice", flag.env);
            let (Effect::Same(words) | Effect::Nothing(words) | Effect::Missing { why: words, .. }) =
                flag.effect;
            assert!(words.len() > 5, "{} is not explained", flag.title());
        }
    }
}
