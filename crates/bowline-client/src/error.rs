//! What can go wrong between a client and the API.

use crate::api::Problem;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address of the server is not usable. Nothing was sent.
    #[error("the server address {server:?} cannot be used: {why}")]
    Server {
        /// As it was given.
        server: String,
        /// What is wrong with it.
        why: String,
    },
    /// The authority's certificate is not usable. Nothing was sent.
    #[error("the CA certificate cannot be used: {0}")]
    Authority(String),
    /// The token cannot be sent. Nothing was.
    #[error("the token contains characters that no header can carry")]
    Token,
    /// The server could not be reached, or went away before it answered.
    #[error("cannot reach {server}")]
    Unreachable {
        /// The server.
        server: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server did not answer in time; what was asked may have been done.
    #[error("{server} did not answer within {seconds} s")]
    Timeout {
        /// The server.
        server: String,
        /// How long was waited.
        seconds: u64,
    },
    /// It is the port where agents connect, which does not serve the API. Nothing was done.
    #[error("{server} is the hub's port for agents, not its API")]
    AgentsPort {
        /// The server.
        server: String,
    },
    /// The server said no.
    #[error("{0}")]
    Refused(Box<Problem>),
    /// The server's answer makes no sense here.
    #[error("{server} gave an answer that was not understood")]
    Answer {
        /// The server.
        server: String,
        /// What is wrong with it.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// What the server said, if it said no.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused(problem) => Some(problem),
            _ => None,
        }
    }

    /// Whether what was asked for is not there.
    pub fn is_not_found(&self) -> bool {
        self.problem().is_some_and(|p| p.status == 404)
    }

    /// Whether somebody else was faster, or it is there already.
    pub fn is_conflict(&self) -> bool {
        self.problem().is_some_and(|p| p.status == 409 || p.status == 412)
    }

    /// Whether the server could not be talked to.
    pub fn is_unreachable(&self) -> bool {
        // A shelf that has stopped is a 503 too, but waits for a person and not for the server.
        let stopped = |p: &Problem| ["BL-0137", "BL-1150"].contains(&p.code.as_str());
        let gateway = |p: &Problem| matches!(p.status, 502..=504) && !stopped(p);
        matches!(self, Self::Unreachable { .. } | Self::Timeout { .. })
            || self.problem().is_some_and(gateway)
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Refused(problem) => problem.hint.clone(),
            Self::Unreachable { server, source } => Some(unreachable_hint(server, source.as_ref())),
            Self::Timeout { .. } => Some("look before you repeat it: it may have been done".into()),
            Self::Server { .. } => Some("use https://HOST:PORT".into()),
            Self::Authority(_) => Some(
                "give the hub's CA with --ca FILE; it is pki/ca.crt in the hub's folder".into(),
            ),
            Self::AgentsPort { .. } => Some(
                "the hub says where its API is when it is ready; 8080 unless --api says".into(),
            ),
            Self::Token | Self::Answer { .. } => None,
        }
    }
}

fn unreachable_hint(server: &str, source: &(dyn std::error::Error + 'static)) -> String {
    let (mut text, mut next) = (String::new(), Some(source));
    while let Some(error) = next {
        text.push_str(&format!("{error} {error:?} "));
        next = error.source();
    }
    // A hub that made a new CA of the same name shows as a bad signature.
    if ["UnknownIssuer", "BadSignature"].iter().any(|word| text.contains(word)) {
        return "the server's certificate is signed by another CA than the one in your context"
            .into();
    }
    if ["NotValidForName", "not valid for name"].iter().any(|word| text.contains(word)) {
        return "start the hub with --san NAME for the name you use to reach it".into();
    }
    let plain = server.starts_with("http://");
    // What answers to plain HTTP with something else is most likely TLS.
    if plain && ["Parse(", "IncompleteMessage"].iter().any(|word| text.contains(word)) {
        return "something else than HTTP answers there; if it is a hub, use https://".into();
    }
    // Only an agent's own API is plain.
    let who = if plain { "agent" } else { "hub" };
    format!("is the {who} running, and is this its address? it tells it when it is ready")
}
