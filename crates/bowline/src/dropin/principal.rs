//! From the flags of `argocd-agent principal` to a hub's settings.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::{Value, json};

use super::given::Given;
use super::log;
use super::material::Source;
use crate::failure::{Failure, Outcome};

/// The variable of the setting that says what becomes of agents that are not in the roster.
const NEWCOMERS: &str = "BOWLINE_GO_AGENTS_NEWCOMERS";

/// What a principal's command line means for a hub.
#[derive(Debug)]
pub(crate) struct Principal {
    /// Settings of the hub, by path.
    pub(crate) settings: Vec<(String, Value)>,
    /// What agents of argocd-agent see and are checked by.
    pub(crate) faces: Faces,
    /// How the control plane is reached.
    pub(crate) access: bowline_kube::Access,
    /// The namespace of Argo CD.
    pub(crate) namespace: String,
}

/// What agents of argocd-agent see and are checked by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Faces {
    /// Nothing: there is no TLS.
    Plaintext,
    /// The hub's own certificate; theirs are of these CAs.
    Own {
        /// Their CAs.
        roots: Source,
    },
    /// This certificate.
    Given {
        /// The chain.
        certificate: Source,
        /// Its key.
        key: Source,
        /// Their CAs.
        roots: Source,
    },
}

impl Principal {
    /// Reads it. `pod` is the namespace of the pod that this runs in, if it is one.
    pub(super) fn of(given: &Given, pod: Option<&str>) -> Outcome<Self> {
        let auth = given.some("auth").ok_or_else(|| {
            let hint = "say how agents prove who they are, such as --auth 'mtls:CN=([^,]+)'";
            Failure::usage("--auth is needed").hint(hint)
        })?;
        let namespace =
            given.some("namespace").unwrap_or_else(|| pod.unwrap_or("argocd").to_owned());
        let mut settings = vec![];
        let mut set = |path: &str, value: Value| settings.push((path.to_owned(), value));
        set("go-agents.auth", json!(auth));
        // As upstream's does: it asks for no Secret. A variable may ask for more.
        if std::env::var_os(NEWCOMERS).is_none() {
            set("go-agents.newcomers", json!("enlisted"));
        }
        set("go-agents.certificate", json!(certificate_rule(given)?));
        set("control-plane.namespace", json!(namespace));
        for (path, value) in ports(given)?.into_iter().chain(plane(given)?).chain(keys(given)) {
            set(path, value);
        }
        set("log.level", json!(log::filter(&given.list("log-level"), "bowline_hub::dialect")?));
        set("log.format", json!(log::format(given.text("log-format"))?));
        let access = super::reach(given);
        set("control-plane.reach", json!(super::reach_name(&access)));
        if let bowline_kube::Access::Kubeconfig { path, context } = &access {
            set("control-plane.kubeconfig", json!(path));
            set("control-plane.context", json!(context));
        }
        settings.retain(|(_, value)| !value.is_null());
        Ok(Self { settings, faces: Faces::of(given)?, access, namespace })
    }
}

/// A port on every address, or on the one that is given.
fn at(host: &str, port: Option<u16>) -> Outcome<String> {
    let Some(port) = port else { return Ok("off".to_owned()) };
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) => Ok(format!("[{address}]:{port}")),
        Ok(address) => Ok(format!("{address}:{port}")),
        Err(_) if host.is_empty() => Ok(format!("0.0.0.0:{port}")),
        Err(_) if host == "localhost" => Ok(format!("127.0.0.1:{port}")),
        Err(_) => {
            let what = format!("--listen-host: {host:?} is not an address");
            Err(Failure::usage(what).hint("write the address itself, or leave it out"))
        }
    }
}

fn ports(given: &Given) -> Outcome<Vec<(&'static str, Value)>> {
    let host = given.text("listen-host");
    let port = |name: &str| given.port(name).map_err(|e| Failure::usage(e.to_string()));
    let agents = port("listen-port")?.ok_or_else(|| Failure::usage("--listen-port cannot be 0"))?;
    let agents = at(host, Some(agents))?;
    let mut out = vec![
        ("metrics", json!(at("", port("metrics-port")?)?)),
        ("health", json!(at("", port("healthz-port")?)?)),
    ];
    if given.is_on("insecure-plaintext") {
        // Our own agents need TLS: what is left of their port is for this machine.
        out.extend([("go-agents.plaintext", json!(agents)), ("listen", json!("127.0.0.1:0"))]);
    } else {
        out.push(("listen", json!(agents)));
    }
    Ok(out)
}

