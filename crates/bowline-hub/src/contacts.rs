//! When each agent was last there, kept over restarts. A local fact for people, never a record: one
//! file beside the store, written when agents come and go, and at most once a minute otherwise.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bowline_client::api::Lag;
use bowline_identity::{Fingerprint, PeerCert};
use bowline_types::{NodeId, Wall};
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};

use crate::api;
use crate::clock;
use crate::state::State;

/// How often it is looked at and written, if nothing happens.
const EVERY: Duration = Duration::from_secs(60);
/// How long after somebody came or went: many do so at once.
const SOON: Duration = Duration::from_secs(2);

/// What was last known of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Contact {
    /// When it was last heard.
    pub(crate) at: Wall,
    /// What it ran.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) version: String,
    /// How far it was behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lag: Option<Lag>,
    /// The certificate that it last showed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shown: Option<Shown>,
}

/// A certificate that an agent showed. One that was only granted does not count: the answer may
/// have been lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shown {
    serial: String,
    /// The pin of the CA that signed it.
    pub(crate) issuer: Fingerprint,
}

/// Contacts by agent.
#[derive(Debug)]
pub(crate) struct Contacts {
    path: PathBuf,
    known: RwLock<BTreeMap<NodeId, Contact>>,
}

impl Contacts {
    /// What the last run left; a file that is not there or makes no sense is nothing.
    pub(crate) fn read(path: PathBuf) -> Self {
        let text = std::fs::read(&path).unwrap_or_default();
        let known = serde_json::from_slice(&text).unwrap_or_default();
        Self { path, known: RwLock::new(known) }
    }

    /// What was last known of an agent.
    pub(crate) fn get(&self, agent: &NodeId) -> Option<Contact> {
        self.known.read().get(agent).cloned()
    }

    /// Takes note of a certificate that passed; says whether it is another than before.
    pub(crate) fn note(&self, peer: &PeerCert, issuer: impl Fn() -> Option<Fingerprint>) -> bool {
        let serial = peer.serial.to_string();
        let shown = self.known.read().get(&peer.node).and_then(|c| c.shown.clone());
        if shown.is_some_and(|shown| shown.serial == serial) {
            return false;
        }
        let shown = issuer().map(|issuer| Shown { serial, issuer });
        let mut known = self.known.write();
        match known.get_mut(&peer.node) {
            Some(contact) => contact.shown = shown,
            None => {
                let new = Contact { at: clock::now(), version: String::new(), lag: None, shown };
                known.insert(peer.node.clone(), new);
            }
        }
        true
    }

    /// Looks who is there and how far behind, and keeps it.
    pub(crate) async fn look(&self, state: &State) {
        let names = state.views.roster.names();
        let Ok(lags) = api::lags(state, names.clone()).await else { return };
        let mut known = self.known.write();
        let mut now = BTreeMap::new();
        for (name, lag) in names.into_iter().zip(lags) {
            let before = known.remove(&name);
            let lag = lag.or(before.as_ref().and_then(|b| b.lag));
            let shown = before.as_ref().and_then(|b| b.shown.clone());
            let contact = match state.views.links.get(&name) {
                Some(link) => {
                    let at = if link.handle.is_some() { clock::now() } else { link.since };
                    Some(Contact { at, version: link.version, lag, shown })
                }
                None => before,
            };
            now.extend(contact.map(|contact| (name, contact)));
        }
        *known = now;
    }

    /// Writes it down. A crash may lose the last minute, no more.
    pub(crate) fn write(&self) {
        let bytes = serde_json::to_vec(&*self.known.read());
        let bytes = bytes.expect("plain data with text keys always encodes");
        let part = self.path.with_extension("part");
        let wrote = std::fs::write(&part, bytes);
        if let Err(error) = wrote.and_then(|()| std::fs::rename(&part, &self.path)) {
            tracing::warn!(%error, "when agents were last there is not written down");
        }
    }
}

/// Looks and writes, as long as the hub runs.
pub(crate) async fn keep(state: Arc<State>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = state.views.came_or_went.notified() => tokio::time::sleep(SOON).await,
        }
        state.contacts.look(&state).await;
        let state = state.clone();
        let wrote = tokio::task::spawn_blocking(move || state.contacts.write()).await;
        drop(wrote);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contacts_survive_and_rubbish_is_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("contacts.json");
        let name = NodeId::new("alpha").unwrap();
        let shown = Some(Shown { serial: "0a".into(), issuer: Fingerprint::of(b"ca") });
        let contact = Contact {
            at: Wall(7),
            version: "0.1.0".into(),
            lag: Some(Lag { down: 3, up: 0 }),
            shown,
        };
        let contacts = Contacts::read(path.clone());
        contacts.known.write().insert(name.clone(), contact.clone());
        contacts.write();
        assert_eq!(Contacts::read(path.clone()).get(&name), Some(contact));
        std::fs::write(&path, "{").unwrap();
        assert_eq!(Contacts::read(path).get(&name), None);
    }
}
