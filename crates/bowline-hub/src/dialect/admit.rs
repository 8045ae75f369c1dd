//! Who may connect in the dialect, and as whom.

use bowline_argocd::auth::{
    CLIENT_ID, CLIENT_SECRET, Certificate, Line, METHODS, Method, check_name,
};
use bowline_argocd::claims::Client;
use bowline_argocd::uuid;
use bowline_resources::{Mode, RosterEntry, Speaks};
use bowline_types::NodeId;
use bowline_wire::{AuthRequest, AuthResponse, Call, Peer, Refusal, Transport};

use super::{CertificateRule, Dialect, Newcomers};
use crate::clock;
use crate::state::State;

/// A call, and the line that it came by.
pub(crate) struct Visit<'a> {
    pub(crate) peer: &'a Peer,
    pub(crate) call: &'a Call,
    pub(crate) line: Line,
}

/// Agents come back after this, and after few other statuses.
fn no(why: impl std::fmt::Display) -> Refusal {
    Refusal::unauthenticated(why.to_string())
}

impl Dialect {
    /// Lets an agent in, by the method that is set.
    pub(crate) async fn authenticate(
        &self,
        state: &State,
        visit: &Visit<'_>,
        request: &AuthRequest,
    ) -> Result<AuthResponse, Refusal> {
        self.check_transport(visit)?;
        if request.method != self.method.name() {
            let theirs = METHODS.iter().find(|m| **m == request.method).unwrap_or(&"another way");
            let ours = self.method.name();
            return Err(no(format!("the agent comes by {theirs}, this hub takes {ours}")));
        }
        let name = self.name_of(visit, request).await?;
        check_name(&name, &self.options.namespace, None).map_err(no)?;
        self.check_certificate(state, visit.peer, visit.line, &name)?;
        let mode: Mode = request.mode.parse().map_err(no)?;
        self.enter(state, &name, mode).await?;
        let node = self.check_roster(state, &name, mode)?;
        state.foreign.note_version(&node, &request.version);
        let client = Client { name, mode };
        let now = clock::now();
        let failed = |e: bowline_argocd::claims::KeyError| no(e);
        let signer = self.keys.signer();
        Ok(AuthResponse {
            access_token: signer.access(&client, &fresh(), now).map_err(failed)?,
            refresh_token: signer.refresh(&client, &fresh(), now).map_err(failed)?,
            // A Go agent wants its own version back, and its hub's is not its business.
            version: request.version.clone(),
            namespace: self.options.namespace.clone(),
        })
    }

    fn check_transport(&self, visit: &Visit<'_>) -> Result<(), Refusal> {
        if visit.call.transport == Transport::WebSocket && !self.options.websocket {
            return Err(no("this hub takes no WebSocket: remove --enable-websocket"));
        }
        Ok(())
    }

    async fn name_of(&self, visit: &Visit<'_>, request: &AuthRequest) -> Result<String, Refusal> {
        match &self.method {
            Method::Mtls { part, pattern } => {
                let shown = certificate(visit.peer)?;
                let shown = shown.ok_or_else(|| no("no certificate was shown"))?;
                shown.agent(*part, pattern).map_err(no)
            }
            Method::UserPass { .. } => {
                let given = |key| request.credentials.get(key).cloned().unwrap_or_default();
                let (name, secret) = (given(CLIENT_ID), given(CLIENT_SECRET));
                let from = visit.peer.remote.ip();
                let known = self.keys.check(from, name.clone(), secret).await.map_err(no)?;
                known.then_some(name).ok_or_else(|| no("unknown name or wrong secret"))
            }
            // Anybody could set it where no mesh stands in front of us.
            Method::Header { .. } if visit.line == Line::Tls => {
                Err(no("this hub takes names by header on its port without TLS only"))
            }
            Method::Header { name, pattern } => {
                let value =
                    visit.call.metadata.get(name).ok_or_else(|| no(format!("no header {name}")))?;
                pattern.name_in(value).map_err(no)
            }
        }
    }

    /// Whether the certificate of a connection, or the lack of one, goes with a name.
    fn check_certificate(
        &self,
        state: &State,
        peer: &Peer,
        line: Line,
        name: &str,
    ) -> Result<Option<String>, Refusal> {
        if line == Line::Plaintext {
            return Ok(None);
        }
        let shown = certificate(peer)?;
        if let (Method::Mtls { part, pattern }, Some(shown)) = (&self.method, &shown) {
            let other = shown.agent(*part, pattern).map_err(no)?;
            if other != name {
                return Err(no(format!("the token is for {name}, the certificate for {other}")));
            }
        }
        let needed = matches!(self.method, Method::Mtls { .. })
            || self.options.certificate != CertificateRule::Optional;
        let Some(shown) = shown else {
            return if needed { Err(no("no certificate was shown")) } else { Ok(None) };
        };
        if self.options.certificate == CertificateRule::Named {
            let common_name = Some(shown.common_name.as_str());
            check_name(name, &self.options.namespace, common_name).map_err(no)?;
        }
        if self.is_blocked(state, &shown.fingerprint) {
            return Err(no("the certificate is on the block list: issue another"));
        }
        Ok(Some(shown.fingerprint))
    }

