//! From the flags of `argocd-agent agent` to an agent's settings, and to its principal.

use std::time::Duration;

use bowline_resources::Mode;
use serde_json::{Value, json};

use super::given::Given;
use super::log;
use super::material::Source;
use crate::failure::{Failure, Outcome};

/// What an agent's command line means.
#[derive(Debug)]
pub(crate) struct Agent {
    /// Settings of the agent, by path.
    pub(crate) settings: Vec<(String, Value)>,
    /// The principal's host.
    pub(crate) host: String,
    /// And port.
    pub(crate) port: u16,
    /// `--creds`, as it stands.
    pub(crate) creds: String,
    pub(crate) mode: Mode,
    pub(crate) line: Line,
    pub(crate) websocket: bool,
    pub(crate) compression: bool,
    pub(crate) by_destination: bool,
    pub(crate) heartbeat: Option<Duration>,
    pub(crate) keepalive: Option<Duration>,
    /// How its cluster is reached, where the Secrets are.
    pub(crate) access: bowline_kube::Access,
    pub(crate) namespace: String,
}

/// How it goes to the principal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Without TLS.
    Plaintext,
    /// With it.
    Tls {
        /// Whom to trust; none: anybody.
        roots: Option<Source>,
        /// What to show.
        certificate: Source,
        /// Its key.
        key: Source,
    },
}

impl Agent {
    /// Reads it.
    pub(super) fn of(given: &Given) -> Outcome<Self> {
        let usage = |e: super::given::Error| Failure::usage(e.to_string());
        let host = given.some("server-address").ok_or_else(|| {
            Failure::usage("--server-address is needed").hint("name the principal's host")
        })?;
        let port = given.port("server-port").map_err(usage)?;
        let port = port.ok_or_else(|| Failure::usage("--server-port cannot be 0"))?;
        let mode = given.text("agent-mode").parse::<Mode>();
        let mode = mode.map_err(|e| Failure::usage(format!("--agent-mode: {e}")))?;
        let namespace = given.some("namespace");
        let namespace = namespace.ok_or_else(|| Failure::usage("--namespace cannot be empty"))?;
        let access = super::reach(given);
        let mut settings = settings(given, &namespace)?;
        settings.push(("kubernetes.reach", json!(super::reach_name(&access))));
        if let bowline_kube::Access::Kubeconfig { path, context } = &access {
            settings.push(("kubernetes.kubeconfig", json!(path)));
            settings.push(("kubernetes.context", json!(context)));
        }
        let settings = settings.into_iter().filter(|(_, value)| !value.is_null());
        let every = |name: &str| Some(given.duration(name)).filter(|every| !every.is_zero());
        Ok(Self {
            settings: settings.map(|(path, value)| (path.to_owned(), value)).collect(),
            host,
            port,
            creds: given.some("creds").unwrap_or_else(|| "mtls:".to_owned()),
            mode,
            line: Line::of(given)?,
            websocket: given.is_on("enable-websocket"),
            compression: given.is_on("enable-compression"),
            by_destination: given.is_on("destination-based-mapping"),
            heartbeat: every("heartbeat-interval"),
            keepalive: every("keep-alive-ping-interval"),
            access,
            namespace,
        })
    }
}

fn settings(given: &Given, namespace: &str) -> Outcome<Vec<(&'static str, Value)>> {
    let at = |name: &str| -> Outcome<Value> {
        let port = given.port(name).map_err(|e| Failure::usage(e.to_string()))?;
        Ok(json!(port.map_or("off".to_owned(), |port| format!("0.0.0.0:{port}"))))
    };
    let namespaces = given.list("allowed-namespaces");
    Ok(vec![
        ("metrics", at("metrics-port")?),
        ("health", at("healthz-port")?),
        ("kubernetes.namespace", json!(namespace)),
        ("kubernetes.namespaces", json!(namespaces)),
        ("kubernetes.create-namespaces", json!(given.is_on("create-namespace"))),
        ("kubernetes.selector", json!(given.some("label-selector"))),
        ("kubernetes.adoption", json!(given.text("adoption-policy"))),
        ("kubernetes.mismatch", json!(given.text("source-uid-mismatch-policy"))),
        ("kubernetes.recreation", json!(given.text("on-application-recreate"))),
        ("log.level", json!(log::filter(&given.list("log-level"), "bowline_agent::principal")?)),
        ("log.format", json!(log::format(given.text("log-format"))?)),
    ])
}

