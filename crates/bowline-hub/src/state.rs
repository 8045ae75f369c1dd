//! What requests, admission and background work share.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bowline_drive::Handle;
use bowline_resources::{
    OperationRequest, Owner, RosterEntry, Speaks, desired_shelf, roster_shelf,
};
use bowline_types::{Cursor, Guard, Interest, Item, NodeId, Rev, Verdict, Wall};
use bowline_wire::ServerHandle;
use bytes::Bytes;
use tokio::sync::Semaphore;

use crate::access::{self, RevokedEntry};
use crate::audit::Auditor;
use crate::contacts::Contacts;
use crate::denials::Denials;
use crate::dialect::{self, Dialect, Sessions};
use crate::handover::Handovers;
use crate::metrics::HubMetrics;
use crate::pace::Pace;
use crate::pki::Pki;
use crate::plane::Plane;
use crate::shelves;
use crate::views::Views;

/// The parts of a running hub.
pub(crate) struct State {
    pub(crate) handle: Handle,
    pub(crate) views: Arc<Views>,
    pub(crate) pki: Pki,
    pub(crate) audit: Auditor,
    /// What callers were denied of late.
    pub(crate) denials: Denials,
    pub(crate) metrics: HubMetrics,
    /// The agents' ports, once they listen.
    pub(crate) servers: OnceLock<Vec<ServerHandle>>,
    pub(crate) data: std::path::PathBuf,
    /// Where join tokens say that the hub is, once its port is known.
    pub(crate) advertise: OnceLock<Vec<String>>,
    pub(crate) started: Wall,
    pub(crate) ready: AtomicBool,
    pub(crate) patience: Duration,
    pub(crate) request_timeout: Duration,
    pub(crate) requests: Arc<Semaphore>,
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) pace: Pace,
    pub(crate) handovers: Handovers,
    /// What it takes to speak with agents of argocd-agent, if they are let in.
    pub(crate) dialect: Option<Arc<Dialect>>,
    /// Their sessions.
    pub(crate) foreign: Arc<Sessions>,
    /// The control-plane cluster, if there is one.
    pub(crate) plane: Option<Arc<Plane>>,
    pub(crate) contacts: Contacts,
    /// Cancelled when the hub ends: streams of events end with it.
    pub(crate) ending: tokio_util::sync::CancellationToken,
    /// Objects are written while it is read-held, a change of mode begins while it is write-held:
    /// no object is written between "the mode is not changing" and its commit.
    pub(crate) turnstile: Arc<tokio::sync::RwLock<()>>,
    /// One of these is held while an object is changed: read, decide, write.
    pub(crate) stripes: Vec<Arc<tokio::sync::Mutex<()>>>,
}

impl State {
    /// Opens what belongs to an agent and says what is wanted of it.
    pub(crate) fn follow(&self, entry: &RosterEntry) {
        let plan = shelves::desired_plan(self.plane.is_some());
        self.handle.open(desired_shelf(&entry.name, Owner::Hub), plan);
        match entry.speaks {
            Speaks::Native => {
                for shelf in shelves::copied(entry) {
                    self.handle.interest(shelf, Interest::all());
                }
            }
            Speaks::ArgocdAgent => {
                for (shelf, plan) in dialect::kept_for(&entry.name) {
                    self.handle.open(shelf, plan);
                }
                for shelf in shelves::owned(&entry.name) {
                    self.handle.interest(shelf, Interest::none());
                }
            }
        }
    }

    /// Writes a roster entry if it is still at `rev` (none: not there), and lets it take effect.
    pub(crate) async fn enlist(
        &self,
        entry: &RosterEntry,
        rev: Option<Rev>,
    ) -> Result<Rev, bowline_drive::Error> {
        let _alone = match rev {
            None => Some(self.turnstile.write().await),
            Some(_) => None,
        };
        if rev.is_none() && self.views.roster.get(&entry.name).is_none() {
            // What one of the same name left, if the hub was killed while it was removed. Opened first:
            // what nobody opened is not removed from the disk.
            let plan = shelves::desired_plan(self.plane.is_some());
            self.handle.open(desired_shelf(&entry.name, Owner::Hub), plan);
            for (shelf, plan) in dialect::kept_for(&entry.name) {
                self.handle.open(shelf, plan);
            }
            self.unfollow(&entry.name);
            self.handle.with(|_| ()).await?;
            self.views.fleet.forget(&entry.name);
        }
        let guard = Guard { key: entry.key(), at: rev };
        let item = Item::put(entry.key(), entry.encode());
        let at = self.handle.write(&roster_shelf(), vec![guard], vec![item]).await?;
        self.follow(entry);
        self.handle.regate();
        Ok(at.rev)
    }

