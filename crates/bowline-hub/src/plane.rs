//! The control-plane cluster: what people and ApplicationSets want there goes to the agents, and what
//! agents report goes back there. Without one, the hub's own store and API are all there is.
//!
//! Everything comes down to one question, asked whenever something changed: for this agent and this
//! object, what must be written on the shelf (`intake`), and what on the cluster (`outflow`)?

mod ask;
mod changes;
mod clusters;
mod held;
mod identity;
mod inbox;
mod intake;
mod intent;
mod kinds;
mod mirror;
mod options;
mod outflow;
mod strays;
#[cfg(test)]
mod tests;
mod turned;
mod unshown;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use bowline_argocd::auth::Search;
use bowline_kube::{Brake, Cluster, Departed, Kind};
use bowline_resources::argocd::project::Mapping;
use bowline_resources::argocd::{GPG_KEYS, GROUP};
use bowline_resources::{Mode, Object, ObjectKey, Operation, Rule};
use bowline_types::NodeId;
use parking_lot::Mutex;

use crate::state::State;
use clusters::says;
use inbox::Dirty;
use kinds::{Taken, Told};

pub(crate) use clusters::chain;
pub(crate) use inbox::Inbox;
pub(crate) use intake::run;
pub use options::{ClusterSecrets, ClustersMade, NewNamespaces, PlaneError, PlaneOptions};

/// One object at one agent, by its key on the shelf.
type Pair = (NodeId, ObjectKey);

/// The control-plane cluster.
pub(crate) struct Plane {
    cluster: Cluster,
    options: PlaneOptions,
    /// Names that a namespace may be made under.
    new_names: Option<Search>,
    taken: Vec<Taken>,
    /// What copies say that they are from.
    uid: OnceLock<String>,
    inbox: Arc<Inbox>,
    known: Mutex<Known>,
    changes: changes::Changes,
    asked: Mutex<BTreeMap<(Pair, Operation), ask::Wish>>,
    /// Holds back where somebody else writes what the hub writes.
    brake: Mutex<Brake>,
}

#[derive(Debug, Default)]
struct Known {
    there: BTreeMap<ObjectKey, Arc<Object>>,
    departed: Departed,
    /// Agents that an Application was wanted at, where its destination says so.
    placed: BTreeMap<ObjectKey, BTreeSet<NodeId>>,
    /// How far the kinds that are taken have been told, in their order.
    told: Vec<Told>,
    /// Why the control plane's name is not known yet.
    unnamed: Option<String>,
    /// Why a kind that is waited for does not come, by its place among those.
    late: BTreeMap<usize, String>,
    /// Agents that have connected.
    met: BTreeSet<NodeId>,
    /// Agents whose shelf has all that the cluster wants of them.
    sealed: BTreeSet<NodeId>,
    /// What the cluster lacked of an agent's when all of it was looked at, where that was more than
    /// may go without asking; empty: it may go. Without an entry it has not been weighed, and nothing may.
    held: BTreeMap<NodeId, BTreeSet<ObjectKey>>,
    /// Whose word counted for what, when an agent's objects were last looked at.
    stood: BTreeMap<NodeId, (Mode, Vec<Rule>)>,
    /// What no shelf takes, and why.
    refused: BTreeMap<Pair, String>,
    /// What the cluster refuses to be shown.
    unshown: BTreeMap<Pair, unshown::Unshown>,
    /// Applications that belong to no agent.
    strays: BTreeSet<ObjectKey>,
}

impl Known {
    /// An object is gone, unless another of its name is there by now.
    fn let_go(&mut self, key: &ObjectKey, uid: &str) {
        self.departed.note(uid);
        if self.there.get(key).is_some_and(|o| o.metadata.uid.as_deref() == Some(uid)) {
            self.there.remove(key);
        }
    }
}

