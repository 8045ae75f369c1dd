//! Bowline under argocd-agent's names, on real API servers and with its real programs (Go, v0.9.0) on
//! the other side.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agent;
#[path = "../argocd/cluster.rs"]
#[allow(dead_code, reason = "shared with another suite, which uses the rest")]
mod cluster;
mod ctl;
mod lab;
mod migrate;
#[path = "../ports/mod.rs"]
mod ports;
mod principal;
