//! An agent whose control plane is an unmodified principal of argocd-agent.
//!
//! What the principal says is kept on a shelf of the agent's own, on the principal's behalf; the
//! roster entry is made from the options. All else (what to do, how it is done, what is reported) is
//! as with a hub. `docs/argocd-protocol.md` states the dialect.

mod desk;
mod dial;
mod guest;
mod keeper;
mod live;
mod naming;
mod options;
mod received;
mod session;
mod speech;
mod told;

pub(crate) use guest::Guest;
pub(crate) use keeper::Keeper;
pub use options::{
    ClientCertificate, Pem, PrincipalCredentials, PrincipalLine, PrincipalMapping,
    PrincipalOptions, PrincipalRoots, PrincipalTransport,
};
pub(crate) use received::Lacking;