impl Line {
    fn of(given: &Given) -> Outcome<Self> {
        if given.is_on("insecure-plaintext") {
            return Ok(Self::Plaintext);
        }
        let secret =
            |flag: &str, fields| Source::Secret { name: given.text(flag).to_owned(), fields };
        let roots = match given.some("root-ca-path") {
            _ if given.is_on("insecure-tls") => None,
            Some(path) => Some(Source::File(path.into())),
            None => Some(secret("root-ca-secret-name", &["ca.crt", "tls.crt"])),
        };
        let files = (given.some("tls-client-cert"), given.some("tls-client-key"));
        let (certificate, key) = match files {
            (Some(cert), Some(key)) => (Source::File(cert.into()), Source::File(key.into())),
            (None, None) => {
                (secret("tls-secret-name", &["tls.crt"]), secret("tls-secret-name", &["tls.key"]))
            }
            _ => {
                let what = "--tls-client-cert and --tls-client-key belong together";
                return Err(Failure::usage(what));
            }
        };
        Ok(Self::Tls { roots, certificate, key })
    }

    /// The pieces to read: certificate, key, and perhaps CAs.
    pub(crate) fn sources(&self) -> Vec<Source> {
        match self {
            Self::Plaintext => vec![],
            Self::Tls { roots, certificate, key } => {
                [certificate, key].into_iter().chain(roots).cloned().collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::flags::AGENT;
    use super::*;
    use crate::config::{Agent as Settings, Layers};

    fn read(args: &[&str]) -> Outcome<Agent> {
        let args: Vec<String> = args.iter().map(|a| (*a).to_owned()).collect();
        Agent::of(&Given::read(AGENT, &args, |_| None).unwrap())
    }

    #[test]
    fn flags_reach_their_settings() {
        let agent = read(&[
            "--server-address=p.example",
            "--agent-mode=managed",
            "--heartbeat-interval=30s",
            "--allowed-namespaces=*",
            "--keep-alive-ping-interval=6m",
            "--create-namespace",
            "--adoption-policy=never",
            "--source-uid-mismatch-policy=upsert",
            "--on-application-recreate=clear-status",
            "--kubeconfig=/dev/null",
            "--log-level=warn,grpc-event=debug",
        ])
        .unwrap();
        assert_eq!(
            (agent.host.as_str(), agent.port, agent.mode),
            ("p.example", 443, Mode::Managed)
        );
        assert_eq!(agent.heartbeat, Some(Duration::from_secs(30)));
        assert_eq!(agent.keepalive, Some(Duration::from_secs(360)));
        let layers = Layers::read(None, agent.settings).unwrap();
        let settings = layers.load::<Settings>().unwrap().settings;
        assert_eq!(settings.health.to_string(), "0.0.0.0:8001");
        assert_eq!(settings.log.level, "warn,bowline_agent::principal=debug");
        let cluster = settings.kubernetes.options().unwrap().unwrap();
        assert_eq!(
            (cluster.namespace.as_str(), cluster.namespaces),
            ("argocd", vec!["*".to_owned()])
        );
        assert_eq!(cluster.adoption, bowline_agent::Adoption::Never);
        assert_eq!(cluster.mismatch, bowline_agent::Mismatch::Upsert);
        assert_eq!(cluster.recreation, bowline_agent::Recreation::ClearStatus);
    }

    #[test]
    fn certificates_come_from_secrets_unless_files_are_named() {
        let line = |args: &[&str]| {
            let mut all = vec!["--server-address=p"];
            all.extend(args);
            read(&all).map(|a| a.line)
        };
        let Line::Tls { roots, certificate, .. } = line(&[]).unwrap() else { panic!("plaintext") };
        let name = "argocd-agent-client-tls".to_owned();
        assert_eq!(certificate, Source::Secret { name, fields: &["tls.crt"] });
        assert!(matches!(roots, Some(Source::Secret { name, .. }) if name == "argocd-agent-ca"));
        let Line::Tls { roots, .. } = line(&["--insecure-tls"]).unwrap() else { panic!("plain") };
        assert_eq!(roots, None);
        assert_eq!(line(&["--insecure-plaintext"]).unwrap(), Line::Plaintext);
        assert!(line(&["--tls-client-key=/k"]).is_err());
        assert!(read(&[]).unwrap_err().message.contains("--server-address"));
        assert!(read(&["--server-address=p", "--agent-mode=x"]).is_err());
    }
}
