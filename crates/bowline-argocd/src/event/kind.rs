//! What an event says happened, and to what: the CloudEvents attributes `type` and `dataschema`.

use std::fmt;

const PREFIX: &str = "io.argoproj.argocd-agent.event.";

/// What an event says happened.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A heartbeat.
    Ping,
    /// An answer to a heartbeat that nobody sends.
    Pong,
    /// The object is new.
    Create,
    /// The object is gone, or shall go.
    Delete,
    /// What is wanted has changed.
    SpecUpdate,
    /// What is there has changed.
    StatusUpdate,
    /// An operation is asked for.
    SetOperation,
    /// The running operation shall end.
    TerminateOperation,
    /// The ack.
    Processed,
    /// Defined upstream, used by nobody.
    Get,
    /// The answer to a request for a live resource.
    Response,
    /// A command for the agent's Redis.
    RedisRequest,
    /// What the agent's Redis said.
    RedisResponse,
    /// A peer's checksum over all that it holds.
    RequestSyncedResourceList,
    /// One thing that the source has.
    ResponseSyncedResource,
    /// A peer's word on one thing that it holds.
    RequestUpdate,
    /// The source wants a word on everything that the peer holds.
    RequestResourceResync,
    /// Counts out of the agent's cluster cache.
    ClusterCacheInfoUpdate,
    /// A terminal is asked for.
    TerminalRequest,
    /// An agent could not do what it was told; not known to v0.9.0.
    Error,
    /// A request for a live resource or a log, named by its bare HTTP method.
    Http(Method),
    /// Something of another version.
    Other(String),
}

/// The HTTP methods that requests for live resources use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// `GET`.
    Get,
    /// `POST`.
    Post,
    /// `PATCH`.
    Patch,
    /// `DELETE`.
    Delete,
}

static KINDS: [(Kind, &str); 20] = [
    (Kind::Ping, "ping"),
    (Kind::Pong, "pong"),
    (Kind::Create, "create"),
    (Kind::Delete, "delete"),
    (Kind::SpecUpdate, "spec-update"),
    (Kind::StatusUpdate, "status-update"),
    (Kind::SetOperation, "set-operation"),
    (Kind::TerminateOperation, "terminate-operation"),
    (Kind::Processed, "processed"),
    (Kind::Get, "get"),
    (Kind::Response, "response"),
    (Kind::RedisRequest, "redis-request"),
    (Kind::RedisResponse, "redis-response"),
    (Kind::RequestSyncedResourceList, "request-synced-resource-list"),
    (Kind::ResponseSyncedResource, "response-synced-resource"),
    (Kind::RequestUpdate, "request-update"),
    (Kind::RequestResourceResync, "request-resource-resync"),
    (Kind::ClusterCacheInfoUpdate, "cluster-cache-info-update"),
    (Kind::TerminalRequest, "terminal-request"),
    (Kind::Error, "error"),
];

static METHODS: [(Method, &str); 4] = [
    (Method::Get, "GET"),
    (Method::Post, "POST"),
    (Method::Patch, "PATCH"),
    (Method::Delete, "DELETE"),
];

impl From<&str> for Kind {
    fn from(text: &str) -> Self {
        if let Some((method, _)) = METHODS.iter().find(|(_, name)| *name == text) {
            return Self::Http(*method);
        }
        let known = text.strip_prefix(PREFIX).and_then(|t| KINDS.iter().find(|(_, n)| *n == t));
        known.map_or_else(|| Self::Other(text.to_owned()), |(kind, _)| kind.clone())
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(method) => method.fmt(f),
            Self::Other(text) => f.write_str(text),
            known => {
                let name = KINDS.iter().find(|(kind, _)| kind == known).map_or("", |(_, n)| n);
                write!(f, "{PREFIX}{name}")
            }
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(METHODS.iter().find(|(m, _)| m == self).map_or("", |(_, name)| name))
    }
}

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Target {
    /// An Application.
    Application,
    /// An AppProject.
    AppProject,
    /// A Secret with a repository or its credentials.
    Repository,
    /// The ConfigMap with GPG keys.
    GpgKey,
    /// A live resource of the cluster.
    Resource,
    /// The log of a container.
    ContainerLog,
    /// A terminal in a container.
    Terminal,
    /// The agent's Redis.
    Redis,
    /// The resync.
    ResourceResync,
    /// Counts out of the cluster cache.
    ClusterCacheInfoUpdate,
    /// An event: the target of acks.
    EventProcessed,
    /// The line itself.
    Heartbeat,
    /// An ApplicationSet; only between two principals.
    ApplicationSet,
    /// Something of another version; empty if the event names nothing.
    Other(String),
}

static TARGETS: [(Target, &str); 13] = [
    (Target::Application, "application"),
    (Target::AppProject, "appproject"),
    (Target::Repository, "repository"),
    (Target::GpgKey, "gpgkey"),
    (Target::Resource, "resource"),
    (Target::ContainerLog, "containerlog"),
    (Target::Terminal, "terminal"),
    (Target::Redis, "redis"),
    (Target::ResourceResync, "resourceResync"),
    (Target::ClusterCacheInfoUpdate, "clusterCacheInfoUpdate"),
    (Target::EventProcessed, "eventProcessed"),
    (Target::Heartbeat, "heartbeat"),
    (Target::ApplicationSet, "applicationset"),
];

impl From<&str> for Target {
    fn from(text: &str) -> Self {
        let known = TARGETS.iter().find(|(_, name)| *name == text);
        known.map_or_else(|| Self::Other(text.to_owned()), |(target, _)| target.clone())
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(text) => f.write_str(text),
            known => f.write_str(TARGETS.iter().find(|(t, _)| t == known).map_or("", |(_, n)| n)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_spelled_as_peers_spell_it() {
        let spelled = [
            (Kind::Create, "io.argoproj.argocd-agent.event.create"),
            (Kind::Processed, "io.argoproj.argocd-agent.event.processed"),
            (Kind::Response, "io.argoproj.argocd-agent.event.response"),
            (
                Kind::RequestSyncedResourceList,
                "io.argoproj.argocd-agent.event.request-synced-resource-list",
            ),
            (Kind::Http(Method::Get), "GET"),
            (Kind::Http(Method::Patch), "PATCH"),
        ];
        for (kind, text) in spelled {
            assert_eq!(kind.to_string(), text);
        }
        for (kind, name) in &KINDS {
            assert_eq!(&Kind::from(format!("{PREFIX}{name}").as_str()), kind);
            assert_eq!(&Kind::from(kind.to_string().as_str()), kind);
            assert_eq!(Kind::from(*name), Kind::Other((*name).to_owned()), "no prefix");
        }
    }

    #[test]
    fn what_is_unknown_keeps_its_text() {
        let prefix = PREFIX.trim_end_matches('.');
        let texts = ["", "get", "PUT", prefix, PREFIX, "io.argoproj.argocd-agent.event.tomorrow"];
        for text in texts {
            assert_eq!(Kind::from(text), Kind::Other(text.to_owned()));
            assert_eq!(Kind::from(text).to_string(), text);
        }
        for text in ["", "unknown", "Application", "resourceresync"] {
            assert_eq!(Target::from(text), Target::Other(text.to_owned()));
            assert_eq!(Target::from(text).to_string(), text);
        }
    }

    #[test]
    fn every_target_is_read_back() {
        for (target, name) in &TARGETS {
            assert_eq!(&target.to_string(), name);
            assert_eq!(&Target::from(*name), target);
        }
    }
}