    /// Cuts a node off in this process, now: nothing here waits for the disk.
    pub(crate) fn bar(&self, node: &NodeId, at: Wall, why: &str) {
        self.views.access.bar(node, at);
        self.views.roster.bar(node, at);
        self.pki.set_revocations(self.views.access.revocations());
        self.cut(node, why);
    }

    /// Makes all certificates of a node that were issued so far worthless, durably.
    pub(crate) async fn revoke_certificates(
        &self,
        node: &NodeId,
        at: Wall,
        reason: &str,
    ) -> Result<(), bowline_drive::Error> {
        let entry = RevokedEntry { node: node.clone(), at, reason: reason.into() };
        let key = access::key("revoked", node.as_str()).expect("node names are valid segments");
        let item = Item::put(key, access::encode(&entry));
        self.handle.write(&shelves::access(), vec![], vec![item]).await?;
        self.pki.set_revocations(self.views.access.revocations());
        Ok(())
    }

    /// Cuts the links of a node.
    pub(crate) fn cut(&self, node: &NodeId, why: &str) {
        for server in self.servers.get().into_iter().flatten() {
            server.cut(node, why);
        }
        // A link that the node's thread already has is known to the views.
        if let Some(link) = self.views.links.get(node).and_then(|l| l.handle) {
            link.cut(why);
        }
    }

    /// Forgets what belongs to an agent that left the roster.
    pub(crate) fn unfollow(&self, node: &NodeId) {
        self.foreign.forget(node);
        let kept = dialect::kept_for(node).map(|(shelf, _)| shelf);
        let all = [desired_shelf(node, Owner::Hub)];
        let all = all.into_iter().chain(shelves::owned(node)).chain(kept);
        all.for_each(|shelf| self.handle.remove(shelf));
        self.handle.regate();
    }

    /// Has an agent of argocd-agent take an operation on: it has, once it has acked it. None if this agent
    /// is not one.
    pub(crate) async fn operate_foreign(
        &self,
        agent: &NodeId,
        request: &OperationRequest,
        patience: Duration,
    ) -> Option<Verdict> {
        if self.views.roster.entry(agent)?.speaks.is_native() {
            return None;
        }
        let end = tokio::time::Instant::now() + patience;
        let asked = tokio::time::timeout_at(end, self.foreign.operate(agent, request)).await;
        let Ok(acked) = asked else { return Some(Verdict::Expired) };
        Some(match tokio::time::timeout_at(end, acked).await {
            Ok(Ok(())) => Verdict::Taken { at: Cursor::default(), answer: Bytes::new() },
            // Its stream has ended, or it is slow.
            Ok(Err(_)) | Err(_) => Verdict::Unknown,
        })
    }

    /// Publishes the trust bundle on the roster, for agents that renew late.
    pub(crate) async fn publish_trust(&self) -> Result<(), bowline_drive::Error> {
        let pem = self.pki.bundle().to_pem();
        let key = shelves::trust_key();
        let known = self.handle.read(&roster_shelf()).await?;
        let known = known.and_then(|r| r.records.into_iter().find(|r| r.key == key));
        if known.and_then(|r| r.body).is_some_and(|b| b.bytes == pem.as_bytes()) {
            return Ok(());
        }
        let item = Item::put(key, bowline_types::Body::new(pem.into_bytes()));
        self.handle.write(&roster_shelf(), vec![], vec![item]).await?;
        if let Some(plane) = &self.plane {
            plane.resign();
        }
        Ok(())
    }
}

/// Held while an object is read, changed and written.
pub(crate) struct Turn {
    _object: tokio::sync::OwnedMutexGuard<()>,
    _mode: tokio::sync::OwnedRwLockReadGuard<()>,
}

impl State {
    /// Waits until nobody else changes this object and no change of mode begins.
    pub(crate) async fn write_turn(
        self: Arc<Self>,
        agent: &str,
        key: &bowline_resources::ObjectKey,
    ) -> Turn {
        use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one((agent, key));
        let stripe = usize::try_from(hash % self.stripes.len() as u64).unwrap_or(0);
        Turn {
            _mode: self.turnstile.clone().read_owned().await,
            _object: self.stripes[stripe].clone().lock_owned().await,
        }
    }
}
