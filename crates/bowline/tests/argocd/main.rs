//! Argo CD's objects over real API servers: a hub on a control plane, agents on workload clusters.
//! What Argo CD's controllers would do there (status, operations, finalizers) the tests do by hand.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../flows/stage.rs"]
#[allow(dead_code, reason = "shared with another suite, which uses the rest")]
mod stage;

mod argo;
mod asked;
mod autonomous;
mod bad_input;
mod cluster;
mod control;
mod destinations;
mod faults;
mod given_up;
mod go;
mod go_agent;
mod go_agents;
mod go_change;
mod go_given;
mod go_lies;
mod go_life;
mod go_lines;
mod go_mesh;
mod go_principal;
mod go_swap;
mod held;
mod identity;
mod managed;
mod modes;
mod namespaces;
mod projects;
mod real;
mod scene;
mod selection;
