//! AppProjects: which agent gets which, and what it gets.

use serde_json::{Value, json};

use super::glob::matches;
use super::{IN_CLUSTER, IN_CLUSTER_SERVER, LAST_APPLIED, SOURCE_UID};
use crate::Object;

/// How an Application finds its agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mapping {
    /// By its namespace on the control plane, which bears the agent's name.
    #[default]
    Namespace,
    /// By the name of its destination.
    Destination,
}

/// The project as a managed agent gets it; none if it is not for that agent.
pub fn for_agent(project: &Object, agent: &str, mapping: Mapping) -> Option<Object> {
    let spec = project.spec.as_ref()?;
    let destinations: Vec<&Value> = list(spec, "destinations").collect();
    if destinations.iter().any(|d| denies(d, agent)) {
        return None;
    }
    let ours: Vec<&Value> = destinations.into_iter().filter(|d| names(d, agent)).collect();
    let may_live_there = match mapping {
        Mapping::Namespace => list(spec, "sourceNamespaces")
            .filter_map(Value::as_str)
            .any(|pattern| may_live(pattern, agent)),
        Mapping::Destination => true,
    };
    if ours.is_empty() || !may_live_there {
        return None;
    }
    let at_home = |d: &&Value| {
        let mut d = (*d).clone();
        d["name"] = IN_CLUSTER.into();
        d["server"] = IN_CLUSTER_SERVER.into();
        d
    };
    let destinations: Vec<Value> = ours.iter().map(at_home).collect();
    let mut out = project.intended();
    out.metadata.annotations.remove(LAST_APPLIED);
    let Some(Value::Object(spec)) = &mut out.spec else { return None };
    spec.insert("destinations".into(), destinations.into());
    spec.remove("roles");
    if mapping == Mapping::Namespace {
        spec.remove("sourceNamespaces");
    }
    Some(out)
}

/// Whether an entry of `sourceNamespaces`, a pattern or a `/regular expression/`, allows a namespace.
fn may_live(pattern: &str, namespace: &str) -> bool {
    let inner = pattern.strip_prefix('/').and_then(|p| p.strip_suffix('/'));
    match inner.filter(|inner| !inner.is_empty()) {
        Some(regex) => {
            let regex = regex::RegexBuilder::new(regex).size_limit(1 << 20).build();
            regex.is_ok_and(|regex| regex.is_match(namespace))
        }
        None => matches(pattern, namespace),
    }
}

/// The name of an autonomous agent's project on the control plane.
pub fn mirror_name(agent: &str, project: &str) -> String {
    format!("{agent}-{project}")
}

/// The project of an autonomous agent, as the control plane shows it in `namespace`.
#[must_use]
pub fn mirror(agent: &str, source_uid: &str, namespace: &str, project: &Object) -> Object {
    let mut out = project.intended();
    let name = project.metadata.name.clone();
    out.metadata.name = mirror_name(agent, &name);
    out.metadata.namespace = Some(namespace.to_owned());
    out.metadata.rest.remove("ownerReferences");
    out.metadata.finalizers.clear();
    out.metadata.annotations.remove(LAST_APPLIED);
    out.metadata.annotations.insert(SOURCE_UID.into(), source_uid.to_owned());
    let Some(Value::Object(spec)) = &mut out.spec else { return out };
    spec.insert("sourceNamespaces".into(), json!([agent]));
    for destination in
        spec.get_mut("destinations").and_then(Value::as_array_mut).into_iter().flatten()
    {
        // Whatever else stands there, an agent that no CRD checks may have written.
        if let Value::Object(destination) = destination {
            destination.insert("name".into(), agent.into());
            destination.insert("server".into(), "*".into());
        }
    }
    for role in spec.get_mut("roles").and_then(Value::as_array_mut).into_iter().flatten() {
        let policies = role.get_mut("policies").and_then(Value::as_array_mut);
        for policy in policies.into_iter().flatten() {
            if let Some(text) = policy.as_str() {
                *policy = policy_of(agent, &name, text).into();
            }
        }
    }
    out
}

/// A policy of a project, as it reads for the project's mirror; what is no such policy stays.
fn policy_of(agent: &str, project: &str, policy: &str) -> String {
    const RESOURCES: [&str; 4] = ["applications", "applicationsets", "logs", "exec"];
    let fields: Vec<&str> = policy.split(',').map(str::trim).collect();
    let [p, subject, resource, action, object, effect] = fields[..] else {
        return policy.to_owned();
    };
    let role = subject.strip_prefix(&format!("proj:{project}:"));
    let app = object.strip_prefix(&format!("{project}/"));
    let (Some(role), Some(app), true) = (role, app, p == "p" && RESOURCES.contains(&resource))
    else {
        return policy.to_owned();
    };
    // `project/namespace/app` names a namespace of the agent's cluster, which is the agent's here.
    let app = app.rsplit_once('/').map_or(app, |(_, app)| app);
    let mirror = mirror_name(agent, project);
    format!("p, proj:{mirror}:{role}, {resource}, {action}, {mirror}/{agent}/{app}, {effect}")
}

fn list<'a>(spec: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    spec.get(field).and_then(Value::as_array).into_iter().flatten()
}

/// Whether a destination names this agent.
fn names(destination: &Value, agent: &str) -> bool {
    let text = |field: &str| destination.get(field).and_then(Value::as_str).unwrap_or_default();
    let (name, server) = (text("name"), text("server"));
    let by_server = server == "*"
        || server.split_once("?agentName=").is_some_and(|(_, pattern)| matches(pattern, agent));
    let by_name = !name.is_empty() && !name.starts_with('!') && matches(name, agent);
    by_name || by_server
}

/// Whether a destination says: not this agent.
fn denies(destination: &Value, agent: &str) -> bool {
    let name = destination.get("name").and_then(Value::as_str).unwrap_or_default();
    name.strip_prefix('!').is_some_and(|pattern| matches(pattern, agent))
}

#[cfg(test)]
mod tests;
