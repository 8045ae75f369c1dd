//! Stands in for the crate `bowline-testbed`: names of kubeconfigs come from the environment.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Clusters that run.
pub(crate) struct Clusters {
    /// For each cluster, how its administrator reaches it.
    pub(crate) kubeconfigs: Vec<PathBuf>,
    /// For each cluster, how a user reaches it who may do nothing there.
    pub(crate) without_rights: Vec<PathBuf>,
}

/// The cluster of `BOWLINE_KUBECONFIG`, with `c1-without-rights.kubeconfig` beside it.
pub(crate) fn clusters(_count: usize) -> &'static Clusters {
    static CLUSTERS: OnceLock<Clusters> = OnceLock::new();
    CLUSTERS.get_or_init(|| {
        let admin = std::env::var("BOWLINE_KUBECONFIG");
        let admin = PathBuf::from(admin.expect("BOWLINE_KUBECONFIG names a kubeconfig"));
        let without = admin.with_file_name("c1-without-rights.kubeconfig");
        Clusters { kubeconfigs: vec![admin], without_rights: vec![without] }
    })
}

/// A name that no other test has.
pub(crate) fn namespace(prefix: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    format!("{prefix}-{now:x}-{:x}", NEXT.fetch_add(1, Ordering::Relaxed))
}