fn certificate_rule(given: &Given) -> Outcome<&'static str> {
    match (given.is_on("require-client-certs"), given.is_on("client-cert-subject-match")) {
        (true, true) => Ok("named"),
        (true, false) => Ok("required"),
        (false, false) => Ok("optional"),
        (false, true) => {
            let what = "--client-cert-subject-match needs --require-client-certs";
            Err(Failure::usage(what))
        }
    }
}

fn plane(given: &Given) -> Outcome<Vec<(&'static str, Value)>> {
    let destination = given.is_on("destination-based-mapping");
    let mut labels = BTreeMap::new();
    for label in given.list("namespace-create-labels") {
        let wrong =
            || Failure::usage(format!("--namespace-create-labels: {label:?} is not KEY=VALUE"));
        let (key, value) = label.split_once('=').ok_or_else(wrong)?;
        labels.insert(key.to_owned(), value.to_owned());
    }
    let mut out = vec![
        ("control-plane.mapping", json!(if destination { "destination" } else { "namespace" })),
        ("control-plane.namespaces", json!(given.list("allowed-namespaces"))),
        ("control-plane.selector", json!(given.some("label-selector"))),
        ("control-plane.create-namespaces", json!(given.is_on("namespace-create-enable"))),
        ("control-plane.namespace-pattern", json!(given.some("namespace-create-pattern"))),
        ("control-plane.namespace-labels", json!(labels)),
    ];
    if given.is_on("enable-self-cluster-registration") {
        let secret = given.some("self-registration-client-cert-secret").ok_or_else(|| {
            let what = "--enable-self-cluster-registration needs \
                        --self-registration-client-cert-secret";
            Failure::usage(what)
        })?;
        let proxy = given.some("resource-proxy-address");
        out.extend([
            ("control-plane.cluster-secrets.proxy", json!(proxy)),
            ("control-plane.cluster-secrets.credentials", json!(secret)),
            ("control-plane.cluster-secrets.made", json!("on-contact")),
        ]);
    }
    Ok(out)
}

/// What signs agents' tokens: a file, else a key that is kept, else the Secret.
fn keys(given: &Given) -> Vec<(&'static str, Value)> {
    match given.some("jwt-key") {
        Some(file) => vec![("go-agents.key", json!(file))],
        None if given.is_on("insecure-jwt-generate") => vec![],
        None => vec![("go-agents.key-secret", json!(given.text("jwt-secret-name")))],
    }
}

impl Faces {
    fn of(given: &Given) -> Outcome<Self> {
        if given.is_on("insecure-plaintext") {
            return Ok(Self::Plaintext);
        }
        let roots = match given.some("root-ca-path") {
            Some(path) => Source::File(path.into()),
            None => Source::Secret {
                name: given.text("tls-ca-secret-name").to_owned(),
                fields: &["tls.crt", "ca.crt"],
            },
        };
        if given.is_on("insecure-tls-generate") {
            return Ok(Self::Own { roots });
        }
        let (certificate, key) = match (given.some("tls-cert"), given.some("tls-key")) {
            (Some(cert), Some(key)) => (Source::File(cert.into()), Source::File(key.into())),
            (None, None) => {
                let part = |fields| Source::Secret {
                    name: given.text("tls-secret-name").to_owned(),
                    fields,
                };
                (part(&["tls.crt"]), part(&["tls.key"]))
            }
            _ => return Err(Failure::usage("--tls-cert and --tls-key belong together")),
        };
        Ok(Self::Given { certificate, key, roots })
    }

    /// The pieces to read: CAs, and perhaps certificate and key.
    pub(crate) fn sources(&self) -> Vec<Source> {
        match self {
            Self::Plaintext => vec![],
            Self::Own { roots } => vec![roots.clone()],
            Self::Given { certificate, key, roots } => {
                vec![roots.clone(), certificate.clone(), key.clone()]
            }
        }
    }
}

#[cfg(test)]
mod tests;
