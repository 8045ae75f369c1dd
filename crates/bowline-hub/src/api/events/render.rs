//! Marks as events: the thing as it is now, as far as the reader may see it.

use bowline_client::api::{Verb, What};
use bowline_resources::ObjectKey;
use bowline_types::{Key, NodeId, Wall};

use super::super::agents;
use super::super::kv::entry;
use super::super::objects::pick;
use super::{Over, Watcher};
use crate::views::ring::Mark;

/// Things that are taken from a view at a time.
const CHUNK: usize = 500;

impl Watcher {
    /// The event of a mark; none if it is not for this reader.
    pub(super) async fn render(&self, mark: &Mark) -> Option<What> {
        match mark {
            Mark::Object(agent, key) => self.object(agent, key),
            Mark::Agent(name) => self.agent(name).await,
            Mark::Kv(key) => self.kv(key),
            Mark::Audit(key) if self.kinds.audit => {
                let entry = self.state.views.audit.get(key.as_str())?;
                Some(What::Audit { entry: Box::new(entry) })
            }
            Mark::Audit(_) => None,
        }
    }

    fn meant(&self, agent: &NodeId) -> bool {
        let name = agent.as_str();
        self.caller.sees_agent(name) && self.selection.agent.as_deref().is_none_or(|a| a == name)
    }

    fn object(&self, agent: &NodeId, key: &Key) -> Option<What> {
        if !self.kinds.object || !self.meant(agent) {
            return None;
        }
        let key = ObjectKey::from_record(key).ok()?;
        if !self.caller.sees_namespace(key.namespace_spelled()) || !self.selection.may_match(&key) {
            return None;
        }
        let entry = self.state.views.roster.entry(agent);
        let found = entry.and_then(|entry| self.state.views.fleet.get(&entry, &key));
        let view = found.and_then(|f| f.view(self.caller.reveals()));
        // What no longer matches is gone, as far as this reader is concerned.
        let object = view.filter(|v| self.selection.matches(v)).map(Box::new);
        let verb = if object.is_some() { Verb::Put } else { Verb::Gone };
        Some(What::Object { verb, agent: agent.to_string(), key, object })
    }

    async fn agent(&self, name: &NodeId) -> Option<What> {
        if !self.kinds.agent || !self.meant(name) {
            return None;
        }
        let agent = match self.state.views.roster.get(name) {
            Some(listed) => Some(Box::new(agents::view(&self.state, &listed).await.ok()?)),
            None => None,
        };
        let verb = if agent.is_some() { Verb::Put } else { Verb::Gone };
        Some(What::Agent { verb, name: name.to_string(), agent })
    }

    fn kv(&self, key: &Key) -> Option<What> {
        if !self.kinds.kv || !key.as_str().starts_with(&self.prefix) {
            return None;
        }
        let record = self.state.views.kv.get(key.as_str());
        let entry = record.and_then(|r| entry(&r, self.caller.reveals()));
        let verb = if entry.is_some() { Verb::Put } else { Verb::Gone };
        Some(What::Kv { verb, key: key.to_string(), entry })
    }

    /// Sends every object that matches.
    pub(super) async fn objects(&self, now: Wall) -> Result<(), Over> {
        let mut from = (None, String::new());
        loop {
            let page = pick(&self.state, &self.caller, &self.selection, from, CHUNK);
            let Some(last) = page.last() else { return Ok(()) };
            from = (NodeId::new(&last.agent).ok(), last.key.to_string());
            for view in page {
                let (agent, key) = (view.agent.clone(), view.key.clone());
                let object = Some(Box::new(view));
                let what = What::Object { verb: Verb::Put, agent, key, object };
                self.part(now, what).await?;
            }
        }
    }

    /// Sends every key that matches.
    pub(super) async fn keys(&self, now: Wall) -> Result<(), Over> {
        let mut from: Option<String> = None;
        loop {
            let page = self.state.views.kv.list(&self.prefix, from.as_deref(), CHUNK);
            let Some(last) = page.last() else { return Ok(()) };
            from = Some(last.key.to_string());
            for record in &page {
                let entry = entry(record, self.caller.reveals());
                let key = record.key.to_string();
                self.part(now, What::Kv { verb: Verb::Put, key, entry }).await?;
            }
        }
    }
}
