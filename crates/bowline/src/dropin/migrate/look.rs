//! Looking at an installation. Nothing is changed.

use bowline_identity::{Validity, pem};
use bowline_kube::{Error, Scope};
use bowline_resources::Object;
use bowline_resources::argocd::GROUP;
use serde_json::Value;

use super::variables::{Sources, Variables};
use super::{Found, Item, Known, Side, Volumes, Workload};
use crate::dropin::cluster_secret;
use crate::dropin::objects::{
    BLOCKLIST, CA, CLIENT_TLS, JWT, PARAMS, PRINCIPAL_TLS, PROXY_TLS, Secret, Site,
};
use crate::failure::{Failure, Outcome};

const SOURCE_UID: &str = "argocd.argoproj.io/source-uid";
const IDENTITY: &str = "argocd-agent-principal-identity";
/// Where OpenShift says which groups the Pods of a namespace are given.
const NAMESPACE_GROUPS: &str = "openshift.io/sa.scc.supplemental-groups";
/// What is in a ConfigMap that a container names.
const VARIABLES: &str = "variables";

/// Looks at the control plane, at an agent's cluster, or at both. Each comes with its context.
pub(crate) async fn look(
    principal: Option<(Option<String>, Site)>,
    agent: Option<(Option<String>, Site)>,
) -> Outcome<Found> {
    let mut found = Found { mapping: "namespace".into(), ..Found::default() };
    if let Some((context, site)) = principal {
        let names = [CA, PRINCIPAL_TLS, PROXY_TLS, JWT];
        found.principal = Some(side(&site, context, "principal", &names).await?);
        found.agents = agents(&site).await?;
    }
    if let Some((context, site)) = agent {
        found.agent = Some(side(&site, context, "agent", &[CA, CLIENT_TLS]).await?);
    }
    Ok(found)
}

async fn side(site: &Site, context: Option<String>, role: &str, secrets: &[&str]) -> Outcome<Side> {
    let mut objects = vec![];
    for name in secrets {
        objects.extend(site.secret(name).await?.map(|secret| described(&secret)));
    }
    for (name, what) in [
        (PARAMS, VARIABLES),
        (BLOCKLIST, "certificates that no longer count"),
        (IDENTITY, "the principal's uid"),
    ] {
        objects.extend(site.config_map(name).await?.map(|data| counted(name, what, data.len())));
    }
    let mut workload = None;
    if let Some((found, container)) = workload_of(site, role).await? {
        let sources = Sources::read(site, &container).await?;
        let maps = sources.config_maps.iter().map(|(name, d)| counted(name, VARIABLES, d.len()));
        let more: Vec<_> = maps.chain(sources.secrets.values().map(described)).collect();
        let is_new = |item: &Item| !objects.iter().any(|had| is_same(had, item));
        let more: Vec<_> = more.into_iter().filter(is_new).collect();
        objects.extend(more);
        workload = Some(found.with(Variables::of(&container, &sources)));
    }
    Ok(Side { context, namespace: site.namespace.clone(), workload, objects })
}

fn is_same(one: &Item, other: &Item) -> bool {
    (&one.kind, &one.name) == (&other.kind, &other.name)
}

/// A ConfigMap, and how much is in it.
fn counted(name: &str, what: &str, count: usize) -> Item {
    let holds = format!("{what}: {count}");
    Item { kind: "ConfigMap".into(), name: name.into(), holds, until: None }
}

fn described(secret: &Secret) -> Item {
    let fields: Vec<_> = secret.data.keys().map(String::as_str).collect();
    let certificate = ["tls.crt", "ca.crt"].iter().find_map(|field| secret.text(field).ok());
    let leaf = certificate.and_then(|text| Some(pem::certificates(&text).ok()?.swap_remove(0)));
    let until = leaf.and_then(|der| Some(Validity::of(&der).ok()?.not_after));
    Item {
        kind: "Secret".into(),
        name: secret.name.clone(),
        holds: fields.join(", "),
        until: until.map(bowline_resources::rfc3339),
    }
}

/// All objects of a kind in the namespace; none where it is not served.
async fn list(site: &Site, group: &str, kind: &str, namespace: &str) -> Outcome<Vec<Object>> {
    let failed = |e: Error| Failure::of(&e);
    let kind = match site.cluster.kind(group, kind).await {
        Err(Error::NoKind { .. }) => return Ok(vec![]),
        other => other.map_err(failed)?,
    };
    let scope = Scope::Namespaces(vec![namespace.to_owned()]);
    site.cluster.list(&kind, &scope, None).await.map_err(failed)
}

