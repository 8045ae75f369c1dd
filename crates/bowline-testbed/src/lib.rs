//! Real Kubernetes API servers on loopback, for tests: what `testbed/` provides, as Rust.
//!
//! ```no_run
//! let clusters = bowline_testbed::clusters(3);
//! let namespace = bowline_testbed::namespace("web");
//! let control_plane = &clusters.kubeconfigs[0];
//! ```
//!
//! The clusters are started by whoever asks first and are shared by every test of the machine that
//! uses the same run folder, so a test keeps to namespaces of its own. Nothing here is skipped: what
//! cannot be provided is a panic in the words of the script.

mod account;
mod clusters;
mod kubectl;
mod namespace;
mod rights;
mod script;

pub use account::Account;
pub use clusters::{Clusters, Ending, clusters, restart_api_servers};
pub use kubectl::kubectl;
pub use namespace::namespace;
pub use rights::Rights;
pub use script::provide;
