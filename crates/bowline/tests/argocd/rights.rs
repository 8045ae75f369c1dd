//! The accounts and rights of `deploy/rbac`, under names of one scene.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster::Cluster;

const HUB: &str = include_str!("../../../../deploy/rbac/hub.yaml");
const HUB_BY_DESTINATION: &str = include_str!("../../../../deploy/rbac/hub-destination.yaml");
const AGENT: &str = include_str!("../../../../deploy/rbac/agent.yaml");
const AGENT_OF_PATTERNS: &str = include_str!("../../../../deploy/rbac/agent-patterns.yaml");
const AGENT_EVERYWHERE: &str = include_str!("../../../../deploy/rbac/agent-everywhere.yaml");

/// What a hub or an agent may do: a file of `deploy/rbac`, and the kinds that its settings name.
pub(crate) struct Rights {
    role: &'static str,
    file: &'static str,
    kinds: Vec<String>,
}

impl Rights {
    /// Those for a hub with these flags and settings. Who goes by destinations makes no namespaces.
    pub(crate) fn of_hub(flags: &[&str], settings: &Value) -> Self {
        let plane = &settings["control-plane"];
        let by_destination = plane["mapping"] == "destination" || flags.contains(&"destination");
        let makes_secrets = !plane["cluster-secrets"].is_null();
        let file = if by_destination || makes_secrets { HUB_BY_DESTINATION } else { HUB };
        Self { role: "hub", file, kinds: kinds_of(plane) }
    }

    /// Those for an agent with these settings. Who has namespaces beside its own has them everywhere.
    pub(crate) fn of_agent(settings: &Value) -> Self {
        let own = &settings["kubernetes"];
        let file = match (&own["create-namespaces"], &own["namespaces"]) {
            (Value::Bool(true), _) => AGENT_OF_PATTERNS,
            (_, Value::Null) => AGENT,
            _ => AGENT_EVERYWHERE,
        };
        Self { role: "agent", file, kinds: kinds_of(own) }
    }

    /// Those for an agent everywhere: they are in no namespace, and outlive each.
    pub(crate) fn of_agent_everywhere() -> Self {
        Self { role: "agent", file: AGENT_EVERYWHERE, kinds: vec![] }
    }

    /// The rules for further kinds, as the chart has them under `kinds`.
    fn of_kinds(&self) -> String {
        let verbs = match self.role {
            "hub" => "get, list, watch, patch",
            _ => "get, list, watch, create, patch, delete",
        };
        let rule = |kind: &String| {
            let (group, kind) = kind.split_once('/').unwrap();
            let resource = format!("{}s", kind.to_lowercase());
            format!("- apiGroups: [{group}]\n  resources: [{resource}]\n  verbs: [{verbs}]\n")
        };
        self.kinds.iter().map(rule).collect()
    }

    /// The objects of the file under names that nobody else has.
    fn objects(&self, home: &str, name: &str, argocd: &str) -> String {
        let text = self.file.replace(&format!("bowline-{}", self.role), name);
        let text = text.replace("serviceaccount:bowline:", &format!("serviceaccount:{home}:"));
        let text = text.replacen("\nrules:\n", &format!("\nrules:\n{}", self.of_kinds()), 1);
        let lines = text.lines().map(|line| match line.trim_end() {
            "  namespace: argocd" => format!("  namespace: {argocd}"),
            "  namespace: bowline" => format!("  namespace: {home}"),
            "  name: bowline" => format!("  name: {home}"),
            line => line.to_owned(),
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

fn kinds_of(settings: &Value) -> Vec<String> {
    let kinds = settings["kinds"].as_array();
    kinds.into_iter().flatten().map(|kind| kind.as_str().unwrap().to_owned()).collect()
}

/// An account on a cluster that may do what its rights say, and no more. It goes when
/// this is dropped.
pub(crate) struct Account {
    cluster: Cluster,
    objects: String,
    kubeconfig: tempfile::NamedTempFile,
}

impl Account {
    /// Makes an account for a scene, where Argo CD is in the namespace `argocd`.
    pub(crate) fn new(rights: &Rights, cluster: &Cluster, scene: &str, argocd: &str) -> Self {
        let (home, name) =
            (format!("{scene}-{}", rights.role), format!("bowline-{}-{scene}", rights.role));
        let objects = rights.objects(&home, &name, argocd);
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

fn reached_by(cluster: &Cluster, token: &str) -> Value {
    let text = cluster.ok(&["config", "view", "--raw", "-o", "json"]);
    let mut how: Value = serde_json::from_str(&text).unwrap();
    how["users"][0]["user"] = json!({"token": token});
    how
}
