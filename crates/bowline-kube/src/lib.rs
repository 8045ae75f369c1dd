//! Watch and apply on a Kubernetes API: a thin edge over the HTTP API with few requests at a time,
//! writes before reads, and watches that lose no deletion. The only crate that names a Kubernetes
//! library, from which it takes credentials, TLS and connections, nothing else.
//!
//! It keeps no objects: a watch remembers the name, uid and resourceVersion of what it told. How
//! watches, limits and errors work is told in `docs/kubernetes.md`.

mod access;
mod backoff;
mod body;
mod brake;
mod call;
mod cluster;
mod departed;
mod dial;
mod door;
mod error;
mod kind;
mod lanes;
mod list;
mod pace;
mod refusal;
#[cfg(test)]
mod testing;
mod watch;
mod write;

pub use access::{Access, Options};
pub use brake::Brake;
pub use cluster::{Cluster, Scope};
pub use departed::Departed;
pub use error::{Error, Owned};
pub use kind::Kind;
pub use watch::{Heard, Watch};
pub use write::{Apply, Delete, Deleted, Part, Patch, Propagation};
