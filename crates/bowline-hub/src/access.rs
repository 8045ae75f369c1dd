//! Who may call the API and who may join: bodies on the `access` shelf, which nobody copies.
//!
//! What takes a right back counts before it is on disk: a disk that is full or slow must not keep
//! anybody in.

use std::collections::{BTreeMap, BTreeSet};

use bowline_client::api::{JoinTokenView, Role, Time, TokenView};
use bowline_identity::{ApiTokenHash, JoinRecord, Revocations};
use bowline_resources::Mode;
use bowline_types::{Body, Change, Key, NodeId, Record, Rev, Wall};
use parking_lot::RwLock;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A token for a person or a program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TokenEntry {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) role: Role,
    #[serde(default)]
    pub(crate) agents: Vec<String>,
    #[serde(default)]
    pub(crate) namespaces: Vec<String>,
    pub(crate) created: Wall,
    pub(crate) expires: Option<Wall>,
    pub(crate) hash: ApiTokenHash,
}

impl TokenEntry {
    /// Whether it is for everything and does not end.
    fn is_full(&self) -> bool {
        let limited =
            !self.agents.is_empty() || !self.namespaces.is_empty() || self.expires.is_some();
        self.role == Role::Admin && !limited
    }

    /// Without its hash.
    pub(crate) fn view(&self) -> TokenView {
        TokenView {
            id: self.id.clone(),
            name: self.name.clone(),
            role: self.role,
            agents: self.agents.clone(),
            namespaces: self.namespaces.clone(),
            created: Time(self.created),
            expires: self.expires.map(Time),
        }
    }
}

/// A join token, and what its agent becomes if it is not in the roster yet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct JoinEntry {
    pub(crate) record: JoinRecord,
    pub(crate) agent: NodeId,
    pub(crate) mode: Mode,
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) created: Wall,
}

impl JoinEntry {
    /// Without its hash.
    pub(crate) fn view(&self) -> JoinTokenView {
        JoinTokenView {
            id: self.record.id.clone(),
            agent: self.agent.to_string(),
            created: Time(self.created),
            expires: Time(self.record.expires),
            used: self.record.used.as_ref().map(|u| Time(u.at)),
        }
    }
}

/// Certificates of a node that were issued at or before a moment do not count.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RevokedEntry {
    pub(crate) node: NodeId,
    pub(crate) at: Wall,
    #[serde(default)]
    pub(crate) reason: String,
}

/// A CA rotation that goes on by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RotationEntry {
    /// When the present step was taken.
    pub(crate) since: Wall,
    /// How long each step lasts, in seconds.
    pub(crate) overlap: u64,
    /// Which step is next.
    #[serde(default)]
    pub(crate) next: Option<NextStep>,
}

/// A step of a CA rotation that is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum NextStep {
    /// The announced CA begins to sign.
    Promote,
    /// The old CA is no longer trusted.
    Retire,
}

/// Where an entry is kept.
pub(crate) fn key(kind: &str, id: &str) -> Option<Key> {
    Key::new(&format!("{kind}/{id}")).ok().filter(|_| !id.contains('/'))
}

/// As a body; all of them are sealed at rest.
pub(crate) fn encode(entry: &impl Serialize) -> Body {
    Body::secret(serde_json::to_vec(entry).expect("plain data with text keys always encodes"))
}

/// What the shelf says, ready to be asked.
#[derive(Debug, Default)]
pub(crate) struct AccessView(RwLock<Entries>);

#[derive(Debug, Default)]
struct Entries {
    tokens: BTreeMap<String, (Rev, TokenEntry)>,
    joins: BTreeMap<String, (Rev, JoinEntry)>,
    revoked: BTreeMap<NodeId, (Rev, RevokedEntry)>,
    rotation: Option<RotationEntry>,
    /// What the disk does not say yet: keys of tokens that were taken back, nodes cut off.
    taken_back: BTreeSet<Key>,
    barred: BTreeMap<NodeId, Wall>,
}

/// What it takes to take a token back on disk.
pub(crate) struct TakenBack {
    pub(crate) rev: Rev,
    /// Another token for everything, and its rev, if this was one.
    pub(crate) other: Option<(String, Rev)>,
}

impl AccessView {
    pub(crate) fn token(&self, id: &str) -> Option<(Rev, TokenEntry)> {
        self.0.read().token(id).cloned()
    }

    pub(crate) fn tokens(&self) -> Vec<TokenEntry> {
        self.0.read().tokens().map(|(_, t)| t.clone()).collect()
    }

    pub(crate) fn join(&self, id: &str) -> Option<(Rev, JoinEntry)> {
        self.0.read().join(id).cloned()
    }

    pub(crate) fn joins(&self) -> Vec<JoinEntry> {
        let entries = self.0.read();
        let joins = entries.joins.iter().filter(|(id, _)| !entries.is_taken_back("join", id));
        joins.map(|(_, (_, join))| join.clone()).collect()
    }

