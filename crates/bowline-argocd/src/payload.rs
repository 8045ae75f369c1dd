//! What events carry, as JSON: objects, and the small messages of resync and reports.

use bowline_resources::Object;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Place, Resource};

/// Why a payload cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not the JSON that was expected.
    #[error("the payload is not the JSON of {what}")]
    Json {
        /// What was expected.
        what: &'static str,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// JSON, but not of an object of this kind.
    #[error("the payload is not a usable {resource}")]
    Object {
        /// The kind that was expected.
        resource: Resource,
        /// Which field, and what to do.
        #[source]
        source: bowline_resources::Error,
    },
}

/// `request-synced-resource-list`: what a peer holds, in one number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestSyncedResourceList {
    /// The key checksum; none for a peer that holds nothing.
    #[serde(with = "blob", default)]
    pub checksum: Option<Vec<u8>>,
}

/// `response-synced-resource`: one thing that the source has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncedResource {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its namespace at the source.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its uid at the source.
    #[serde(default)]
    pub uid: String,
    /// Its kind, as the dialect calls it.
    #[serde(default)]
    pub kind: String,
}

/// `request-update`: a peer's word on one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestUpdate {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its namespace at the peer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The uid of its source; empty if the peer does not have it.
    #[serde(default)]
    pub uid: String,
    /// Its kind, as the dialect calls it.
    #[serde(default)]
    pub kind: String,
    /// The spec checksum; none if the peer does not have it.
    #[serde(with = "blob", default)]
    pub checksum: Option<Vec<u8>>,
}

/// `request-resource-resync`: the source wants a word on everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestResourceResync {}

/// `error`: what an agent could not do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorReport {
    /// The name of the object.
    #[serde(default)]
    pub resource_name: String,
    /// Its namespace.
    #[serde(default)]
    pub resource_namespace: String,
    /// What went wrong, for people.
    #[serde(default)]
    pub message: String,
}

/// `cluster-cache-info-update`: counts for the list of clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterCacheInfo {
    /// Applications in the cluster.
    #[serde(default)]
    pub applications_count: i64,
    /// APIs that the cluster serves.
    #[serde(default)]
    pub apis_count: i64,
    /// Resources that the cache watches.
    #[serde(default)]
    pub resources_count: i64,
}

/// A message as bytes.
pub fn encode<T: Serialize>(message: &T) -> Bytes {
    serde_json::to_vec(message).expect("plain data with text keys always encodes").into()
}

/// A message out of bytes; `what` names it in the error.
pub fn decode<T: DeserializeOwned>(bytes: &[u8], what: &'static str) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(|source| Error::Json { what, source })
}

/// An object out of bytes. Typed JSON of Go has no apiVersion and kind, and nulls where metadata
/// has nothing: both are put right.
pub fn object(resource: Resource, bytes: &[u8]) -> Result<Object, Error> {
    let mut value: Value = decode(bytes, resource.name())?;
    if let Value::Object(fields) = &mut value {
        let (api_version, kind) = resource.type_of();
        fields.insert("apiVersion".into(), api_version.into());
        fields.insert("kind".into(), kind.into());
        if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
            metadata.retain(|_, v| !v.is_null());
        }
    }
    Object::from_value(value).map_err(|source| Error::Object { resource, source })
}

/// What a delete event carries when the object itself is gone: its names.
pub fn gravestone(place: &Place, uid: &str) -> Object {
    let (api_version, kind) = place.resource.type_of();
    let mut object =
        Object { api_version: api_version.into(), kind: kind.into(), ..Object::default() };
    object.metadata.name.clone_from(&place.name);
    object.metadata.namespace =
        Some(place.namespace.clone()).filter(|namespace| !namespace.is_empty());
    object.metadata.uid = Some(uid.to_owned()).filter(|uid| !uid.is_empty());
    object
}

