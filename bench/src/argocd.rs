//! Argo CD's objects between two real clusters: what our hub and agent make of them, what the
//! principal and the agent of argocd-agent do, and how fast the same writes are by hand.

mod apps;
mod bed;
mod daemon;
mod dialect;
mod gate;
mod go;
mod line;
mod many;
mod ours;
mod pair;
mod papers;
mod seen;
mod writers;

pub(crate) use apps::{app, moved, status, status_mark, target_mark};
pub(crate) use bed::{Bed, Scene, Site};
pub(crate) use dialect::Crowd;
pub(crate) use gate::Gate;
pub(crate) use many::Many;
pub(crate) use pair::{LONG, Maker, Pair};
pub(crate) use seen::Seen;
pub(crate) use writers::{WRITERS, Written, write_all};
