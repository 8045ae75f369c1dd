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

/// How an API server is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// In good order, by SIGTERM.
    Ordered,
    /// By `kill -9`.
    Killed,
}

/// Ends the API servers of these clusters, counted from 1, and starts them again with their data;
/// returns when they are ready. Whoever shares the run folder loses them for as long.
///
/// # Panics
///
/// In the words of `testbed/clusters`, when one does not run or does not come back.
pub fn restart_api_servers(clusters: &[usize], ending: Ending) {
    let signal = match ending {
        Ending::Ordered => "TERM",
        Ending::Killed => "KILL",
    };
    let clusters: Vec<_> = clusters.iter().map(usize::to_string).collect();
    let clusters = clusters.iter().map(String::as_str);
    let args: Vec<_> = ["restart", signal].into_iter().chain(clusters).collect();
    script::run("clusters", &args);
}
