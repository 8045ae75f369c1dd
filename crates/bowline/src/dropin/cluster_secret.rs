//! An agent as Argo CD knows it: the Secret `cluster-NAME`.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::objects::Secret;
use crate::failure::{Failure, Outcome};

/// The label that says which agent the Secret is for.
pub(crate) const AGENT: &str = "argocd-agent.argoproj-labs.io/agent-name";

/// A cluster as Argo CD has it in a Secret.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClusterSecret {
    pub(crate) agent: String,
    /// Where the resource proxy answers for the agent.
    pub(crate) server: String,
    pub(crate) labels: BTreeMap<String, String>,
    /// Argo CD's `config`, with whatever else it says.
    pub(crate) config: Value,
}

/// What Argo CD shows and trusts at the resource proxy, as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) cert: String,
    pub(crate) key: String,
    pub(crate) ca: String,
}

/// The name of the Secret.
pub(crate) fn name(agent: &str) -> String {
    format!("cluster-{agent}")
}

/// Where the resource proxy at `HOST:PORT` answers for an agent.
pub(crate) fn server(proxy: &str, agent: &str) -> Outcome<String> {
    let wrong = || Failure::usage(format!("{proxy:?} is not HOST:PORT"));
    let (host, port) = proxy.rsplit_once(':').ok_or_else(wrong)?;
    if host.is_empty() || host.contains(['/', '?']) || port.parse::<u16>().is_err() {
        return Err(wrong());
    }
    Ok(format!("https://{proxy}?agentName={agent}"))
}

impl ClusterSecret {
    /// A new one.
    pub(crate) fn new(agent: &str, server: String, credentials: &Credentials) -> Self {
        let mut new = Self {
            agent: agent.to_owned(),
            server,
            labels: BTreeMap::new(),
            config: json!({"tlsClientConfig": {"insecure": false}}),
        };
        new.set_credentials(credentials);
        new
    }

    /// Reads one.
    pub(crate) fn of(secret: &Secret) -> Outcome<Self> {
        let config = serde_json::from_str(&secret.text("config")?).map_err(|e| {
            Failure::new(format!("the Secret {}: its config is no JSON: {e}", secret.name))
        })?;
        let named = secret.name.strip_prefix("cluster-").unwrap_or(&secret.name);
        let agent = secret.labels.get(AGENT).map_or(named, String::as_str).to_owned();
        let (server, labels) = (secret.text("server")?, secret.labels.clone());
        Ok(Self { agent, server, labels, config })
    }

    pub(crate) fn set_credentials(&mut self, credentials: &Credentials) {
        let tls = &mut self.config["tlsClientConfig"];
        for (field, pem) in [
            ("certData", &credentials.cert),
            ("keyData", &credentials.key),
            ("caData", &credentials.ca),
        ] {
            tls[field] = json!(STANDARD.encode(pem));
        }
    }

    /// A part of the credentials, as PEM: `certData`, `keyData` or `caData`.
    pub(crate) fn pem(&self, field: &str) -> Outcome<String> {
        let wrong = || Failure::new(format!("{} has no {field}", name(&self.agent)));
        let text = self.config["tlsClientConfig"][field].as_str().ok_or_else(wrong)?;
        let bytes = STANDARD.decode(text).map_err(|_| wrong())?;
        String::from_utf8(bytes).map_err(|_| wrong())
    }

    /// As a Secret.
    pub(crate) fn secret(&self) -> Secret {
        let config = self.config.to_string();
        let data = [("name", &self.agent), ("server", &self.server), ("config", &config)];
        let data: Vec<_> = data.iter().map(|(k, v)| (*k, v.as_str())).collect();
        let mut secret = Secret::new(&name(&self.agent), "Opaque", &data);
        secret.labels = self.labels.clone();
        secret.labels.insert(AGENT.into(), self.agent.clone());
        secret.labels.insert("argocd.argoproj.io/secret-type".into(), "cluster".into());
        secret.annotations = BTreeMap::from([
            ("managed-by".to_owned(), "argocd-agent".to_owned()),
            // The control plane's controller must not deploy there by itself.
            ("argocd.argoproj.io/skip-reconcile".to_owned(), "true".to_owned()),
        ]);
        secret
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_as_it_was_written_and_keeps_what_it_does_not_know() {
        let credentials = Credentials { cert: "c".into(), key: "k".into(), ca: "a".into() };
        let server = server("proxy:9090", "a1").unwrap();
        assert_eq!(server, "https://proxy:9090?agentName=a1");
        let mut made = ClusterSecret::new("a1", server, &credentials);
        made.config["bearerToken"] = json!("t");
        let mut read = ClusterSecret::of(&made.secret()).unwrap();
        assert_eq!(read.pem("keyData").unwrap(), "k");
        read.set_credentials(&Credentials { key: "new".into(), ..credentials });
        assert_eq!(read.pem("keyData").unwrap(), "new");
        assert_eq!(read.config["bearerToken"], "t");
        for bad in ["proxy", ":1", "proxy:http", "https://proxy:1"] {
            assert!(super::server(bad, "a1").is_err(), "{bad}");
        }
    }
}
