//! What Go says: the bytes of its JSON and the text of its certificate subjects, over values made
//! by a generator. `vectors/README.md` says how they came to be.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_argocd::auth::{Certificate, Pattern};
use bowline_argocd::{Resource, checksum, go_json};
use bowline_resources::Object;
use serde_json::{Value, json};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn json_has_the_bytes_that_go_writes() {
    let vectors = include_str!("vectors/json.tsv");
    let mut count = 0;
    for line in vectors.lines() {
        let (sum, text) = line.split_once('\t').unwrap();
        let written = go_json(&serde_json::from_str(text).unwrap());
        assert_eq!(hex(digest(&SHA256, written.as_bytes()).as_ref()), sum, "{text}\n{written}");
        count += 1;
    }
    assert!(count > 500, "only {count}");
}

#[test]
fn spec_checksums_are_those_that_go_makes() {
    let vectors = include_str!("vectors/spec.tsv");
    let mut count = 0;
    for line in vectors.lines() {
        let (sum, text) = line.split_once('\t').unwrap();
        let spec: Value = serde_json::from_str(text).unwrap();
        let whole = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "web"}, "spec": spec,
        });
        let object = Object::from_value(whole).unwrap();
        let made = checksum::spec_checksum(Resource::Application, &object).unwrap();
        assert_eq!(hex(&made), sum, "{text}");
        count += 1;
    }
    assert!(count >= 50, "only {count}");
}

#[test]
fn subjects_have_the_text_that_go_gives_them() {
    let vectors = include_str!("vectors/subjects.tsv");
    let mut count = 0;
    for line in vectors.lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let [der, subject, uris, fingerprint] = cells[..] else { panic!("{line}") };
        let certificate = Certificate::from_der(&STANDARD.decode(der).unwrap()).unwrap();
        let subject: String = serde_json::from_str(subject).unwrap();
        assert_eq!(certificate.subject, subject);
        assert_eq!(json!(certificate.uris).to_string(), uris);
        assert_eq!(certificate.fingerprint, fingerprint);
        count += 1;
    }
    assert!(count >= 30, "only {count}");
}

#[test]
fn patterns_find_what_they_find_in_go() {
    let vectors = include_str!("vectors/patterns.tsv");
    let mut count = 0;
    for line in vectors.lines() {
        let cells: Vec<Value> =
            line.split('\t').map(|cell| serde_json::from_str(cell).unwrap()).collect();
        let (pattern, text) = (cells[0].as_str().unwrap(), cells[1].as_str().unwrap());
        let compiled: Pattern = pattern.parse().unwrap_or_else(|e| panic!("{pattern}: {e:?}"));
        assert_eq!(compiled.group(text), cells[2].as_str(), "{pattern} in {text:?}");
        count += 1;
    }
    assert!(count > 400, "only {count}");
}
