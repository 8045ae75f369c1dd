//! The Secrets by which Argo CD knows agents as clusters. Whatever somebody else made is left alone.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_kube::{Apply, Delete, Error, Heard, Propagation, Scope, Watch};
use bowline_resources::Object;
use bowline_resources::argocd::{AGENT_NAME, SECRET_TYPE};
use bowline_types::NodeId;
use serde_json::{Value, json};

use super::{ClusterSecrets, ClustersMade, Plane};
use crate::dialect::DialectError;
use crate::state::State;

/// On what the hub made, and may therefore change and take away.
const MADE: &str = "bowline.io/made-by";
/// As argocd-agent marks what its agents asked for by connecting.
const SELF_REGISTERED: &str = "argocd-agent.argoproj-labs.io/self-registered-cluster";
/// Keeps Argo CD's controller from working on the cluster itself.
const SKIP_RECONCILE: &str = "argocd.argoproj.io/skip-reconcile";

impl Plane {
    /// An agent is connected.
    pub(crate) fn met(&self, agent: &NodeId) {
        let made = self.options.cluster_secrets.as_ref().map(|c| c.made);
        if made == Some(ClustersMade::OnContact) && self.known.lock().met.insert(agent.clone()) {
            self.inbox.agents([agent.clone()]);
        }
    }

    /// Whether a Secret makes an agent known to Argo CD as a cluster, whoever made it.
    pub(crate) async fn knows_cluster(&self, agent: &NodeId) -> Result<bool, Error> {
        let kind = self.cluster.kind("", "Secret").await?;
        let own = Scope::Namespaces(vec![self.options.namespace.clone()]);
        let labels = format!("{SECRET_TYPE}=cluster,{AGENT_NAME}={agent}");
        let found = self.cluster.list(&kind, &own, Some(&labels)).await?;
        Ok(!found.is_empty())
    }

    /// Whether the hub itself sees to that.
    pub(crate) fn makes_clusters(&self) -> bool {
        self.options.cluster_secrets.is_some()
    }

    /// Makes the Secret of an agent what it should be, or takes it away with its agent.
    pub(super) async fn show_cluster(&self, state: &Arc<State>, agent: &NodeId) {
        let Some(how) = &self.options.cluster_secrets else { return };
        let shown = match state.views.roster.entry(agent) {
            None => self.drop_cluster(agent).await,
            Some(_) if how.made == ClustersMade::OnEntry || self.has_met(agent) => {
                self.make_cluster(state, agent, how).await
            }
            Some(_) => return,
        };
        if let Err(error) = shown {
            tracing::warn!(%agent, %error, "Argo CD does not know the agent as a cluster yet");
            self.inbox.agent_later(agent, super::intake::REFUSED);
        }
    }

    fn has_met(&self, agent: &NodeId) -> bool {
        self.known.lock().met.contains(agent)
    }