/// Bytes as Go has them in JSON: base64 with padding, null for none.
mod blob {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(super) fn serialize<S: Serializer>(
        bytes: &Option<Vec<u8>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        bytes.as_ref().map(|bytes| STANDARD.encode(bytes)).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<u8>>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        let bytes = text.map(|text| STANDARD.decode(text)).transpose();
        bytes.map_err(|error| D::Error::custom(format!("not base64: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json<T: Serialize>(message: &T) -> String {
        String::from_utf8(encode(message).to_vec()).unwrap()
    }

    #[test]
    fn messages_are_written_as_go_writes_them() {
        let list = |checksum| json(&RequestSyncedResourceList { checksum });
        assert_eq!(list(None), r#"{"checksum":null}"#);
        assert_eq!(list(Some(vec![])), r#"{"checksum":""}"#);
        assert_eq!(list(Some(vec![1, 2, 255])), r#"{"checksum":"AQL/"}"#);
        let synced = SyncedResource {
            name: "web".into(),
            namespace: String::new(),
            uid: "u".into(),
            kind: "Application".into(),
        };
        assert_eq!(json(&synced), r#"{"name":"web","uid":"u","kind":"Application"}"#);
        let update = RequestUpdate {
            name: "web".into(),
            namespace: "a1".into(),
            uid: String::new(),
            kind: "GPGKey".into(),
            checksum: None,
        };
        let text = r#"{"name":"web","namespace":"a1","uid":"","kind":"GPGKey","checksum":null}"#;
        assert_eq!(json(&update), text);
        assert_eq!(json(&RequestResourceResync {}), "{}");
        let info = ClusterCacheInfo { applications_count: 1, apis_count: 2, resources_count: 3 };
        assert_eq!(json(&info), r#"{"applicationsCount":1,"apisCount":2,"resourcesCount":3}"#);
        let error = ErrorReport {
            resource_name: "n".into(),
            resource_namespace: "s".into(),
            message: "m".into(),
        };
        assert_eq!(json(&error), r#"{"resourceName":"n","resourceNamespace":"s","message":"m"}"#);
    }

    #[test]
    fn what_is_written_is_read_and_what_is_new_is_skipped() {
        let text = r#"{"name":"web","uid":"u","kind":"Application","checksum":"AQL/","new":[1]}"#;
        let update: RequestUpdate = decode(text.as_bytes(), "a request").unwrap();
        assert_eq!((update.namespace.as_str(), update.checksum), ("", Some(vec![1, 2, 255])));
        let empty: RequestSyncedResourceList = decode(b"{}", "a request").unwrap();
        assert_eq!(empty.checksum, None);
        let error = decode::<RequestUpdate>(br#"{"checksum":"!"}"#, "a request").unwrap_err();
        assert_eq!(error.to_string(), "the payload is not the JSON of a request");
        assert!(decode::<RequestUpdate>(b"", "a request").is_err());
    }

    #[test]
    fn typed_json_gets_its_type_back() {
        let text = br#"{"metadata":{"name":"web","namespace":"argocd","uid":"u",
            "creationTimestamp":null,"resourceVersion":"5"},"spec":{"project":"p"},"status":{}}"#;
        for resource in Resource::ALL {
            let object = object(resource, text).unwrap();
            assert_eq!((object.api_version.as_str(), object.kind.as_str()), resource.type_of());
            assert_eq!(object.metadata.creation_timestamp, None);
            assert_eq!(crate::version_of(&object), "5");
        }
    }

    #[test]
    fn what_is_no_object_is_refused_by_field() {
        let error = object(Resource::Application, br#"{"metadata":{}}"#).unwrap_err();
        assert_eq!(error.to_string(), "the payload is not a usable Application");
        assert!(object(Resource::Application, b"[]").is_err());
        assert!(object(Resource::Application, &[b'['; 10_000]).is_err(), "deep, yet no overflow");
        assert!(object(Resource::Application, &[0xff, 0xfe]).is_err());
    }

    #[test]
    fn a_gravestone_has_names_only() {
        let place = Place::new(Resource::Application, "a1", "web");
        let text = json(&gravestone(&place, "u"));
        let names = r#""metadata":{"name":"web","namespace":"a1","uid":"u"}"#;
        assert!(text.contains(names), "{text}");
        assert_eq!(gravestone(&place, "").metadata.uid, None);
    }
}
