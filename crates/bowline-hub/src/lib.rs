//! The hub: the roster and everyone's desired objects, who may connect, and the HTTP API.
//!
//! [`Hub::start`] opens the store, makes or reads the identity, and listens. Views ([`views`])
//! follow the shelves and answer reads; every write goes through the node and is answered when it
//! is durable, together with its audit entry.

mod access;
mod admission;
mod api;
mod audit;
mod clear;
mod clock;
mod contacts;
mod denials;
mod dialect;
mod gate;
mod handover;
mod hub;
mod issuers;
mod metrics;
mod options;
mod outside;
mod pace;
mod pki;
mod plane;
mod problem;
mod settle;
mod shelves;
mod state;
mod upkeep;
mod views;

pub use api::openapi;
pub use dialect::{CertificateRule, DialectError, DialectOptions, Newcomers, TokenKey};
pub use hub::{Addresses, Hub};
pub use options::{Error, HubOptions};
pub use outside::Outside;
pub use plane::{ClusterSecrets, ClustersMade, NewNamespaces, PlaneError, PlaneOptions};
pub use problem::Code;
