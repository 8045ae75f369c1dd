//! From what a server answers, when it is not what was asked for, to an error of ours.

use std::error::Error as StdError;
use std::time::Duration;

use serde::Deserialize;

use crate::call::About;
use crate::{Error, Owned};

/// Kubernetes' `Status`, as far as it is read.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Status {
    pub(crate) message: String,
    pub(crate) reason: String,
    pub(crate) code: u16,
    pub(crate) details: Option<Details>,
}

/// What a `Status` says beside its message.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Details {
    name: String,
    causes: Vec<Cause>,
    retry_after_seconds: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Cause {
    reason: String,
    message: String,
    field: String,
}

impl Status {
    /// Reads the body of an answer with this HTTP status; what is no `Status` is kept as text.
    pub(crate) fn read(code: u16, body: &[u8]) -> Self {
        let mut status: Self = serde_json::from_slice(body).unwrap_or_default();
        status.code = code;
        if status.message.is_empty() {
            let text: String = String::from_utf8_lossy(body).trim().chars().take(400).collect();
            let unsaid = http::StatusCode::from_u16(code).ok().and_then(|s| s.canonical_reason());
            status.message =
                if text.is_empty() { unsaid.unwrap_or("no reason given").into() } else { text };
        }
        status
    }

    fn causes(&self) -> &[Cause] {
        self.details.as_ref().map_or(&[], |d| &d.causes)
    }

    fn is_expired(&self) -> bool {
        self.code == 410 || self.reason == "Expired" || self.reason == "Gone"
    }

    /// The server's etcd refuses what is sent to it, with words but no status of its own.
    fn is_too_large(&self) -> bool {
        let said = |text| self.message.contains(text);
        self.code == 413 || said("request is too large") || said("message larger than max")
    }

    fn is_namespace_going(&self) -> bool {
        self.causes().iter().any(|c| c.reason == "NamespaceTerminating")
            || self.message.contains("because it is being terminated")
    }

    /// The place that a watch asked for is in the server's future: its store was put back.
    fn is_from_the_future(&self) -> bool {
        self.causes().iter().any(|c| c.reason == "ResourceVersionTooLarge")
            || self.message.contains("Too large resource version")
    }

    /// Fields that others own, for a conflict of server-side apply.
    fn owned(&self) -> Vec<Owned> {
        let causes = self.causes().iter().filter(|c| c.reason == "FieldManagerConflict");
        // The message is `conflict with "NAME" using VERSION`.
        let manager = |c: &Cause| c.message.split('"').nth(1).unwrap_or(&c.message).to_owned();
        causes.map(|c| Owned { field: c.field.clone(), manager: manager(c) }).collect()
    }
}

/// The error that an answer means. `after` is its `Retry-After`.
pub(crate) fn refused(
    server: &str,
    about: &About,
    status: Status,
    after: Option<Duration>,
) -> Error {
    let what = about.object();
    if status.is_expired() || status.is_from_the_future() {
        return Error::Expired { why: status.message };
    }
    if status.is_too_large() {
        return Error::TooLarge { what, why: status.message };
    }
    match status.code {
        401 => Error::Unauthorized { server: server.into(), why: status.message },
        403 => forbidden(about, status),
        404 => not_found(about, status),
        409 if status.reason == "AlreadyExists" => Error::Exists { what },
        409 => Error::Conflict { what, owned: status.owned(), why: status.message },
        400 | 405 | 406 | 415 | 422 => Error::Invalid { what, why: status.message },
        429 => {
            let said = status.details.as_ref().map_or(0, |d| d.retry_after_seconds);
            let after = after.unwrap_or(Duration::from_secs(said.max(1)));
            Error::Throttled { after, why: status.message }
        }
        502..=504 => Error::Unreachable { server: server.into(), why: status.message },
        code => Error::Other { what: about.to_string(), code: Some(code), why: status.message },
    }
}

fn forbidden(about: &About, status: Status) -> Error {
    if status.is_namespace_going() {
        let namespace = about.namespace.clone().unwrap_or_default();
        return Error::NamespaceGoing { namespace, what: about.object() };
    }
    // Admission and quotas refuse with the same code; RBAC says what one cannot do.
    let rbac = status.message.split_once(" cannot ").map(|(_, denied)| denied);
    let (verb, resource) = match rbac.and_then(|d| d.split_once(" resource ")) {
        Some((verb, rest)) => (verb.to_owned(), resource_named(rest)),
        None if status.reason == "Forbidden" && rbac.is_none() => {
            return Error::Invalid { what: about.object(), why: status.message };
        }
        None => (about.verb.to_owned(), None),
    };
    let resource = resource.unwrap_or_else(|| about.resource.clone());
    Error::Forbidden { verb, resource, namespace: about.namespace.clone(), why: status.message }
}

/// From `"applications/status" in API group "argoproj.io" ...` to `applications.argoproj.io/status`.
fn resource_named(text: &str) -> Option<String> {
    let mut quoted = text.split('"').skip(1).step_by(2);
    let (resource, group) = (quoted.next()?, quoted.next().unwrap_or_default());
    let (plural, part) = resource.split_once('/').map_or((resource, None), |(p, s)| (p, Some(s)));
    let group = if group.is_empty() { String::new() } else { format!(".{group}") };
    Some(format!("{plural}{group}{}", part.map(|p| format!("/{p}")).unwrap_or_default()))
}

/// A missing object is named by the server; a missing kind is not.
fn not_found(about: &About, status: Status) -> Error {
    let named = status.details.as_ref().is_some_and(|d| !d.name.is_empty());
    if !named && !about.kind.is_empty() {
        return Error::NoKind { group: about.group.clone(), kind: about.kind.clone() };
    }
    Error::NotFound { what: status.message }
}

/// An error with all that caused it, on one line, saying nothing twice.
pub(crate) fn chain(error: &dyn StdError) -> String {
    let mut out = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let text = source.to_string();
        if !out.contains(&text) {
            out = format!("{out}: {text}");
        }
        next = source.source();
    }
    out
}

#[cfg(test)]
mod tests;