    /// Whether a certificate no longer counts.
    pub(super) fn is_blocked(&self, state: &State, fingerprint: &str) -> bool {
        let list = self.options.blocklist.as_ref().zip(state.plane.as_ref());
        let list = list.and_then(|(name, plane)| plane.config_map(name));
        list.is_some_and(|list| list.rest.get("data").is_some_and(|d| d.get(fingerprint).is_some()))
    }

    /// Enters a newcomer in the roster, where that is wished.
    async fn enter(&self, state: &State, name: &str, mode: Mode) -> Result<(), Refusal> {
        let node = NodeId::new(name).map_err(no)?;
        if self.options.newcomers == Newcomers::Refused || state.views.roster.entry(&node).is_some()
        {
            return Ok(());
        }
        self.check_known(state, &node).await?;
        let new = RosterEntry::new(node, mode, clock::now());
        let entry = RosterEntry { speaks: Speaks::ArgocdAgent, ..new };
        match state.enlist(&entry, None).await {
            Ok(_) => tracing::info!(agent = name, %mode, "entered in the roster"),
            // Another call of the same agent was faster, or the hub ends: the roster says.
            Err(error) => tracing::debug!(agent = name, %error, "not entered in the roster"),
        }
        Ok(())
    }

    /// Whether Argo CD knows a newcomer as a cluster, where that is asked for. Where it is not, as with
    /// argocd-agent's own principal, it is said what Argo CD lacks.
    async fn check_known(&self, state: &State, agent: &NodeId) -> Result<(), Refusal> {
        let Some(plane) = &state.plane else { return Ok(()) };
        let remedy = || format!("argocd-agentctl agent create {agent}");
        let known = plane.knows_cluster(agent).await;
        if self.options.newcomers != Newcomers::Known {
            if matches!(known, Ok(false)) && !plane.makes_clusters() {
                tracing::warn!(%agent, remedy = remedy(), "Argo CD has no cluster Secret for it");
            }
            return Ok(());
        }
        match known {
            Ok(true) => Ok(()),
            Ok(false) => {
                Err(no(format!("Argo CD has no cluster Secret for {agent}: {}", remedy())))
            }
            Err(error) => Err(no(format!("whether Argo CD knows {agent} cannot be told: {error}"))),
        }
    }

    fn check_roster(&self, state: &State, name: &str, mode: Mode) -> Result<NodeId, Refusal> {
        let node = NodeId::new(name).map_err(no)?;
        let entry = state.views.roster.entry(&node);
        let entry = entry.ok_or_else(|| {
            no(format!("{name} is not in the roster: bowline agents create {name} --mode {mode}"))
        })?;
        if entry.revoked.is_some() {
            return Err(no(format!("{name} has been revoked")));
        }
        if entry.mode != mode {
            let had = entry.mode;
            let change = match entry.speaks {
                Speaks::ArgocdAgent => format!("`bowline agents mode {name} {mode}`"),
                // Nobody of this name has been here, or one of our own, who hands over.
                Speaks::Native => format!(
                    "`bowline agents remove {name}` and `bowline agents create {name} --mode {mode}`"
                ),
            };
            return Err(no(format!(
                "{name} says that it is {mode}, the roster says {had}: start it with --agent-mode \
                 {had}, or change the roster with {change}"
            )));
        }
        if !self.keys.knows(name) {
            return Err(no(format!("{name} is not in the file of names and secrets any more")));
        }
        Ok(node)
    }

    /// A new access token for a refresh token.
    pub(crate) fn refresh(
        &self,
        state: &State,
        peer: &Peer,
        line: Line,
        token: &str,
    ) -> Result<AuthResponse, Refusal> {
        let (one, two) = (fresh(), fresh());
        let renewed = self.keys.signer().renew(token, [&one, &two], clock::now()).map_err(no)?;
        self.check_certificate(state, peer, line, &renewed.client.name)?;
        let agent = self.check_roster(state, &renewed.client.name, renewed.client.mode)?;
        tracing::debug!(%agent, "a token is renewed");
        Ok(AuthResponse {
            access_token: renewed.access,
            refresh_token: renewed.refresh.unwrap_or_default(),
            version: String::new(),
            namespace: self.options.namespace.clone(),
        })
    }

    /// Whose call it is.
    pub(crate) fn subscriber(&self, state: &State, visit: &Visit<'_>) -> Result<NodeId, Refusal> {
        self.check_transport(visit)?;
        let token = visit.call.token.as_deref().ok_or_else(|| no("no access token"))?;
        let client = self.keys.signer().check_access(token, clock::now()).map_err(no)?;
        let shown = self.check_certificate(state, visit.peer, visit.line, &client.name)?;
        let node = self.check_roster(state, &client.name, client.mode)?;
        state.foreign.note_shown(&node, shown);
        Ok(node)
    }
}

/// The certificate of a connection, if there is one.
fn certificate(peer: &Peer) -> Result<Option<Certificate>, Refusal> {
    let read = |der: &rustls::pki_types::CertificateDer<'_>| Certificate::from_der(der);
    peer.certificate.as_ref().map(read).transpose().map_err(no)
}

/// A fresh UUID.
pub(super) fn fresh() -> String {
    uuid(rand::random())
}
