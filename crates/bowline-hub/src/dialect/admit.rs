//! Who may connect in the dialect, and as whom.

use bowline_argocd::auth::{CLIENT_ID, CLIENT_SECRET, Certificate, Method, check_name};
use bowline_argocd::claims::Client;
use bowline_argocd::uuid;
use bowline_resources::Mode;
use bowline_types::NodeId;
use bowline_wire::{AuthRequest, AuthResponse, Call, Peer, Refusal};

use super::Dialect;
use crate::clock;
use crate::state::State;

/// Agents come back after this, and after few other statuses.
fn no(why: impl std::fmt::Display) -> Refusal {
    Refusal::unauthenticated(why.to_string())
}

impl Dialect {
    /// Lets an agent in, by the method that is set.
    pub(crate) fn authenticate(
        &self,
        state: &State,
        peer: &Peer,
        call: &Call,
        request: &AuthRequest,
    ) -> Result<AuthResponse, Refusal> {
        if request.method != self.method.name() {
            let (theirs, ours) = (&request.method, self.method.name());
            return Err(no(format!("the agent comes by {theirs:?}, this hub takes {ours:?}")));
        }
        let name = self.name_of(peer, call, request)?;
        check_name(&name, &self.namespace, None).map_err(no)?;
        let mode: Mode = request.mode.parse().map_err(no)?;
        self.check_roster(state, &name, mode)?;
        let client = Client { name, mode };
        let now = clock::now();
        let failed = |e: bowline_argocd::claims::KeyError| no(e);
        Ok(AuthResponse {
            access_token: self.signer.access(&client, &fresh(), now).map_err(failed)?,
            refresh_token: self.signer.refresh(&client, &fresh(), now).map_err(failed)?,
            // A Go agent wants its own version back, and its hub's is not its business.
            version: request.version.clone(),
            namespace: self.namespace.clone(),
        })
    }

    fn name_of(&self, peer: &Peer, call: &Call, request: &AuthRequest) -> Result<String, Refusal> {
        match &self.method {
            Method::Mtls { part, pattern } => {
                let der =
                    peer.certificate.as_ref().ok_or_else(|| no("no certificate was shown"))?;
                let certificate = Certificate::from_der(der).map_err(no)?;
                certificate.agent(*part, pattern).map_err(no)
            }
            Method::UserPass { .. } => {
                let given = |key| request.credentials.get(key).map_or("", String::as_str);
                let (name, secret) = (given(CLIENT_ID), given(CLIENT_SECRET));
                let known = self.users.check(name, secret);
                known.then(|| name.to_owned()).ok_or_else(|| no("unknown name or wrong secret"))
            }
            Method::Header { name, pattern } => {
                let value =
                    call.metadata.get(name).ok_or_else(|| no(format!("no header {name}")))?;
                pattern.name_in(value).map_err(no)
            }
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
            return Err(no(format!(
                "{name} says that it is {mode}, the roster says {}",
                entry.mode
            )));
        }
        Ok(node)
    }

    /// A new access token for a refresh token.
    pub(crate) fn refresh(&self, state: &State, token: &str) -> Result<AuthResponse, Refusal> {
        let (one, two) = (fresh(), fresh());
        let renewed = self.signer.renew(token, [&one, &two], clock::now()).map_err(no)?;
        self.check_roster(state, &renewed.client.name, renewed.client.mode)?;
        Ok(AuthResponse {
            access_token: renewed.access,
            refresh_token: renewed.refresh.unwrap_or_default(),
            version: String::new(),
            namespace: self.namespace.clone(),
        })
    }

    /// Whose call it is.
    pub(crate) fn subscriber(&self, state: &State, call: &Call) -> Result<NodeId, Refusal> {
        let token = call.token.as_deref().ok_or_else(|| no("no access token"))?;
        let client = self.signer.check_access(token, clock::now()).map_err(no)?;
        self.check_roster(state, &client.name, client.mode)
    }
}

/// A fresh UUID.
pub(super) fn fresh() -> String {
    uuid(rand::random())
}