impl Plane {
    /// Reads the credentials; a cluster that is not there yet is waited for later.
    pub(crate) async fn open(options: PlaneOptions) -> Result<Arc<Self>, PlaneError> {
        let pattern = options.new_namespaces.as_ref().and_then(|n| n.pattern.as_deref());
        let new_names = pattern.map(str::parse).transpose().map_err(PlaneError::Pattern)?;
        let taken = kinds::taken(&options.kinds);
        let known = Known { told: vec![Told::default(); taken.len()], ..Known::default() };
        Ok(Arc::new(Self {
            cluster: Cluster::connect(options.cluster.clone()).await?,
            options,
            new_names,
            taken,
            uid: OnceLock::new(),
            inbox: Arc::default(),
            known: Mutex::new(known),
            changes: changes::Changes::default(),
            asked: Mutex::default(),
            brake: Mutex::default(),
        }))
    }

    /// Where news is left.
    pub(crate) fn inbox(&self) -> Arc<Inbox> {
        self.inbox.clone()
    }

    /// Whether objects like this come from the cluster, and so are not written by the API.
    pub(crate) fn owns(&self, agent: &NodeId, key: &ObjectKey) -> bool {
        // On a shelf that is the agent's own namespace, whatever it is called there.
        let home = key.namespace.as_deref() == Some(agent.as_str());
        match (key.group.as_str(), key.kind.as_str()) {
            (GROUP, "Application") => true,
            (GROUP, "AppProject") | ("", "Secret") => home,
            ("", "ConfigMap") => home && key.name == GPG_KEYS,
            _ => home && self.is_more(key),
        }
    }

    /// How Applications find their agents.
    pub(crate) fn mapping(&self) -> Mapping {
        self.options.mapping
    }

    /// Whether a namespace is Argo CD's own, where namespaces are those of agents.
    pub(crate) fn keeps(&self, namespace: &str) -> bool {
        self.options.mapping == Mapping::Namespace && self.options.namespace == namespace
    }

    /// Whether a kind is taken beside those of Argo CD.
    fn is_more(&self, key: &ObjectKey) -> bool {
        self.options.kinds.iter().any(|(group, kind)| *group == key.group && *kind == key.kind)
    }

    /// A ConfigMap of Argo CD's namespace.
    pub(crate) fn config_map(&self, name: &str) -> Option<Arc<Object>> {
        let (namespace, name) = (Some(self.options.namespace.clone()), name.to_owned());
        self.there(&ObjectKey { group: String::new(), kind: "ConfigMap".into(), namespace, name })
    }

    /// Whether an object at an agent has a source on the cluster.
    pub(crate) fn has_source(&self, agent: &NodeId, key: &ObjectKey) -> bool {
        self.there(&self.source_key(agent, key)).is_some()
    }

    async fn kind(&self, key: &ObjectKey) -> Result<Kind, bowline_kube::Error> {
        self.cluster.kind(&key.group, &key.kind).await
    }

    fn there(&self, key: &ObjectKey) -> Option<Arc<Object>> {
        self.known.lock().there.get(key).cloned()
    }

    /// Takes note of an object as the cluster tells it; an older telling changes nothing.
    fn note(&self, object: Object) -> bool {
        let key = object.key();
        let version =
            |o: &Object| o.metadata.rest.get("resourceVersion")?.as_str()?.parse::<u64>().ok();
        let mut known = self.known.lock();
        if object.metadata.uid.as_ref().is_some_and(|uid| known.departed.has(uid)) {
            return false;
        }
        let newer = known.there.get(&key).is_none_or(|old| {
            old.metadata.uid != object.metadata.uid
                || version(old).zip(version(&object)).is_none_or(|(old, new)| old < new)
        });
        if newer {
            known.there.insert(key, Arc::new(object));
        }
        newer
    }

