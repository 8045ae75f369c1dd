//! From what was found to what to do: pure.

use bowline_types::Wall;
use serde_json::{Value, json};

use super::{Found, Known, Plan, Side, Step, Volumes, Workload};
use crate::dropin::flags::{AGENT, Flag, PRINCIPAL};
use crate::dropin::given::Given;
use crate::dropin::objects::{CA, CLIENT_TLS, JWT, PRINCIPAL_TLS};

/// A certificate that ends within this time is worth a word.
const SOON: u64 = 30 * 86_400_000;
/// The image in the commands, for whoever builds it to replace.
const IMAGE: &str = "IMAGE";
/// Where the store is in the container.
const DATA: &str = "/var/lib/bowline";
/// The group that the image runs as, which must be able to write to its volume.
const GROUP: u32 = 65532;
/// A workload that cannot be changed, but deleted and created.
const POD: &str = "pod";

/// What to do, as of `now`.
pub(crate) fn plan(mut found: Found, now: Wall) -> Plan {
    let principal = found.principal.as_ref().and_then(|side| given(side, PRINCIPAL));
    let agent = found.agent.as_ref().and_then(|side| given(side, AGENT));
    if principal.as_ref().is_some_and(|given| given.is_on("destination-based-mapping")) {
        found.mapping = "destination".into();
    }
    let warnings = warnings(&found, principal.as_ref(), now);
    let mut steps = vec![];
    if let Some((side, workload)) = running(found.principal.as_ref()) {
        steps.push(replace_principal(side, workload));
    }
    if let Some((side, workload)) = running(found.agent.as_ref()) {
        steps.push(replace_agent(side, workload));
    }
    steps.extend(found.agents.iter().map(|known| go_native(known, found.principal.as_ref())));
    let lacks = lacks(principal.as_ref(), agent.as_ref());
    Plan { found, warnings, steps, lacks }
}

fn running(side: Option<&Side>) -> Option<(&Side, &Workload)> {
    side.and_then(|side| side.workload.as_ref().map(|workload| (side, workload)))
}

/// The command line of a side, as it would be read here; none if it would be refused.
fn given(side: &Side, table: &'static [Flag]) -> Option<Given> {
    let workload = side.workload.as_ref()?;
    let variable =
        |name: &str| workload.env.get(name).or_else(|| workload.hidden.get(name)).cloned();
    Given::read(table, &workload.args, variable).ok()
}

fn kubectl(side: &Side) -> String {
    let context = side.context.as_ref().map_or(String::new(), |c| format!(" --context {c}"));
    format!("kubectl{context} -n {}", side.namespace)
}

fn warnings(found: &Found, principal: Option<&Given>, now: Wall) -> Vec<String> {
    let mut out = vec![];
    let sides = [
        (found.principal.as_ref(), "principal", &[CA, PRINCIPAL_TLS, JWT][..]),
        (found.agent.as_ref(), "agent", &[CA, CLIENT_TLS]),
    ];
    for (side, role, needed) in sides {
        let Some(side) = side else { continue };
        let place = &side.namespace;
        if side.workload.is_none() {
            out.push(format!("nothing in the namespace {place} runs argocd-agent's {role}"));
        }
        for name in needed.iter().filter(|name| !side.objects.iter().any(|i| i.name == **name)) {
            out.push(format!("the {role}'s Secret {place}/{name} is not there"));
        }
        for item in &side.objects {
            let until = item.until.as_deref().and_then(bowline_resources::parse_rfc3339);
            if until.is_some_and(|until| until.0 < now.0 + SOON) {
                let until = item.until.as_deref().unwrap_or_default();
                out.push(format!("the certificate in {place}/{} ends at {until}", item.name));
            }
        }
    }
    out.extend(refused(found));
    for known in &found.agents {
        out.extend(about(known, principal, &found.mapping));
    }
    out
}

/// Command lines that would not be taken.
fn refused(found: &Found) -> Vec<String> {
    let sides = [(found.principal.as_ref(), PRINCIPAL), (found.agent.as_ref(), AGENT)];
    let told = sides.into_iter().filter_map(|(side, table)| {
        let workload = side?.workload.as_ref()?;
        let error = Given::read(table, &workload.args, |_| None).err()?;
        Some(format!("{}: its command line would be refused: {error}", workload.name))
    });
    told.collect()
}

fn about(known: &Known, principal: Option<&Given>, mapping: &str) -> Option<String> {
    let name = &known.name;
    if mapping == "destination" {
        return None;
    }
    if !known.namespace {
        return Some(format!("the agent {name} has no namespace of its name on the control plane"));
    }
    let allowed = principal?.list("allowed-namespaces");
    let fits = |p: &String| bowline_resources::argocd::glob::matches(p, name);
    let left_out = !allowed.iter().any(fits);
    left_out.then(|| format!("--allowed-namespaces leaves the agent {name} out"))
}

/// The same Pods with another program in them, and a disk for its store.
fn swap(side: &Side, workload: &Workload, claim: &str) -> Vec<String> {
    let kubectl = kubectl(side);
    let (name, at) = (&workload.name, format!("{}/{}", workload.kind, workload.name));
    let pvc = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": claim},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    let patch = patch(workload, claim);
    let mut out = vec![
        format!("{kubectl} get {at} -o yaml > {name}-before.yaml"),
        format!("{kubectl} create -f - <<< '{pvc}'"),
    ];
    match workload.kind.as_str() {
        POD => out.extend([
            format!(
                "kubectl patch --local -f {name}-before.yaml -o yaml --patch '{patch}' > {name}-after.yaml"
            ),
            format!("{kubectl} delete {at}"),
            format!("{kubectl} create -f {name}-after.yaml"),
            format!("{kubectl} wait --for=condition=Ready --timeout=5m {at}"),
        ]),
        _ => out.extend([
            format!("{kubectl} patch {at} --patch '{patch}'"),
            format!("{kubectl} rollout status {at}"),
        ]),
    }
    out
}

