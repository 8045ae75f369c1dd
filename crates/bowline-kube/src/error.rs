//! What can go wrong with a Kubernetes API, in words that say what to do.

use std::time::Duration;

/// Why a request, or a watch, did not get what it asked for. Unless a variant says otherwise, the
/// cluster is as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There are no usable credentials.
    #[error("no credentials for the Kubernetes API: {0}")]
    Credentials(String),
    /// No answer came. A write may have been done nevertheless.
    #[error(
        "the Kubernetes API at {server} cannot be reached: {why}; check the address, the network and whether it runs"
    )]
    Unreachable {
        /// Where it should be.
        server: String,
        /// What happened.
        why: String,
    },
    /// The server does not accept the credentials.
    #[error(
        "the Kubernetes API at {server} does not accept our credentials: {why}; renew the token or certificate"
    )]
    Unauthorized {
        /// Which server.
        server: String,
        /// What it said.
        why: String,
    },
    /// RBAC does not allow it.
    #[error("RBAC does not allow to {verb} {resource}{}: grant `{verb}` on `{resource}` to our account ({why})", in_namespace(namespace.as_deref()))]
    Forbidden {
        /// The verb that is lacking.
        verb: String,
        /// `plural.group`, with its subresource.
        resource: String,
        /// Where; none for the whole cluster.
        namespace: Option<String>,
        /// What the server said.
        why: String,
    },
    /// The server does not serve the kind.
    #[error(
        "the cluster does not have the kind {kind} of {}: {}",
        group_named(group),
        remedy(group, kind)
    )]
    NoKind {
        /// Its group; empty for the core group.
        group: String,
        /// The kind.
        kind: String,
    },
    /// There is no such object, or no such namespace to put it in.
    #[error("not found: {what}")]
    NotFound {
        /// What the server says is missing.
        what: String,
    },
    /// Somebody else owns fields, or the object is not the one that was meant.
    #[error("{}", conflict_text(what, owned, why))]
    Conflict {
        /// Which object.
        what: String,
        /// The fields that others own; empty if it is the resourceVersion or the uid that differs.
        owned: Vec<Owned>,
        /// What the server said.
        why: String,
    },
    /// An object of this name is there already.
    #[error("{what} exists already; apply it, or delete it first")]
    Exists {
        /// Which object.
        what: String,
    },
    /// The server refuses the object or the request for what it says.
    #[error("the Kubernetes API refuses {what}: {why}")]
    Invalid {
        /// Which object.
        what: String,
        /// The server's reason in full.
        why: String,
    },
    /// The object is larger than can be sent or stored.
    #[error("{what} is too large: {why}; make it smaller, such as by splitting it")]
    TooLarge {
        /// Which object.
        what: String,
        /// Which limit it passes.
        why: String,
    },
    /// The server has too much to do, and still had after we waited as it asked.
    #[error("the Kubernetes API is overloaded and asks to wait {} s: {why}", after.as_secs())]
    Throttled {
        /// How long to wait.
        after: Duration,
        /// What the server said.
        why: String,
    },
    /// The namespace is being deleted and takes nothing new.
    #[error(
        "namespace {namespace} is being deleted: {what} can be made once it is gone and made anew"
    )]
    NamespaceGoing {
        /// Which namespace.
        namespace: String,
        /// What was to be made in it.
        what: String,
    },
    /// The place in the history that was asked for is no longer kept.
    #[error("the server no longer keeps that place of its history: {why}; list again")]
    Expired {
        /// What the server said.
        why: String,
    },
    /// It was put back so often in a row that it is done more slowly.
    #[error(
        "somebody else changes {what} again and again, so it is put back more slowly: see that no other \
         hub, agent or controller writes it"
    )]
    Contested {
        /// Which object.
        what: String,
    },
    /// Anything else.
    #[error("{what} failed{}: {why}", code.map(|c| format!(" with {c}")).unwrap_or_default())]
    Other {
        /// What was tried.
        what: String,
        /// The HTTP status, if one came.
        code: Option<u16>,
        /// What the server said, or what is wrong with its answer.
        why: String,
    },
}

/// A field that another field manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// The path of the field, such as `.spec.replicas`.
    pub field: String,
    /// Who owns it.
    pub manager: String,
}

impl Error {
    /// Whether it is worth trying again unchanged, after a pause.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::Throttled { .. }
            | Self::NamespaceGoing { .. }
            | Self::Contested { .. }
            | Self::Expired { .. } => true,
            Self::Other { code, .. } => code.is_some_and(|c| c >= 500),
            Self::Credentials(_)
            | Self::Unauthorized { .. }
            | Self::Forbidden { .. }
            | Self::NoKind { .. }
            | Self::NotFound { .. }
            | Self::Conflict { .. }
            | Self::Exists { .. }
            | Self::Invalid { .. }
            | Self::TooLarge { .. } => false,
        }
    }

    /// Whether both are trouble of one sort, so that telling the second says nothing new.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

fn in_namespace(namespace: Option<&str>) -> String {
    namespace.map_or_else(|| " in the whole cluster".into(), |n| format!(" in namespace {n}"))
}

fn group_named(group: &str) -> String {
    if group.is_empty() { "the core group".into() } else { format!("group {group}") }
}

fn remedy(group: &str, kind: &str) -> String {
    let built_in = !group.contains('.') || group.ends_with(".k8s.io");
    if built_in {
        return "its version of Kubernetes lacks it".into();
    }
    format!(
        "install its CustomResourceDefinition (by custom it is called {}s.{group})",
        kind.to_lowercase()
    )
}

fn conflict_text(what: &str, owned: &[Owned], why: &str) -> String {
    if owned.is_empty() {
        return format!("{what} is not as it was thought to be: {why}; read it again");
    }
    let fields: Vec<_> = owned.iter().map(|o| format!("{} ({})", o.field, o.manager)).collect();
    let fields = fields.join(", ");
    format!(
        "others own fields of {what}: {fields}; leave them out, or apply with force to take them over"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_crd_is_named() {
        let (group, kind) = ("argoproj.io".to_owned(), "Application".to_owned());
        let text = Error::NoKind { group, kind }.to_string();
        assert!(text.contains("applications.argoproj.io"), "{text}");
        let (group, kind) = ("batch".to_owned(), "CronJob".to_owned());
        let text = Error::NoKind { group, kind }.to_string();
        assert!(!text.contains("CustomResourceDefinition"), "{text}");
    }

    #[test]
    fn a_conflict_names_fields_and_owners() {
        let owned = vec![Owned { field: ".data.a".into(), manager: "kubectl".into() }];
        let conflict = Error::Conflict { what: "configmaps x/y".into(), owned, why: "".into() };
        let text = conflict.to_string();
        assert!(text.contains(".data.a (kubectl)") && text.contains("force"), "{text}");
    }
}
