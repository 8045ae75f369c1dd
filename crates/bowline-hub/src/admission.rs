//! Who may connect: certificates, session tokens, join tokens, and what the roster says.

use std::sync::Arc;

use bowline_argocd::auth::Line;
use bowline_client::api::Outcome;
use bowline_identity::{PeerCert, TokenError, join, peer_identity};
use bowline_resources::{Certificate, RosterEntry};
use bowline_types::{Guard, Item, NodeId, Wall};
use bowline_wire::{
    Admission, AuthRequest, AuthResponse, BoxFuture, Call, Grant, JoinRequest, Peer, Refusal,
    RefusalCode, RenewRequest,
};

use crate::access::{self, JoinEntry};
use crate::audit::Deed;
use crate::clock;
use crate::dialect::{Dialect, Visit};
use crate::pki::{Pki, Signed};
use crate::problem::Code;
use crate::shelves;
use crate::state::State;

mod plain;
pub(crate) use plain::Plain;

/// The hub's word on who may connect.
pub(crate) struct Desk(pub(crate) Arc<State>);

/// A refusal with its code in front, so that it can be looked up.
fn no(kind: RefusalCode, code: Code, why: impl std::fmt::Display) -> Refusal {
    Refusal::new(kind, format!("{}: {why}", code.as_str()))
}

impl Desk {
    /// The certificate of a peer, if its node may connect.
    fn known(&self, peer: &Peer) -> Result<(PeerCert, Arc<RosterEntry>), Refusal> {
        let unauthenticated = RefusalCode::Unauthenticated;
        let Some(der) = &peer.certificate else {
            let why = "no certificate was shown: join first";
            return Err(no(unauthenticated, Code::NoCertificate, why));
        };
        let cert = peer_identity(der).map_err(|e| no(unauthenticated, Code::NoCertificate, e))?;
        if self.0.pki.refuses(&cert) {
            let why = "the certificate has been revoked: join with a new token";
            return Err(no(RefusalCode::PermissionDenied, Code::Revoked, why));
        }
        let Some(entry) = self.0.views.roster.entry(&cert.node) else {
            let why = format!("{} is not in the roster", cert.node);
            return Err(no(RefusalCode::PermissionDenied, Code::NotInRoster, why));
        };
        if !entry.trusts(&cert.serial.to_string()) {
            let why = format!("{} has been revoked: join with a new token", cert.node);
            return Err(no(RefusalCode::PermissionDenied, Code::Revoked, why));
        }
        if self.0.contacts.note(&cert, || self.0.pki.issuer_of(der)) {
            self.0.views.came_or_went.notify_one();
        }
        Ok((cert, entry))
    }

    /// What it takes to answer a call that is not native, where that is served.
    fn foreign(&self, call: &Call) -> Option<&Dialect> {
        self.0.dialect.as_deref().filter(|_| call.protocol.is_none())
    }

    fn authenticated(&self, peer: &Peer, request: &AuthRequest) -> Result<AuthResponse, Refusal> {
        if !matches!(request.method.as_str(), "" | "mtls") {
            let why = format!("method {:?} is not served: use mtls", request.method);
            return Err(no(RefusalCode::Unimplemented, Code::AuthMethod, why));
        }
        let (cert, entry) = self.known(peer)?;
        let token = self.0.pki.mint(&cert, entry.mode.as_str(), clock::now());
        let access_token = token.ok_or_else(broken)?;
        Ok(AuthResponse {
            access_token,
            refresh_token: String::new(),
            version: self.version(),
            namespace: String::new(),
        })
    }

    fn subscribed(&self, peer: &Peer, call: &Call) -> Result<NodeId, Refusal> {
        let (cert, _) = self.known(peer)?;
        let Some(token) = &call.token else {
            let why = "no session token: authenticate first";
            return Err(no(RefusalCode::Unauthenticated, Code::SessionMissing, why));
        };
        let token = token.strip_prefix("Bearer ").unwrap_or(token);
        let node = self.0.pki.verify(token, &cert, clock::now());
        let node =
            node.map_err(|e| no(RefusalCode::Unauthenticated, Code::of_token_error(e), e))?;
        if node != cert.node {
            let why = TokenError::WrongCertificate;
            return Err(no(RefusalCode::Unauthenticated, Code::SessionForeign, why));
        }
        Ok(node)
    }

