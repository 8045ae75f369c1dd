//! The accounts and rights of `deploy/rbac`, under names of one scene.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster::Cluster;

/// Whose rights.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role {
    Hub,
    /// A hub that shows agents to Argo CD as clusters.
    HubOfClusters,
    Agent,
}

impl Role {
    fn word(self) -> &'static str {
        match self {
            Self::Hub | Self::HubOfClusters => "hub",
            Self::Agent => "agent",
        }
    }

    fn rights(self) -> &'static str {
        match self {
            Self::Hub => include_str!("../../../../deploy/rbac/hub.yaml"),
            Self::HubOfClusters => include_str!("../../../../deploy/rbac/hub-destination.yaml"),
            Self::Agent => include_str!("../../../../deploy/rbac/agent.yaml"),
        }
    }
}

/// An account on a cluster that may do what `deploy/rbac` lets its role do, and no more. It goes when
/// this is dropped.
pub(crate) struct Account {
    cluster: Cluster,
    objects: String,
    kubeconfig: tempfile::NamedTempFile,
}

impl Account {
    /// Makes an account for a scene, where Argo CD is in the namespace `argocd`.
    pub(crate) fn new(role: Role, cluster: &Cluster, scene: &str, argocd: &str) -> Self {
        let (home, name) =
            (format!("{scene}-{}", role.word()), format!("bowline-{}-{scene}", role.word()));
        let objects = objects_of(role, &home, &name, argocd);
        cluster
            .run_with_text(&["apply", "--server-side", "-f", "-"], &objects)
            .unwrap_or_else(|e| panic!("the rights of {name}: {e}"));
        let token = cluster.ok(&["create", "token", &name, "-n", &home, "--duration=2h"]);
        let kubeconfig = tempfile::NamedTempFile::new().unwrap();
        let how = reached_by(cluster, token.trim());
        std::fs::write(kubeconfig.path(), how.to_string()).unwrap();
        let account = Self { cluster: cluster.clone(), objects, kubeconfig };
        account.until_it_counts(argocd);
        account
    }

    /// How it reaches the cluster, as a flag's value.
    pub(crate) fn flag(&self) -> &str {
        self.kubeconfig.path().to_str().unwrap()
    }

    /// An API server takes rights up a moment after they were made.
    fn until_it_counts(&self, argocd: &str) {
        let start = Instant::now();
        let as_account = Cluster::new(self.kubeconfig.path());
        while as_account.run(&["auth", "can-i", "list", "secrets", "-n", argocd], None).is_err() {
            assert!(start.elapsed() < Duration::from_secs(30), "the rights do not take effect");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let delete = ["delete", "--ignore-not-found", "--wait=false", "-f", "-"];
        self.cluster.run_with_text(&delete, &self.objects).ok();
    }
}

/// The same objects under names that nobody else has.
fn objects_of(role: Role, home: &str, name: &str, argocd: &str) -> String {
    let text = role.rights().replace(&format!("bowline-{}", role.word()), name);
    let text = text.replace("serviceaccount:bowline:", &format!("serviceaccount:{home}:"));
    let lines = text.lines().map(|line| match line.trim_end() {
        "  namespace: argocd" => format!("  namespace: {argocd}"),
        "  namespace: bowline" => format!("  namespace: {home}"),
        "  name: bowline" => format!("  name: {home}"),
        line => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn reached_by(cluster: &Cluster, token: &str) -> Value {
    let text = cluster.ok(&["config", "view", "--raw", "-o", "json"]);
    let mut how: Value = serde_json::from_str(&text).unwrap();
    how["users"][0]["user"] = json!({"token": token});
    how
}