    /// The pairs that a change of an object of the cluster is about.
    fn pairs_of(&self, state: &State, key: &ObjectKey) -> Vec<Pair> {
        let own = key.namespace.as_deref() == Some(self.options.namespace.as_str());
        let at = |agent: &NodeId, name: &str| {
            let namespace = Some(agent.to_string());
            (agent.clone(), ObjectKey { namespace, name: name.to_owned(), ..key.clone() })
        };
        if self.is_more(key) {
            let agent = key.namespace.as_deref().and_then(|n| NodeId::new(n).ok());
            let agent = agent.filter(|a| state.views.roster.entry(a).is_some());
            return agent.map(|agent| (agent, key.clone())).into_iter().collect();
        }
        if key.kind == "Application" {
            return self
                .agents_of(state, key)
                .into_iter()
                .map(|a| {
                    let key = self.on_shelf(&a, key);
                    (a, key)
                })
                .collect();
        }
        if !own {
            return vec![];
        }
        let names = state.views.roster.names();
        let mut pairs: Vec<_> = names.iter().map(|agent| at(agent, &key.name)).collect();
        // The mirror of an agent's project bears the agent's name before its own.
        let mirrors = names.iter().filter_map(|agent| {
            let name = key.name.strip_prefix(agent.as_str())?.strip_prefix('-')?;
            Some(at(agent, name))
        });
        pairs.extend(mirrors.filter(|_| key.kind == "AppProject"));
        for repository in self.repositories_of(key) {
            pairs.extend(names.iter().map(|agent| {
                let namespace = Some(agent.to_string());
                (agent.clone(), ObjectKey { namespace, ..repository.clone() })
            }));
        }
        pairs
    }

    /// The Secrets that go where a project goes, if this is one.
    fn repositories_of(&self, project: &ObjectKey) -> Vec<ObjectKey> {
        if (project.group.as_str(), project.kind.as_str()) != (GROUP, "AppProject") {
            return vec![];
        }
        let known = self.known.lock();
        let secrets = known.there.iter().filter(|(key, _)| key.kind == "Secret");
        let of_it =
            secrets.filter(|(_, o)| says(o, "project").is_some_and(|name| name == project.name));
        of_it.map(|(key, _)| key.clone()).collect()
    }

    /// The agents that an Application is, or was, about.
    fn agents_of(&self, state: &State, key: &ObjectKey) -> BTreeSet<NodeId> {
        let mut known = self.known.lock();
        let named = match self.options.mapping {
            Mapping::Namespace => key.namespace.clone(),
            Mapping::Destination => {
                let there = known.there.get(key);
                there.and_then(|o| intent::destination(o)).map(str::to_owned)
            }
        };
        let named = named.and_then(|n| NodeId::new(&n).ok());
        let named = named.filter(|n| state.views.roster.entry(n).is_some());
        if let (Mapping::Destination, Some(agent)) = (self.options.mapping, &named) {
            known.placed.entry(key.clone()).or_default().insert(agent.clone());
        }
        let mut agents = known.placed.get(key).cloned().unwrap_or_default();
        agents.extend(named);
        // A mirror lives in the namespace of its agent, however Applications are placed.
        let home = key.namespace.as_deref().and_then(|n| NodeId::new(n).ok());
        agents.extend(home.filter(|n| state.views.roster.entry(n).is_some()));
        agents
    }

    /// An object that is gone has been looked at wherever it was. Until then its agents are remembered,
    /// those of its former destinations too: whoever looks at it for another reason must not take from it
    /// that they have to let it go.
    fn forget_places(&self, key: &ObjectKey) {
        let mut known = self.known.lock();
        if !known.there.contains_key(key) {
            known.placed.remove(key);
        }
    }

    /// Where an Application of the cluster lives on the shelf of an agent.
    fn on_shelf(&self, agent: &NodeId, key: &ObjectKey) -> ObjectKey {
        let own = key.namespace.as_deref() == Some(self.options.namespace.as_str());
        match self.options.mapping {
            Mapping::Destination if own => {
                ObjectKey { namespace: Some(agent.to_string()), ..key.clone() }
            }
            _ => key.clone(),
        }
    }

    /// Where the source of an object on an agent's shelf is on the cluster.
    fn source_key(&self, agent: &NodeId, key: &ObjectKey) -> ObjectKey {
        let home = key.namespace.as_deref() == Some(agent.as_str());
        let placed = key.kind == "Application" && self.options.mapping == Mapping::Namespace;
        let elsewhere = !placed && !self.is_more(key);
        match home && elsewhere {
            true => ObjectKey { namespace: Some(self.options.namespace.clone()), ..key.clone() },
            false => key.clone(),
        }
    }
}
