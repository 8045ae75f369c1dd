//! The configuration of the roles: one YAML file each, under environment and flags.
//!
//! Order: default, profile, file, `BOWLINE_*`, flag. Every value remembers where it came from, so that
//! `--dump-config` can say so. Unknown keys are errors with a suggestion.

mod clusters;
mod control_plane;
mod layers;
mod roles;
mod sound;
mod tls;

pub use clusters::{Adopt, Kubernetes, OnMismatch, OnRecreation, Reach};
pub use control_plane::{
    Certificate, ClusterSecrets, ControlPlane, GoAgents, GoPrincipal, Made, Mapping, Newcomers,
};
pub use layers::{Error, Layers, Loaded, Origin, Role, Wrong};
pub use roles::{
    Agent, Audit, Hub, KvInterest, Limits, Listen, Log, LogFormat, Otlp, Profile, Telemetry,
    Transport,
};

#[cfg(test)]
mod page;
#[cfg(test)]
mod tests;