    /// A token counts no more from here on, unless it is the last one for everything: then none.
    /// Of two who take back each other's, one is first.
    pub(crate) fn take_back_token(&self, id: &str) -> Option<Result<TakenBack, LastToken>> {
        let mut entries = self.0.write();
        let (rev, token) = entries.token(id)?;
        let rev = *rev;
        let other = match token.is_full() {
            false => None,
            true => {
                let other = entries.tokens().find(|(_, t)| t.id != id && t.is_full());
                let Some((rev, other)) = other else { return Some(Err(LastToken)) };
                Some((other.id.clone(), *rev))
            }
        };
        entries.taken_back.extend(key("token", id));
        Some(Ok(TakenBack { rev, other }))
    }

    /// A join token counts no more from here on; its rev.
    pub(crate) fn take_back_join(&self, id: &str) -> Option<Rev> {
        let mut entries = self.0.write();
        let rev = entries.join(id)?.0;
        entries.taken_back.extend(key("join", id));
        Some(rev)
    }

    /// It could not be taken back after all, so it counts again.
    pub(crate) fn give_back(&self, kind: &str, id: &str) {
        let mut entries = self.0.write();
        entries.taken_back.retain(|taken| Some(taken) != key(kind, id).as_ref());
    }

    /// Certificates of a node that were issued at or before this moment count no more from here on.
    pub(crate) fn bar(&self, node: &NodeId, at: Wall) {
        let mut entries = self.0.write();
        let barred = entries.barred.entry(node.clone()).or_insert(at);
        *barred = at.max(*barred);
    }

    pub(crate) fn rotation(&self) -> Option<RotationEntry> {
        self.0.read().rotation
    }

    /// What TLS must refuse.
    pub(crate) fn revocations(&self) -> Revocations {
        let mut out = Revocations::default();
        let entries = self.0.read();
        for (_, entry) in entries.revoked.values() {
            out.revoke_node(entry.node.clone(), entry.at);
        }
        for (node, at) in &entries.barred {
            out.revoke_node(node.clone(), *at);
        }
        out
    }

    /// When a node was last cut off.
    pub(crate) fn revoked_at(&self, node: &NodeId) -> Option<Wall> {
        let entries = self.0.read();
        let written = entries.revoked.get(node).map(|(_, entry)| entry.at);
        written.max(entries.barred.get(node).copied())
    }

    pub(crate) fn changed(&self, changes: &[Change]) {
        let mut entries = self.0.write();
        for change in changes {
            let Some((kind, id)) = change.key().as_str().split_once('/') else { continue };
            match change {
                Change::Put(record) => entries.put(kind, id, record),
                Change::Gone(..) => entries.gone(kind, id),
            }
        }
    }
}

/// There is no other token for everything that does not end.
#[derive(Debug)]
pub(crate) struct LastToken;

impl Entries {
    fn is_taken_back(&self, kind: &str, id: &str) -> bool {
        !self.taken_back.is_empty() && key(kind, id).is_some_and(|k| self.taken_back.contains(&k))
    }

    fn token(&self, id: &str) -> Option<&(Rev, TokenEntry)> {
        self.tokens.get(id).filter(|_| !self.is_taken_back("token", id))
    }

    fn tokens(&self) -> impl Iterator<Item = &(Rev, TokenEntry)> {
        self.tokens.values().filter(|(_, t)| !self.is_taken_back("token", &t.id))
    }

    fn join(&self, id: &str) -> Option<&(Rev, JoinEntry)> {
        self.joins.get(id).filter(|_| !self.is_taken_back("join", id))
    }

    fn put(&mut self, kind: &str, id: &str, record: &Record) {
        match kind {
            "token" => {
                if let Some(entry) = decode(record) {
                    self.tokens.insert(id.into(), (record.rev, entry));
                }
            }
            "join" => {
                if let Some(entry) = decode(record) {
                    self.joins.insert(id.into(), (record.rev, entry));
                }
            }
            "revoked" => {
                if let Some(entry) = decode::<RevokedEntry>(record) {
                    self.barred.retain(|node, at| *node != entry.node || *at > entry.at);
                    self.revoked.insert(entry.node.clone(), (record.rev, entry));
                }
            }
            "pki" => self.rotation = decode(record),
            _ => {}
        }
    }

    fn gone(&mut self, kind: &str, id: &str) {
        self.taken_back.retain(|taken| Some(taken) != key(kind, id).as_ref());
        match kind {
            "token" => drop(self.tokens.remove(id)),
            "join" => drop(self.joins.remove(id)),
            "revoked" => self.revoked.retain(|node, _| node.as_str() != id),
            "pki" => self.rotation = None,
            _ => {}
        }
    }
}

fn decode<T: DeserializeOwned>(record: &Record) -> Option<T> {
    let body = record.body.as_ref()?;
    serde_json::from_slice(&body.bytes)
        .inspect_err(|error| tracing::error!(key = %record.key, %error, "unreadable access entry"))
        .ok()
}