/// What runs a role: a Deployment, a StatefulSet, else a bare Pod; and its container.
async fn workload_of(site: &Site, role: &str) -> Outcome<Option<(Workload, Value)>> {
    for (group, kind) in [("apps", "Deployment"), ("apps", "StatefulSet"), ("", "Pod")] {
        for object in list(site, group, kind, &site.namespace).await? {
            let spec = object.spec.unwrap_or_default();
            let pod = if kind == "Pod" { &spec } else { &spec["template"]["spec"] };
            let containers = pod["containers"].as_array().cloned().unwrap_or_default();
            let found = containers.into_iter().find_map(|c| Some((runs(&c, role)?, c)));
            if let Some((found, container)) = found {
                let (kind, name) = (kind.to_lowercase(), object.metadata.name.clone());
                let volumes = volumes(site, pod).await?;
                return Ok(Some((Workload { kind, name, volumes, ..found }, container)));
            }
        }
    }
    Ok(None)
}

/// Who may write to the volumes of a Pod. OpenShift gives each namespace a group, and takes no
/// other.
async fn volumes(site: &Site, pod: &Value) -> Outcome<Volumes> {
    if !pod["securityContext"]["fsGroup"].is_null() {
        return Ok(Volumes::Group);
    }
    let failed = |e: Error| Failure::of(&e);
    let kind = site.cluster.kind("", "Namespace").await.map_err(failed)?;
    let namespace = site.cluster.get(&kind, None, &site.namespace).await.map_err(failed)?;
    let annotations = namespace.map(|namespace| namespace.metadata.annotations);
    Ok(match annotations.unwrap_or_default().contains_key(NAMESPACE_GROUPS) {
        true => Volumes::Group,
        false => Volumes::AsMade,
    })
}

/// What a container runs, if that is this role of argocd-agent.
fn runs(container: &Value, role: &str) -> Option<Workload> {
    let words = |field: &str| {
        let list = container[field].as_array().cloned().unwrap_or_default();
        list.iter().filter_map(|w| w.as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    let text = |field: &str| container[field].as_str().unwrap_or_default().to_owned();
    let (command, args) = (words("command"), words("args"));
    let image = text("image");
    let program = command.first().map_or(image.as_str(), String::as_str);
    let all: Vec<_> = command.iter().skip(1).chain(&args).cloned().collect();
    let is_it = program.contains("argocd-agent") || program.ends_with("bowline");
    if !is_it || all.first().map(String::as_str) != Some(role) {
        return None;
    }
    let version = image.rsplit_once(':').filter(|(_, tag)| !tag.contains('/'));
    Some(Workload {
        container: text("name"),
        version: version.map_or("unknown", |(_, tag)| tag).to_owned(),
        image: image.clone(),
        command,
        args: all[1..].to_vec(),
        ..Workload::default()
    })
}

impl Workload {
    fn with(self, variables: Variables) -> Self {
        let Variables { plain, secret, hidden } = variables;
        Self { env: plain, secret_env: secret, hidden, ..self }
    }
}

/// The agents of the control plane: those with a Secret for Argo CD.
async fn agents(site: &Site) -> Outcome<Vec<Known>> {
    let namespaces = site.cluster.kind("", "Namespace").await.map_err(|e| Failure::of(&e))?;
    let mut out = vec![];
    for secret in site.secrets(cluster_secret::AGENT).await? {
        let name = secret.labels.get(cluster_secret::AGENT).cloned().unwrap_or_default();
        let there = site.cluster.get(&namespaces, None, &name).await;
        let there = there.map_err(|e| Failure::of(&e))?.is_some();
        let apps = if there { list(site, GROUP, "Application", &name).await? } else { vec![] };
        out.push(Known { name, namespace: there, applications: apps.len(), mode: mode(&apps) });
    }
    out.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(out)
}

/// Mirrors of an autonomous agent bear the uid of their source; what people wrote does not.
fn mode(apps: &[Object]) -> &'static str {
    match apps {
        [] => "unknown",
        _ if apps.iter().all(|app| app.metadata.annotations.contains_key(SOURCE_UID)) => {
            "autonomous"
        }
        _ => "managed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_container_is_known_by_its_words() {
        let spec = json!({
            "name": "c", "image": "example.com/argocd-agent:v0.9.0", "args": ["principal", "-n", "a"],
        });
        let found = runs(&spec, "principal").unwrap();
        assert_eq!(
            (found.version.as_str(), found.args),
            ("v0.9.0", vec!["-n".to_owned(), "a".into()])
        );
        assert!(runs(&spec, "agent").is_none());
        let other = json!({"image": "nginx:1", "args": ["principal"]});
        assert!(runs(&other, "principal").is_none());
        let command =
            json!({"image": "x", "command": ["/bin/argocd-agent", "agent"], "args": ["-n=b"]});
        assert_eq!(runs(&command, "agent").unwrap().args, ["-n=b"]);
    }
}
