//! What the roles of Bowline may do: `deploy/rbac`, and what goes with their settings.

use serde_json::Value;

const HUB: &str = include_str!("../../../deploy/rbac/hub.yaml");
const HUB_BY_DESTINATION: &str = include_str!("../../../deploy/rbac/hub-destination.yaml");
const AGENT: &str = include_str!("../../../deploy/rbac/agent.yaml");
const AGENT_OF_PATTERNS: &str = include_str!("../../../deploy/rbac/agent-patterns.yaml");
const AGENT_EVERYWHERE: &str = include_str!("../../../deploy/rbac/agent-everywhere.yaml");

/// What a hub or an agent may do: a file of `deploy/rbac`, and the kinds that its settings name.
#[derive(Clone, Debug)]
pub struct Rights {
    pub(crate) role: &'static str,
    file: &'static str,
    kinds: Vec<String>,
}

impl Rights {
    /// Those for a hub with these flags and settings. Who goes by destinations makes no namespaces.
    pub fn of_hub(flags: &[&str], settings: &Value) -> Self {
        let plane = &settings["control-plane"];
        let by_destination = plane["mapping"] == "destination" || flags.contains(&"destination");
        let makes_secrets = !plane["cluster-secrets"].is_null();
        let file = if by_destination || makes_secrets { HUB_BY_DESTINATION } else { HUB };
        Self { role: "hub", file, kinds: kinds_of(plane) }
    }

    /// Those for an agent with these settings. Who has namespaces beside its own has them everywhere.
    pub fn of_agent(settings: &Value) -> Self {
        let own = &settings["kubernetes"];
        let file = match (&own["create-namespaces"], &own["namespaces"]) {
            (Value::Bool(true), _) => AGENT_OF_PATTERNS,
            (_, Value::Null) => AGENT,
            _ => AGENT_EVERYWHERE,
        };
        Self { role: "agent", file, kinds: kinds_of(own) }
    }

    /// Those for an agent everywhere: that to Applications is in no namespace, and outlives each.
    pub fn of_agent_everywhere() -> Self {
        Self { role: "agent", file: AGENT_EVERYWHERE, kinds: vec![] }
    }

    /// Those of a file that somebody else wrote, with the names that the files of `deploy/rbac` have.
    pub fn like(role: &'static str, file: &'static str) -> Self {
        Self { role, file, kinds: vec![] }
    }

    /// The rules for further kinds, as the chart has them under `kinds`.
    fn of_kinds(&self) -> String {
        let verbs = match self.role {
            "hub" => "get, list, watch, patch",
            _ => "get, list, watch, create, patch, delete",
        };
        let rule = |kind: &String| {
            let (group, kind) = kind.split_once('/').unwrap_or(("", kind));
            let resource = format!("{}s", kind.to_lowercase());
            format!("- apiGroups: [{group}]\n  resources: [{resource}]\n  verbs: [{verbs}]\n")
        };
        self.kinds.iter().map(rule).collect()
    }

    /// The objects of the file under names that nobody else has.
    pub(crate) fn objects(&self, home: &str, name: &str, argocd: &str) -> String {
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
    kinds.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
