//! Who calls, and what that one may do.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{ConnectInfo, FromRequestParts};
use bowline_client::api::{Outcome, Role};
use bowline_identity::ApiToken;
use bowline_resources::{ObjectKey, RosterEntry};
use bowline_types::NodeId;
use http::header::AUTHORIZATION;
use http::request::Parts;

use crate::access::TokenEntry;
use crate::audit::Deed;
use crate::clock;
use crate::denials::and_more;
use crate::problem::{Code, Fault};
use crate::state::State;
use crate::views::roster::Listed;

/// The bearer of a valid token.
#[derive(Clone)]
pub(crate) struct Caller {
    token: TokenEntry,
    from: Option<SocketAddr>,
    state: Arc<State>,
}

impl FromRequestParts<Arc<State>> for Caller {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<State>) -> Result<Self, Fault> {
        let header = parts
            .headers
            .get(AUTHORIZATION)
            .ok_or_else(|| Code::NoToken.problem().hint("send `Authorization: Bearer <token>`"))?;
        let text = header.to_str().ok().and_then(|h| h.strip_prefix("Bearer "));
        let known = text.and_then(|text| {
            let shown = ApiToken::parse(text.trim()).ok()?;
            let (_, entry) = state.views.access.token(shown.id())?;
            shown.matches(&entry.hash).then_some(entry)
        });
        // One answer for every way of being wrong: a stranger learns nothing about tokens.
        let token = known.ok_or_else(|| Code::BadToken.problem())?;
        if token.expires.is_some_and(|end| clock::now() > end) {
            return Err(Code::BadToken.because("it has expired"));
        }
        state.pace.admit(&token.id, Instant::now()).map_err(|wait| {
            let mut fault = Code::TooFast.because("the token has used up its rate");
            fault.0.retry_after = Some(wait.as_secs() + 1);
            fault.hint("wait as long as Retry-After says; an admin sets limits.requests-per-second")
        })?;
        let from = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|c| c.0);
        Ok(Self { token, from, state: state.clone() })
    }
}

/// What somebody wants to do something with.
#[derive(Clone, Copy)]
struct About<'a> {
    what: &'a str,
    agent: Option<&'a str>,
}

impl Caller {
    /// The token's name.
    pub(crate) fn name(&self) -> &str {
        &self.token.name
    }

    /// Whether the token still counts: streams outlive the check that let them in.
    pub(crate) fn holds(&self) -> bool {
        let known = self.state.views.access.token(&self.token.id);
        known.is_some_and(|(_, t)| t.hash == self.token.hash)
            && self.token.expires.is_none_or(|end| clock::now() <= end)
    }

    /// Whether secrets may be shown.
    pub(crate) fn reveals(&self) -> bool {
        self.token.role >= Role::Operator
    }

    /// What it does, for the audit.
    pub(crate) fn deed(&self, verb: &'static str, what: impl Into<String>) -> Deed {
        Deed {
            who: self.token.name.clone(),
            from: self.from.map(|a| a.ip().to_string()),
            verb,
            what: what.into(),
            agent: None,
            detail: String::new(),
        }
    }

    /// Needs this role for the whole fleet.
    pub(crate) fn fleet(&self, role: Role, verb: &'static str, what: &str) -> Result<(), Fault> {
        let about = About { what, agent: None };
        self.role(role, verb, about)?;
        if self.token.agents.is_empty() && self.token.namespaces.is_empty() {
            return Ok(());
        }
        let why = "the token is limited to some agents or namespaces, and this is everybody's";
        Err(self.denied(Code::Scope, verb, about, why.into()))
    }

    /// Needs this role for an agent, which must be there.
    pub(crate) fn agent(
        &self,
        role: Role,
        verb: &'static str,
        name: &str,
    ) -> Result<Listed, Fault> {
        self.agent_for(role, verb, name, name)
    }

    /// The same, for something of that agent's.
    fn agent_for(
        &self,
        role: Role,
        verb: &'static str,
        name: &str,
        what: &str,
    ) -> Result<Listed, Fault> {
        let about = About { what, agent: Some(name) };
        self.role(role, verb, about)?;
        if !self.sees_agent(name) {
            let why = format!("the token is not for agent {name}");
            return Err(self.denied(Code::Scope, verb, about, why));
        }
        // What an admin does to an agent is done to all of its namespaces.
        if role == Role::Admin && !self.token.namespaces.is_empty() {
            let why = format!("the token is for some namespaces, and this is all of {name}");
            return Err(self.denied(Code::Scope, verb, about, why));
        }
        let listed = NodeId::new(name).ok().and_then(|n| self.state.views.roster.get(&n));
        listed.ok_or_else(|| {
            Code::NoAgent.because(format!("{name:?}")).hint("see `bowline agents list`")
        })
    }

    /// Needs this role for an object of an agent.
    pub(crate) fn object(
        &self,
        role: Role,
        verb: &'static str,
        agent: &str,
        key: &ObjectKey,
    ) -> Result<Arc<RosterEntry>, Fault> {
        let what = key.to_string();
        let listed = self.agent_for(role, verb, agent, &what)?;
        if !self.sees_namespace(key.namespace_spelled()) {
            let why = format!("the token is not for namespace {}", key.namespace_spelled());
            let about = About { what: &what, agent: Some(agent) };
            return Err(self.denied(Code::Scope, verb, about, why));
        }
        Ok(listed.entry)
    }

    /// Whether an agent may be shown.
    pub(crate) fn sees_agent(&self, name: &str) -> bool {
        self.token.agents.is_empty() || self.token.agents.iter().any(|a| a == name)
    }

    /// Whether objects of a namespace may be shown; `-` for those without.
    pub(crate) fn sees_namespace(&self, namespace: &str) -> bool {
        self.token.namespaces.is_empty() || self.token.namespaces.iter().any(|n| n == namespace)
    }

    fn role(&self, role: Role, verb: &'static str, about: About<'_>) -> Result<(), Fault> {
        if self.token.role >= role {
            return Ok(());
        }
        let why = format!("{verb} needs {role}, the token's role is {}", self.token.role);
        Err(self.denied(Code::Role, verb, about, why))
    }

    /// A no, which goes to the audit unless it was only about reading, or like one a moment ago.
    fn denied(&self, code: Code, verb: &'static str, about: About<'_>, why: String) -> Fault {
        if !verb.ends_with(".get") {
            let state = &self.state;
            let enter = |more| {
                let (agent, detail) = (about.agent.map(str::to_owned), why.clone());
                let detail = and_more(detail, more);
                let deed = Deed { detail, agent, ..self.deed(verb, about.what) };
                state.audit.try_enter(deed, Outcome::Denied)
            };
            // Names of agents that are not there are the caller's to make up without end.
            let there = |name: &&str| {
                NodeId::new(name).is_ok_and(|node| state.views.roster.get(&node).is_some())
            };
            let agent = about.agent.filter(there);
            state.denials.enter(&self.token.id, verb, agent, clock::now(), enter);
        }
        code.because(why).hint("ask an admin for a token: `bowline token create`")
    }
}
