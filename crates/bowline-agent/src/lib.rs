//! The role of an agent: follows what is wanted, reports what is there, and answers on loopback.
//!
//! An agent owns `observed@me` (what is there), `desired` (what is wanted, where its own word counts)
//! and `live` (the embedded cluster). It copies the hub's `desired@me`, its own line of the `roster`
//! and `kv`. [`Agent::start`] needs no hub: it starts from its disk, and everything it does on its own
//! it also does while the line is cut.
//!
//! One change, end to end: a fold (`world`) notes it, `plan` says what to do, an [`Applier`] does it,
//! `reconcile` writes what is news on `observed@me`.

mod agent;
mod api;
mod applier;
mod clock;
mod decider;
mod embedded;
mod error;
mod ground;
mod identity;
mod kubernetes;
mod kv;
mod line;
mod metrics;
mod news;
mod options;
mod papers;
mod plan;
mod principal;
mod reconcile;
mod rights;
mod shelves;
mod takeover;
mod trust;
mod world;

pub use agent::Agent;
pub use api::Code;
pub use applier::{Applier, BoxFuture, Held, Sink, Task};
pub use bowline_identity::Versions;
pub use embedded::Embedded;
pub use error::Error;
pub use kubernetes::{Adoption, KubernetesOptions, Mismatch, Recreation, Watched};
pub use options::AgentOptions;
pub use principal::{
    ClientCertificate, Pem, PrincipalCredentials, PrincipalLine, PrincipalMapping,
    PrincipalOptions, PrincipalRoots, PrincipalTransport,
};
