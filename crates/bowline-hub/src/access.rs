//! Who may call the API and who may join: bodies on the `access` shelf, which nobody copies.

use std::collections::BTreeMap;

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
}

impl AccessView {
    pub(crate) fn token(&self, id: &str) -> Option<(Rev, TokenEntry)> {
        self.0.read().tokens.get(id).cloned()
    }

    pub(crate) fn tokens(&self) -> Vec<TokenEntry> {
        self.0.read().tokens.values().map(|(_, t)| t.clone()).collect()
    }

    pub(crate) fn join(&self, id: &str) -> Option<(Rev, JoinEntry)> {
        self.0.read().joins.get(id).cloned()
    }

    pub(crate) fn joins(&self) -> Vec<JoinEntry> {
        self.0.read().joins.values().map(|(_, j)| j.clone()).collect()
    }

    pub(crate) fn rotation(&self) -> Option<RotationEntry> {
        self.0.read().rotation
    }

    /// What TLS must refuse.
    pub(crate) fn revocations(&self) -> Revocations {
        let mut out = Revocations::default();
        for (_, entry) in self.0.read().revoked.values() {
            out.revoke_node(entry.node.clone(), entry.at);
        }
        out
    }

    /// When a node was last cut off.
    pub(crate) fn revoked_at(&self, node: &NodeId) -> Option<Wall> {
        self.0.read().revoked.get(node).map(|(_, entry)| entry.at)
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

impl Entries {
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
                    self.revoked.insert(entry.node.clone(), (record.rev, entry));
                }
            }
            "pki" => self.rotation = decode(record),
            _ => {}
        }
    }

    fn gone(&mut self, kind: &str, id: &str) {
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