/// What is different of a workload.
fn patch(workload: &Workload, claim: &str) -> Value {
    // Where the role is among the words of the command, it stays there.
    let words = workload.command.iter().skip(1).map(String::as_str);
    let command: Vec<_> = std::iter::once("argocd-agent").chain(words).collect();
    let mut pod = json!({
        "volumes": [{"name": "bowline", "persistentVolumeClaim": {"claimName": claim}}],
        "containers": [{
            "name": workload.container, "image": IMAGE, "command": command,
            "env": [{"name": "BOWLINE_DATA", "value": DATA}],
            "volumeMounts": [{"name": "bowline", "mountPath": DATA}],
        }],
    });
    if workload.volumes == Volumes::AsMade {
        pod["securityContext"] = json!({"fsGroup": GROUP});
    }
    match workload.kind.as_str() {
        POD => {
            // What is made anew is put on a node anew.
            pod["nodeName"] = Value::Null;
            json!({"metadata": {"resourceVersion": null, "uid": null}, "spec": pod, "status": null})
        }
        "deployment" => json!({"spec": {
            // Two at a time would write to one disk.
            "strategy": {"type": "Recreate", "rollingUpdate": null}, "template": {"spec": pod},
        }}),
        _ => json!({"spec": {"template": {"spec": pod}}}),
    }
}

fn back(side: &Side, workload: &Workload) -> Vec<String> {
    let (kubectl, name) = (kubectl(side), &workload.name);
    match workload.kind.as_str() {
        POD => vec![
            format!("{kubectl} delete pod/{name}"),
            format!("{kubectl} create -f {name}-before.yaml"),
        ],
        _ => vec![format!("{kubectl} replace --force -f {name}-before.yaml")],
    }
}

fn replace_principal(side: &Side, workload: &Workload) -> Step {
    let exec = format!("{} exec {}/{} -- bowline", kubectl(side), workload.kind, workload.name);
    Step {
        title: format!(
            "Put a Bowline hub in the place of the principal {} ({})",
            workload.name, workload.version
        ),
        commands: swap(side, workload, "bowline-hub"),
        stays: "every agent, unmodified; Secrets, ConfigMaps, Services, namespaces, Applications; \
                the command line and its variables; the account and its rights"
            .into(),
        check: vec![
            format!("{exec} agents list      # each agent is up, in its mode"),
            format!("{exec} get objects -A   # Synced"),
            format!("{exec} doctor"),
        ],
        back: back(side, workload),
    }
}

fn replace_agent(side: &Side, workload: &Workload) -> Step {
    let logs = format!("{} logs {}/{}", kubectl(side), workload.kind, workload.name);
    let mut check = vec![format!("{logs}      # ready, and no error")];
    check.push(format!("{} get applications   # as before", kubectl(side)));
    Step {
        title: format!(
            "Put Bowline in the place of the agent {} ({}); its principal may be either",
            workload.name, workload.version
        ),
        commands: swap(side, workload, "bowline-agent"),
        stays: "the principal; Secrets, ConfigMaps, Applications; the command line; the account \
                and its rights"
            .into(),
        check,
        back: back(side, workload),
    }
}

/// Later, or never: an agent that speaks the hub's own protocol.
fn go_native(known: &Known, principal: Option<&Side>) -> Step {
    let name = &known.name;
    let mode = if known.mode == "autonomous" { " --mode autonomous" } else { "" };
    let hub = principal.map_or("bowline".to_owned(), |side| {
        let workload = side.workload.clone().unwrap_or_default();
        format!("{} exec {}/{} -- bowline", kubectl(side), workload.kind, workload.name)
    });
    Step {
        title: format!(
            "Later, once the hub is Bowline's: let {name} ({}, {} Applications) join it natively",
            known.mode, known.applications
        ),
        commands: vec![
            "# on the agent's cluster: scale argocd-agent's agent to zero".into(),
            format!(
                "{hub} join-token {name}{mode}   # into the Secret bowline-join, see docs/argocd.md"
            ),
            "# on the agent's cluster: install the chart with role=agent".into(),
        ],
        stays: "its Applications, on both sides; all other agents".into(),
        check: vec![
            format!("{hub} agents list"),
            format!("{hub} get objects -a {name}   # all Synced"),
        ],
        back: vec!["# remove Bowline's agent and scale argocd-agent's up again".into()],
    }
}

fn lacks(principal: Option<&Given>, agent: Option<&Given>) -> Vec<String> {
    let mut out = vec![];
    for (role, given) in [("principal", principal), ("agent", agent)] {
        let notices = given.map(Given::without_effect).unwrap_or_default();
        out.extend(notices.into_iter().map(|n| format!("{role} {}: {}", n.flag, n.why)));
    }
    out.push(
        "an agent that proves its name is entered in the roster, with or without a Secret \
         cluster-NAME; `bowline agents remove` and `revoke` keep one out"
            .into(),
    );
    out.push("a change of an agent's mode is made at the hub too: `bowline agents mode`".into());
    out
}

#[cfg(test)]
mod tests;