    async fn make_cluster(
        &self,
        state: &State,
        agent: &NodeId,
        how: &ClusterSecrets,
    ) -> Result<(), String> {
        let text = |e: Error| e.to_string();
        let kind = self.cluster.kind("", "Secret").await.map_err(text)?;
        let (namespace, name) = (Some(self.options.namespace.as_str()), name_of(agent));
        let there = self.cluster.get(&kind, namespace, &name).await.map_err(text)?;
        if there.as_ref().is_some_and(|there| !is_ours(there)) {
            return Ok(());
        }
        let server = format!("https://{}?agentName={agent}", how.proxy);
        let config = self.credentials(state, agent, how).await?;
        let is_right = |there: &Object| {
            let same = says(there, "server").as_ref() == Some(&server) && shows(there, &config);
            same && !is_stale(state, there)
        };
        if there.as_ref().is_some_and(is_right) {
            return Ok(());
        }
        let mut secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {
                "name": name, "namespace": namespace,
                "labels": {SECRET_TYPE: "cluster", AGENT_NAME: agent.as_str()},
                "annotations": {
                    "managed-by": "argocd-agent", SKIP_RECONCILE: "true", MADE: "hub",
                },
            },
            "data": {
                "name": STANDARD.encode(agent.as_str()),
                "server": STANDARD.encode(&server),
                "config": STANDARD.encode(config.to_string()),
            },
        });
        if how.made == ClustersMade::OnContact {
            secret["metadata"]["labels"][SELF_REGISTERED] = "true".into();
        }
        let secret = Object::from_value(secret).map_err(|e| e.to_string())?;
        let force = Apply { force: true, ..Apply::default() };
        self.cluster.apply(&kind, &secret, force).await.map_err(text)?;
        tracing::info!(%agent, secret = name_of(agent), "Argo CD knows the agent as a cluster");
        Ok(())
    }

    /// What Argo CD shows at the resource proxy, in its own words.
    async fn credentials(
        &self,
        state: &State,
        agent: &NodeId,
        how: &ClusterSecrets,
    ) -> Result<Value, String> {
        let Some(name) = &how.credentials else {
            let token = state.dialect.as_ref().and_then(|d| d.proxy_token(agent));
            let token = token.ok_or(
                "there is nothing to show at the resource proxy: name a Secret in \
                 control-plane.cluster-secrets.credentials, or set go-agents.auth",
            )?;
            let ca = STANDARD.encode(state.pki.bundle().to_pem());
            return Ok(json!({"bearerToken": token, "tlsClientConfig": {"caData": ca}}));
        };
        let mut tls = json!({"insecure": false});
        for (field, says) in [("tls.crt", "certData"), ("tls.key", "keyData"), ("ca.crt", "caData")]
        {
            let text = self.secret_text(name, field).await.map_err(|e| chain(&e))?;
            tls[says] = STANDARD.encode(text).into();
        }
        let mut config = json!({"tlsClientConfig": tls});
        // One certificate for all: the token says which agent is meant.
        if let Some(token) = state.dialect.as_ref().and_then(|d| d.proxy_token(agent)) {
            config["bearerToken"] = token.into();
        }
        Ok(config)
    }

    async fn drop_cluster(&self, agent: &NodeId) -> Result<(), String> {
        self.known.lock().met.remove(agent);
        let text = |e: Error| e.to_string();
        let kind = self.cluster.kind("", "Secret").await.map_err(text)?;
        let (namespace, name) = (Some(self.options.namespace.as_str()), name_of(agent));
        let there = self.cluster.get(&kind, namespace, &name).await.map_err(text)?;
        let Some(there) = there.filter(is_ours) else { return Ok(()) };
        let how = Delete {
            uid: there.metadata.uid.clone(),
            resource_version: None,
            propagation: Propagation::Background,
        };
        self.cluster.delete(&kind, namespace, &name, how).await.map(drop).map_err(text)
    }

    /// The key of tokens is another, or the hub's authorities are: what shows them must show the new ones.
    pub(crate) fn resign(&self) {
        if self.makes_clusters() {
            self.inbox.everything();
        }
    }

    /// Follows the Secret with the certificate that the Secrets of all agents show, which is renewed.
    pub(super) async fn follow_credentials(&self) {
        let how = self.options.cluster_secrets.as_ref();
        let Some(name) = how.and_then(|how| how.credentials.as_ref()) else { return };
        loop {
            let mut watch = match self.secrets().await {
                Ok(watch) => watch,
                Err(error) => {
                    tracing::warn!(%error, name, "the Secret with the clusters' certificate is not followed yet");
                    tokio::time::sleep(super::intake::REFUSED).await;
                    continue;
                }
            };
            loop {
                match watch.next().await {
                    Heard::Put(secret) if secret.metadata.name == *name => self.resign(),
                    Heard::Trouble(error) => {
                        tracing::warn!(%error, name, "the Secret with the clusters' certificate is not told");
                    }
                    Heard::Put(_) | Heard::Gone { .. } | Heard::Missed { .. } | Heard::Listed => {}
                }
            }
        }
    }

    /// Follows the Secrets of Argo CD's namespace.
    pub(crate) async fn secrets(&self) -> Result<Watch, Error> {
        let kind = self.cluster.kind("", "Secret").await?;
        let scope = Scope::Namespaces(vec![self.options.namespace.clone()]);
        Ok(self.cluster.watch(&kind, scope, None))
    }

    /// A text in a Secret of Argo CD's namespace.
    pub(crate) async fn secret_text(
        &self,
        name: &str,
        field: &'static str,
    ) -> Result<String, DialectError> {
        let failed = |source: Error| DialectError::Secret {
            name: name.to_owned(),
            source: Box::new(source),
        };
        let kind = self.cluster.kind("", "Secret").await.map_err(failed)?;
        let namespace = Some(self.options.namespace.as_str());
        let secret = self.cluster.get(&kind, namespace, name).await.map_err(failed)?;
        let text = secret.as_ref().and_then(|secret| says(secret, field));
        text.ok_or_else(|| DialectError::Field { name: name.to_owned(), field })
    }
}

fn name_of(agent: &NodeId) -> String {
    format!("cluster-{agent}")
}

fn is_ours(secret: &Object) -> bool {
    secret.metadata.annotations.contains_key(MADE)
}

/// Whether a Secret shows this, whatever token it bears: each that is signed is another.
fn shows(secret: &Object, config: &Value) -> bool {
    let bare = |mut config: Value| {
        if let Some(token) = config.get_mut("bearerToken") {
            *token = Value::Null;
        }
        config
    };
    let shown = says(secret, "config").and_then(|text| serde_json::from_str::<Value>(&text).ok());
    shown.is_some_and(|shown| bare(shown) == bare(config.clone()))
}

/// Whether a Secret bears a token of a key that is no longer ours.
fn is_stale(state: &State, secret: &Object) -> bool {
    let config = says(secret, "config").and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let token = config.as_ref().and_then(|config| config.get("bearerToken")?.as_str());
    let dialect = state.dialect.as_ref();
    token.zip(dialect).is_some_and(|(token, dialect)| !dialect.is_proxy_token(token))
}

/// A value of a Secret, if it is text.
pub(super) fn says(secret: &Object, field: &str) -> Option<String> {
    let coded = secret.rest.get("data")?.get(field).and_then(Value::as_str)?;
    String::from_utf8(STANDARD.decode(coded).ok()?).ok()
}

/// An error and all that caused it.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_with_a_certificate_that_was_renewed_since_is_not_right() {
        let config = |cert: &str, token: Option<&str>| {
            let mut config = json!({"tlsClientConfig": {"certData": cert, "caData": "CA"}});
            config.as_object_mut().unwrap().extend(token.map(|t| ("bearerToken".into(), t.into())));
            config
        };
        let secret = |config: &Value| {
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cluster-a1"},
                "data": {"config": STANDARD.encode(config.to_string())},
            });
            Object::from_value(secret).unwrap()
        };
        let made = secret(&config("first", Some("t1")));
        assert!(shows(&made, &config("first", Some("t2"))), "it would be written without end");
        assert!(!shows(&made, &config("second", Some("t1"))), "Argo CD would show what has ended");
        assert!(!shows(&made, &config("first", None)));
        let mut ca = config("first", Some("t1"));
        ca["tlsClientConfig"]["caData"] = "another".into();
        assert!(!shows(&made, &ca));
    }
}