    async fn joined(&self, peer: &Peer, request: JoinRequest) -> Result<Grant, Refusal> {
        let now = clock::now();
        let unknown = |e: join::Refusal| {
            let kind = match e {
                join::Refusal::Used => RefusalCode::AlreadyExists,
                join::Refusal::Unknown => RefusalCode::Unauthenticated,
                join::Refusal::Expired | join::Refusal::OtherNode => RefusalCode::PermissionDenied,
            };
            no(kind, Code::of_join_refusal(e), e)
        };
        let bad = |e| no(RefusalCode::InvalidArgument, Code::BadJoin, e);
        if request.head_key.len() != 32 {
            return Err(bad("the head key is not 32 bytes".to_owned()));
        }
        let key = Pki::request_key(&request.csr).map_err(|e| bad(e.to_string()))?;
        let found = self.0.views.access.join(&request.token_id);
        let (rev, entry) = found.ok_or_else(|| unknown(join::Refusal::Unknown))?;
        let secret = std::str::from_utf8(&request.token_secret).unwrap_or("");
        let used = entry.record.redeem(now, secret, &entry.agent, key).map_err(unknown)?;
        // The use is on disk before anything is given for it; of two at once, one loses here.
        let again = used == entry.record;
        let cut_off = || {
            let moment = self.0.views.access.revoked_at(&entry.agent);
            moment.is_some_and(|moment| moment >= entry.created)
        };
        if cut_off() {
            // The same key may ask again for a lost answer, but no token from before a revocation
            // or a removal undoes it, used or not.
            return Err(unknown(join::Refusal::Used));
        }
        if !again {
            let shelf_key = access::key("join", &request.token_id).ok_or_else(broken)?;
            let guard = Guard { key: shelf_key.clone(), at: Some(rev) };
            let used = JoinEntry { record: used, ..entry.clone() };
            let item = Item::put(shelf_key, access::encode(&used));
            let wrote = self.0.handle.write(&shelves::access(), vec![guard], vec![item]).await;
            wrote.map_err(|_| unknown(join::Refusal::Used))?;
            // The disk may have taken long.
            if cut_off() || self.0.views.access.join(&request.token_id).is_none() {
                return Err(unknown(join::Refusal::Used));
            }
        }
        let grant = self.let_in(&entry, &request, now).await?;
        self.tell_audit("agent.join", &entry.agent, peer).await;
        Ok(grant)
    }

    /// Signs, and keeps in the roster what was signed.
    async fn let_in(
        &self,
        join: &JoinEntry,
        request: &JoinRequest,
        now: Wall,
    ) -> Result<Grant, Refusal> {
        let signed = self.sign(&request.csr, &join.agent, now)?;
        let listed = self.0.views.roster.get(&join.agent);
        let mut entry = match &listed {
            Some(listed) => (*listed.entry).clone(),
            None => {
                let new = RosterEntry::new(join.agent.clone(), join.mode, now);
                RosterEntry { labels: join.labels.clone(), ..new }
            }
        };
        entry.head_key.clone_from(&request.head_key);
        entry.certificate = Some(certificate(&signed));
        entry.revoked = None;
        self.keep(&entry, listed.map(|l| l.rev)).await?;
        self.0.views.roster.lift(&join.agent, join.created);
        Ok(self.grant(signed))
    }

    async fn renewed(&self, peer: &Peer, request: RenewRequest) -> Result<Grant, Refusal> {
        let (cert, known) = self.known(peer)?;
        if !request.head_key.is_empty() && request.head_key != known.head_key {
            let why = "the head key is not the one of joining: join with a new token";
            return Err(no(RefusalCode::PermissionDenied, Code::HeadKey, why));
        }
        let signed = self.sign(&request.csr, &cert.node, clock::now())?;
        let listed = self.0.views.roster.get(&cert.node);
        let listed = listed.ok_or_else(|| {
            no(RefusalCode::PermissionDenied, Code::NotInRoster, "removed meanwhile")
        })?;
        let entry =
            RosterEntry { certificate: Some(certificate(&signed)), ..(*listed.entry).clone() };
        self.keep(&entry, Some(listed.rev)).await?;
        self.tell_audit("agent.renew", &cert.node, peer).await;
        Ok(self.grant(signed))
    }

