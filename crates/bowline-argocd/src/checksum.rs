//! The two checksums of a resync: over what there is, and over what one object wants.

use aws_lc_rs::digest::{SHA256, digest};
use bowline_resources::Object;
use serde_json::{Map, Value};

use crate::{Resource, go_json};

/// A SHA-256.
pub type Sum = [u8; 32];

/// Why an object has no spec checksum; a Go peer refuses it for the same reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It lacks the field that is summed.
    #[error("{resource} {name} has no `{field}`")]
    Missing {
        /// What it is.
        resource: Resource,
        /// Its name.
        name: String,
        /// The field that should be there.
        field: &'static str,
    },
    /// The field is not a mapping.
    #[error("`{field}` of {resource} {name} is not a mapping")]
    NotAMap {
        /// What it is.
        resource: Resource,
        /// Its name.
        name: String,
        /// The field.
        field: &'static str,
    },
}

/// The checksum over all that one end holds: kind, name and uid of the source of each. Namespaces
/// do not count, since they differ between the ends. None if it holds nothing.
pub fn key_checksum<'a>(
    keys: impl IntoIterator<Item = (Resource, &'a str, &'a str)>,
) -> Option<Sum> {
    let mut texts: Vec<String> =
        keys.into_iter().map(|(resource, name, uid)| format!("{resource}/{name}/{uid}")).collect();
    if texts.is_empty() {
        return None;
    }
    texts.sort_unstable();
    Some(sha256(texts.concat().as_bytes()))
}

/// The checksum over what an object wants: its `spec` without the destination, which is rewritten
/// on the way; of Secrets and ConfigMaps the `data`.
pub fn spec_checksum(resource: Resource, object: &Object) -> Result<Sum, Error> {
    let (field, body) = match resource {
        Resource::Application | Resource::AppProject => ("spec", object.spec.as_ref()),
        Resource::Repository | Resource::GpgKey => ("data", object.rest.get("data")),
    };
    let name = || object.metadata.name.clone();
    match body {
        Some(Value::Object(fields)) => Ok(sum_of(fields)),
        Some(_) => Err(Error::NotAMap { resource, name: name(), field }),
        None if resource == Resource::GpgKey => Ok(sum_of(&Map::new())),
        None => Err(Error::Missing { resource, name: name(), field }),
    }
}

fn sum_of(fields: &Map<String, Value>) -> Sum {
    let kept = fields.iter().filter(|(key, _)| *key != "destination");
    let kept: Map<_, _> = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
    sha256(go_json(&Value::Object(kept)).as_bytes())
}

fn sha256(bytes: &[u8]) -> Sum {
    let mut sum = [0; 32];
    sum.copy_from_slice(digest(&SHA256, bytes).as_ref());
    sum
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Object {
        let mut whole = json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "web"}});
        for (key, part) in value.as_object().unwrap() {
            whole[key] = part.clone();
        }
        Object::from_value(whole).unwrap()
    }

    #[test]
    fn the_key_checksum_is_that_of_the_sorted_names() {
        use Resource::{AppProject, Application, GpgKey};
        let sum =
            key_checksum([(Application, "b", "2"), (GpgKey, "k", "3"), (AppProject, "a", "1")]);
        let text = b"AppProject/a/1Application/b/2GPGKey/k/3";
        assert_eq!(sum, Some(sha256(text)));
        assert_eq!(key_checksum([]), None);
        // Known from elsewhere: SHA-256 of "Application/web/u1".
        let one = key_checksum([(Application, "web", "u1")]).unwrap();
        let hex: String = one.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, "76dfee75e1622c011ff0a6a471eb4d92c050ba39f542ccff7ee4c507ecfa6e4c");
    }

    #[test]
    fn the_destination_does_not_count() {
        let spec = |text: &str| {
            let spec = serde_json::from_str::<Value>(text).unwrap();
            spec_checksum(Resource::Application, &object(json!({"spec": spec}))).unwrap()
        };
        let sum = sha256(br#"{"a":{"destination":1},"project":"p"}"#);
        assert_eq!(spec(r#"{"project":"p","a":{"destination":1}}"#), sum, "only at the top");
        assert_eq!(
            spec(r#"{"project":"p","destination":{"name":"x"},"a":{"destination":1}}"#),
            sum
        );
    }

    #[test]
    fn secrets_and_config_maps_are_summed_by_their_data() {
        let data = object(json!({"data": {"destination": "x", "k": "dg=="}, "spec": {"no": 1}}));
        let sum = sha256(br#"{"k":"dg=="}"#);
        assert_eq!(spec_checksum(Resource::Repository, &data), Ok(sum));
        assert_eq!(spec_checksum(Resource::GpgKey, &data), Ok(sum));
        let bare = object(json!({}));
        assert_eq!(spec_checksum(Resource::GpgKey, &bare), Ok(sha256(b"{}")));
        let missing = spec_checksum(Resource::Repository, &bare).unwrap_err();
        assert_eq!(missing.to_string(), "Repository web has no `data`");
        let list = object(json!({"spec": []}));
        let error = spec_checksum(Resource::Application, &list).unwrap_err();
        assert_eq!(error.to_string(), "`spec` of Application web is not a mapping");
    }
}
