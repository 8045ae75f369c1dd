//! Clusters, started once.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use crate::script;

/// Clusters that run, with the Argo CD kinds installed and nothing that starts pods.
#[derive(Debug)]
pub struct Clusters {
    /// For each cluster, how its administrator reaches it.
    pub kubeconfigs: Vec<PathBuf>,
    /// For each cluster, how a user reaches it who may do nothing there.
    pub without_rights: Vec<PathBuf>,
}

/// The first `count` clusters of the test bed (1 to 9). The first call of a process for a number
/// starts what does not run; later ones return at once, also when a test has killed a server since.
///
/// # Panics
///
/// In the words of `testbed/clusters`, when they cannot be started.
pub fn clusters(count: usize) -> &'static Clusters {
    static STARTED: Mutex<BTreeMap<usize, &'static Clusters>> = Mutex::new(BTreeMap::new());
    let mut started = STARTED.lock().expect("the clusters start, unlike in a test before");
    started.entry(count).or_insert_with(|| Box::leak(Box::new(up(count))))
}

fn up(count: usize) -> Clusters {
    let printed = script::run("clusters", &["up", &count.to_string()]);
    let kubeconfigs: Vec<PathBuf> = printed.lines().map(PathBuf::from).collect();
    assert_eq!(kubeconfigs.len(), count, "testbed/clusters up {count} printed {printed:?}");
    let numbered = kubeconfigs.iter().zip(1..);
    let without_rights = numbered
        .map(|(path, i)| path.with_file_name(format!("c{i}-without-rights.kubeconfig")))
        .collect();
    Clusters { kubeconfigs, without_rights }
}
