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

mod clusters;
mod namespace;
mod script;

pub use clusters::{Clusters, Ending, clusters, restart_api_servers};
pub use namespace::namespace;
pub use script::provide;
