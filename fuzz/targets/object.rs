//! An object as JSON, and a merge patch of it: what is valid stays valid on the way there and back.

#![no_main]

use bowline_fuzz::seed;
use bowline_resources::{Object, diff_text, merge_patch, yaml};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(init: seed([CONFIG_MAP, SECRET, PATCH]), |data: &[u8]| {
    // One value is an object; a second one is a patch of it.
    let mut values = serde_json::Deserializer::from_slice(data).into_iter::<Value>();
    let Some(Ok(mut value)) = values.next() else { return };
    let Ok(object) = Object::from_value(value.clone()) else { return };
    assert_eq!(Object::from_value(object.to_value()).as_ref(), Ok(&object));
    assert!(object.same_intent(&object.intended()));
    let shown = object.redacted();
    assert_eq!(shown.key(), object.key());
    let _text = yaml(&shown.to_value());
    let Some(Ok(patch)) = values.next() else { return };
    merge_patch(&mut value, &patch);
    let once = value.clone();
    merge_patch(&mut value, &patch);
    assert_eq!(value, once, "a patch applied twice is a patch applied once");
    if let Ok(patched) = Object::from_value(value) {
        let _text = diff_text(Some(&object), Some(&patched));
    }
});

const CONFIG_MAP: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a",
"namespace":"n","labels":{"app":"x"},"finalizers":["f.x/y"]},"data":{"k":"v"},"spec":{"n":1}}"#;
const SECRET: &str =
    r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"k":"c2VjcmV0"}}"#;
const PATCH: &str = r#"{"apiVersion":"a.io/v1","kind":"App","metadata":{"name":"a"},"spec":{"a":{}}}
{"spec":{"a":null,"b":[1]},"status":{"health":"Healthy"}}"#;