    fn sign(&self, csr: &[u8], node: &NodeId, now: Wall) -> Result<Signed, Refusal> {
        let signed = self.0.pki.sign(csr, node, now);
        signed.map_err(|e| no(RefusalCode::InvalidArgument, Code::BadJoin, e))
    }

    async fn keep(&self, entry: &RosterEntry, rev: Option<u64>) -> Result<(), Refusal> {
        self.0.enlist(entry, rev).await.map(|_| ()).map_err(|e| {
            tracing::warn!(agent = %entry.name, error = %e, "roster entry not written");
            no(
                RefusalCode::Unavailable,
                Code::Unavailable,
                "the roster changed meanwhile: try again",
            )
        })
    }

    fn grant(&self, signed: Signed) -> Grant {
        let authorities = self.0.pki.bundle().certs().iter().map(|c| c.to_vec()).collect();
        Grant { chain: signed.chain, authorities, node: signed.peer.node }
    }

    async fn tell_audit(&self, verb: &'static str, node: &NodeId, peer: &Peer) {
        let deed = Deed {
            who: node.to_string(),
            from: Some(peer.remote.ip().to_string()),
            verb,
            what: node.to_string(),
            agent: Some(node.to_string()),
            detail: String::new(),
        };
        self.0.audit.enter(deed, Outcome::Done).await.durable().await;
    }
}

fn certificate(signed: &Signed) -> Certificate {
    Certificate { serial: signed.peer.serial.to_string(), not_after: signed.peer.not_after }
}

fn broken() -> Refusal {
    no(RefusalCode::Internal, Code::Internal, "the hub could not do that")
}

impl Admission for Desk {
    fn authenticate<'a>(
        &'a self,
        peer: &'a Peer,
        call: &'a Call,
        request: AuthRequest,
    ) -> BoxFuture<'a, Result<AuthResponse, Refusal>> {
        Box::pin(async move {
            self.counted(match self.foreign(call) {
                Some(dialect) => {
                    let visit = Visit { peer, call, line: Line::Tls };
                    dialect.authenticate(&self.0, &visit, &request).await
                }
                None => self.authenticated(peer, &request),
            })
        })
    }

    fn refresh<'a>(
        &'a self,
        peer: &'a Peer,
        token: String,
    ) -> BoxFuture<'a, Result<AuthResponse, Refusal>> {
        // Native agents have nothing to refresh.
        let answer = match &self.0.dialect {
            Some(dialect) => dialect.refresh(&self.0, peer, Line::Tls, &token),
            None => {
                let why = "session tokens are not refreshed: authenticate again";
                Err(no(RefusalCode::Unimplemented, Code::AuthMethod, why))
            }
        };
        Box::pin(async move { self.counted(answer) })
    }

    fn subscribe<'a>(
        &'a self,
        peer: &'a Peer,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<NodeId, Refusal>> {
        Box::pin(async move {
            self.counted(match self.foreign(call) {
                Some(dialect) => {
                    dialect.subscriber(&self.0, &Visit { peer, call, line: Line::Tls })
                }
                None => self.subscribed(peer, call),
            })
        })
    }

    fn join<'a>(
        &'a self,
        peer: &'a Peer,
        request: JoinRequest,
    ) -> BoxFuture<'a, Result<Grant, Refusal>> {
        Box::pin(async move { self.counted(self.joined(peer, request).await) })
    }

    fn renew<'a>(
        &'a self,
        peer: &'a Peer,
        request: RenewRequest,
    ) -> BoxFuture<'a, Result<Grant, Refusal>> {
        Box::pin(async move { self.counted(self.renewed(peer, request).await) })
    }

    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").into()
    }
}

impl Desk {
    /// Counts and logs a no.
    fn counted<T>(&self, answer: Result<T, Refusal>) -> Result<T, Refusal> {
        if let Err(refusal) = &answer {
            self.0.metrics.refusals.inc();
            tracing::info!(%refusal, "refused at the agents' port");
        }
        answer
    }
}

#[cfg(test)]
mod tests;
