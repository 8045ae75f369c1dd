//! Agents, join tokens, pings.

use bytes::Bytes;
use http::Method;
use serde_json::Value;

use super::{Call, Client};
use crate::Error;
use crate::api::{
    AgentCreate, AgentView, Done, JoinTokenCreate, JoinTokenCreated, JoinTokenView, List,
    ModeChange, Page, PingReport, PingRequest, Revoke, paths,
};

impl Client {
    /// One page of the agents, by name.
    pub async fn agents(
        &self,
        selector: Option<&str>,
        page: &Page,
    ) -> Result<List<AgentView>, Error> {
        #[derive(serde::Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Query<'a> {
            label_selector: Option<&'a str>,
            limit: Option<usize>,
            #[serde(rename = "continue")]
            from: Option<&'a str>,
        }
        let from = page.from.as_deref();
        let query = Query { label_selector: selector, limit: page.limit, from };
        self.get(paths::AGENTS, &query).await
    }

    /// One agent.
    pub async fn agent(&self, name: &str) -> Result<AgentView, Error> {
        self.get(&paths::agent(name), &()).await
    }

    /// Enters an agent in the roster.
    pub async fn create_agent(&self, agent: &AgentCreate) -> Result<AgentView, Error> {
        self.post(paths::AGENTS, agent).await
    }

    /// Changes [`crate::api::AgentSettings`] by an RFC 7386 merge patch.
    pub async fn patch_agent(&self, name: &str, patch: &Value) -> Result<AgentView, Error> {
        let bytes = Bytes::from(patch.to_string());
        let call = Call::default().bytes(bytes, "application/merge-patch+json");
        self.call(Method::PATCH, &paths::agent(name), call).await.map(|w| w.value)
    }

    /// Begins a change of mode; the answer's `changing` says whether it is still under way.
    pub async fn change_mode(&self, name: &str, change: &ModeChange) -> Result<AgentView, Error> {
        let call = Call::default().json(change);
        self.call(Method::PUT, &paths::agent_mode(name), call).await.map(|w| w.value)
    }

    /// Takes an agent, its shelves and its certificates out of the fleet.
    pub async fn remove_agent(&self, name: &str) -> Result<Done, Error> {
        self.delete(&paths::agent(name)).await
    }

    /// Cuts an agent off, at once and until it joins anew.
    pub async fn revoke_agent(&self, name: &str, reason: &str) -> Result<AgentView, Error> {
        self.post(&paths::agent_revoke(name), &Revoke { reason: reason.into() }).await
    }

    /// Sends bytes through a tunnel to the agent and back.
    pub async fn ping(&self, name: &str, ping: &PingRequest) -> Result<PingReport, Error> {
        self.post(&paths::agent_ping(name), ping).await
    }

    /// Makes a token with which one agent may join once.
    pub async fn create_join_token(
        &self,
        token: &JoinTokenCreate,
    ) -> Result<JoinTokenCreated, Error> {
        self.post(paths::JOIN_TOKENS, token).await
    }

    /// The join tokens that were not used and have not ended.
    pub async fn join_tokens(&self) -> Result<List<JoinTokenView>, Error> {
        self.get(paths::JOIN_TOKENS, &()).await
    }

    /// Takes a join token back.
    pub async fn revoke_join_token(&self, id: &str) -> Result<Done, Error> {
        self.delete(&paths::join_token(id)).await
    }
}
