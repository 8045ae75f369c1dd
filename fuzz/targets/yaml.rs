//! YAML from a person: manifests, configuration, contexts. All are read as one value first; a value
//! that makes an object is an object in our own YAML too.

#![no_main]

use bowline_fuzz::seed;
use bowline_resources::{Object, yaml};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(init: seed(seeds()), |data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(value) = serde_saphyr::from_str::<Value>(text) else { return };
    let Ok(object) = Object::from_value(value) else { return };
    let again = serde_saphyr::from_str::<Value>(&yaml(&object.to_value()));
    let again = Object::from_value(again.expect("our own YAML")).expect("our own object");
    assert_eq!(again, object);
});

fn seeds() -> Vec<String> {
    let hello = include_str!("../../examples/hello.yaml");
    let mut seeds: Vec<_> = hello.split("\n---\n").map(str::to_owned).collect();
    seeds.push("listen: 127.0.0.1:0\nlabels: {site: a, \"on\": \"yes\"}\nprofile: edge\n".into());
    seeds.push("a: &x [1, ~, .inf, 0x1f, 2026-11-16]\nb: *x\nc: |-\n  text\n".into());
    seeds
}
