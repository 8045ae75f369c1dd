//! One request, before it is sent: what it asks, for which object, in which lane.

use std::fmt;

use bytes::Bytes;
use http::Method;
use serde::Serialize;

use crate::lanes::Lane;
use crate::{Error, Kind};

/// The most that is sent in one body: the API server takes in no more.
pub(crate) const LARGEST_BODY: usize = 3 << 20;

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    /// Path and query, encoded.
    pub(crate) path: String,
    pub(crate) content_type: Option<&'static str>,
    pub(crate) body: Bytes,
    pub(crate) lane: Lane,
    pub(crate) about: About,
}

/// What a request is about, for the words of its errors.
#[derive(Clone, Debug, Default)]
pub(crate) struct About {
    /// The verb as RBAC calls it.
    pub(crate) verb: &'static str,
    /// `plural.group`, or a path.
    pub(crate) resource: String,
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
}

impl About {
    pub(crate) fn of(
        verb: &'static str,
        kind: &Kind,
        namespace: Option<&str>,
        name: Option<&str>,
    ) -> Self {
        Self {
            verb,
            resource: kind.resource(),
            group: kind.group.clone(),
            kind: kind.kind.clone(),
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
        }
    }

    /// The object or collection, without the verb.
    pub(crate) fn object(&self) -> String {
        let name = match (self.namespace.as_deref(), self.name.as_deref()) {
            (Some(namespace), Some(name)) => format!(" {namespace}/{name}"),
            (None, Some(name)) => format!(" {name}"),
            (Some(namespace), None) => format!(" in namespace {namespace}"),
            (None, None) => String::new(),
        };
        format!("{}{name}", self.resource)
    }
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.object())
    }
}

impl Call {
    /// Reads something.
    pub(crate) fn read(path: String, about: About) -> Self {
        let (method, body) = (Method::GET, Bytes::new());
        Self { method, path, content_type: None, body, lane: Lane::Read, about }
    }

    /// Writes something; an error, before anything is sent, if the body is larger than may be.
    pub(crate) fn write(
        method: Method,
        path: String,
        content_type: &'static str,
        body: &impl Serialize,
        about: About,
    ) -> Result<Self, Error> {
        let body = serde_json::to_vec(body).expect("plain data with text keys always encodes");
        if body.len() > LARGEST_BODY {
            let why = format!("it has {} bytes, at most {LARGEST_BODY} may be sent", body.len());
            return Err(Error::TooLarge { what: about.object(), why });
        }
        let (content_type, body) = (Some(content_type), body.into());
        Ok(Self { method, path, content_type, body, lane: Lane::Write, about })
    }
}

/// A path with its query; parts without a value are left out.
pub(crate) fn with_query(path: &str, query: &[(&str, Option<&str>)]) -> String {
    let pairs = query.iter().filter_map(|(key, value)| Some((key, (*value)?)));
    let pairs: Vec<_> = pairs.map(|(key, value)| format!("{key}={}", encoded(value))).collect();
    if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
}

/// Text as a segment of a path or the value of a query.
pub(crate) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_and_odd_names_survive_a_url() {
        let query = [("labelSelector", Some("a=b,c in (d)")), ("continue", None)];
        assert_eq!(with_query("/x", &query), "/x?labelSelector=a%3Db%2Cc%20in%20%28d%29");
        assert_eq!(encoded("system:admin"), "system%3Aadmin");
    }

    #[test]
    fn a_body_above_the_limit_is_refused_before_it_is_sent() {
        let about = About { resource: "configmaps".into(), ..About::default() };
        let write = |size: usize| {
            let body = "x".repeat(size);
            Call::write(Method::POST, "/x".into(), "application/json", &body, about.clone())
        };
        assert!(write(LARGEST_BODY - 2).is_ok());
        let error = write(LARGEST_BODY - 1).unwrap_err();
        assert!(matches!(&error, Error::TooLarge { .. }), "{error}");
        assert!(!error.is_transient());
    }
}
