//! A real cluster: what is wanted is applied on a Kubernetes API, and what that tells is what is there.
//!
//! Nothing of Bowline's own is kept on the cluster but the uid of the object that a copy was made
//! from. Which record a copy was applied from is known here only; after a restart it is found out by
//! comparing, which writes nothing where nothing differs.

mod end;
mod intake;
mod look;
mod operate;
#[cfg(test)]
mod tests;
mod there;
mod watch;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bowline_kube::{Brake, Cluster, Departed, Kind};
use bowline_resources::simulated::Look;
use bowline_resources::{
    Desired, LabelSelector, Object, ObjectKey, Observed, OperationRequest, Owner, Site, argocd,
    rfc3339,
};
use bowline_types::{Rev, Wall};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

use crate::applier::{Applier, BoxFuture, Sink, Task};
use crate::clock::{after, wall};

pub(crate) use intake::Intake;
pub(crate) use operate::Errand;
pub(crate) use watch::Listed;

/// What an agent has to do with a Kubernetes cluster.
#[derive(Clone, Debug)]
pub struct KubernetesOptions {
    /// How the cluster is reached.
    pub cluster: bowline_kube::Options,
    /// The agent's own namespace there: that of its Argo CD.
    pub namespace: String,
    /// Further namespaces with objects of the agent's, as names or patterns; `*`: all.
    pub namespaces: Vec<String>,
    /// Whether a namespace that is wanted and missing is made, if it is one of the agent's.
    pub create_namespaces: bool,
    /// What the agent has to do with must bear these labels.
    pub labels: LabelSelector,
    /// The kinds it has to do with.
    pub kinds: Vec<Watched>,
    /// What becomes of Applications that are there already and were made by nobody we know.
    pub adoption: Adoption,
    /// What becomes of objects that were made from another source of the same name.
    pub mismatch: Mismatch,
    /// What becomes of the last operation of an Application that somebody deleted here.
    pub recreation: Recreation,
}

/// A kind that an agent has to do with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// The API group; empty for the core group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// Only objects with these labels.
    pub labels: Option<String>,
    /// Only the object of this name.
    pub name: Option<String>,
    /// Only in the agent's own namespace: Argo CD reads it nowhere else, and rights elsewhere would be for
    /// nothing.
    pub at_home: bool,
    /// Whether the hub is told of what an autonomous agent has of it.
    pub shown: bool,
}

/// What becomes of Applications that are there already and were made by nobody we know. Other objects
/// are always taken over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Adoption {
    /// They are taken over.
    #[default]
    Always,
    /// They are left alone, and the hub is told.
    Never,
}

/// What becomes of objects that were made from another source of the same name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mismatch {
    /// They are deleted and made anew.
    #[default]
    Recreate,
    /// They are made what is wanted, as they stand.
    Upsert,
}

/// What becomes of the last operation of an Application that somebody deleted on a managed agent's
/// cluster, when it is made again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recreation {
    /// Nothing: it is made without a status, and Argo CD does as its sync policy says.
    #[default]
    Ignore,
    /// The control plane is told that there was none.
    ClearStatus,
    /// It is asked for once more.
    Resync,
}

impl KubernetesOptions {
    /// The usual: Argo CD's kinds in its own namespace.
    pub fn new(cluster: bowline_kube::Options) -> Self {
        Self {
            cluster,
            namespace: "argocd".into(),
            namespaces: vec![],
            create_namespaces: false,
            labels: LabelSelector::default(),
            kinds: Watched::of_argocd(),
            adoption: Adoption::default(),
            mismatch: Mismatch::default(),
            recreation: Recreation::default(),
        }
    }
}

impl Watched {
    /// Every object of a kind.
    pub fn all(group: &str, kind: &str) -> Self {
        let (labels, name) = (None, None);
        Self { group: group.into(), kind: kind.into(), labels, name, at_home: false, shown: true }
    }

    /// What Argo CD lives on.
    pub fn of_argocd() -> Vec<Self> {
        let of_argocd = |kind| Self::all(argocd::GROUP, kind);
        let projects = Self { at_home: true, ..of_argocd("AppProject") };
        let repositories = Self {
            labels: Some(format!("{} in (repository,repo-creds)", argocd::SECRET_TYPE)),
            at_home: true,
            shown: false,
            ..Self::all("", "Secret")
        };
        let keys = Self {
            name: Some(argocd::GPG_KEYS.into()),
            at_home: true,
            shown: false,
            ..Self::all("", "ConfigMap")
        };
        vec![of_argocd("Application"), projects, repositories, keys]
    }
}

/// The applier over a Kubernetes API.
pub(crate) struct Kubernetes {
    cluster: Cluster,
    site: Site,
    options: KubernetesOptions,
    sink: Sink,
    known: Mutex<Known>,
    /// Held from looking to telling: what was seen first must not be told last.
    telling: Mutex<()>,
    errands: mpsc::UnboundedSender<Errand>,
    /// What may have to be taken in, and whom to tell of it.
    intake: Mutex<intake::News>,
    pub(crate) wake: Arc<Notify>,
}

/// What is known of the cluster, by the keys of the shelf.
#[derive(Debug, Default)]
struct Known {
    there: BTreeMap<ObjectKey, Arc<Object>>,
    departed: Departed,
    applied: BTreeMap<ObjectKey, Applied>,
    troubles: BTreeMap<ObjectKey, Trouble>,
    /// Kinds, by group and kind, that the cluster does not tell of, and why: nothing of them is written.
    untold: BTreeMap<(String, String), String>,
    /// Applications that somebody else deleted, as they last were: they are made again.
    lost: BTreeMap<ObjectKey, Arc<Object>>,
    /// Those that were made again, and of which the hub is told that they have no status.
    cleared: BTreeSet<ObjectKey>,
    /// The uids of what is deleted here by ourselves.
    ending: BTreeSet<String>,
    /// Operations that are on their way to the cluster, or wait for their next try.
    errands: BTreeSet<(ObjectKey, String)>,
    /// Of those, the ones that the cluster will not take, and why.
    refused: BTreeMap<(ObjectKey, String), String>,
    /// Holds back where somebody else undoes what is put back here.
    brake: Brake,
}

/// From which record an object was made what it is.
#[derive(Clone, Debug)]
struct Applied {
    desired: Arc<Desired>,
    rev: Rev,
    from: Owner,
}

/// What was tried in vain.
#[derive(Clone, Debug)]
struct Trouble {
    times: u32,
    again: Wall,
}

impl Trouble {
    /// When to try again, as seen from now: not at once, which would be without end where nothing comes
    /// of it, and not later than any wait is, though the clock was set back meanwhile.
    fn due(&self, now: Wall) -> Wall {
        self.again.clamp(after(now, work::WAITS.0), after(now, work::WAITS.1))
    }
}

impl Known {
    /// An object is gone, unless another of its name is there by now.
    fn forget(&mut self, key: &ObjectKey, gone: &Object) {
        if self.is_still(key, gone) {
            self.there.remove(key);
            self.applied.remove(key);
        }
    }

    /// The deletion of an object has begun, unless it is over already.
    fn mark_going(&mut self, key: &ObjectKey, going: &Object) {
        if self.is_still(key, going) {
            let mut going = going.clone();
            going.metadata.deletion_timestamp = Some(rfc3339(wall()));
            self.there.insert(key.clone(), Arc::new(going));
        }
    }

    fn is_still(&self, key: &ObjectKey, object: &Object) -> bool {
        self.there.get(key).is_some_and(|there| there.metadata.uid == object.metadata.uid)
    }
}

impl Kubernetes {
    pub(crate) fn new(
        cluster: Cluster,
        site: Site,
        options: KubernetesOptions,
        sink: Sink,
    ) -> (Self, mpsc::UnboundedReceiver<Errand>) {
        let (errands, todo) = mpsc::unbounded_channel();
        let kube = Self {
            cluster,
            site,
            options,
            sink,
            known: Mutex::default(),
            telling: Mutex::default(),
            errands,
            intake: Mutex::default(),
            wake: Arc::default(),
        };
        (kube, todo)
    }

    /// Why the cluster does not tell of objects like this, if it does not.
    fn untold(&self, key: &ObjectKey) -> Option<String> {
        self.known.lock().untold.get(&(key.group.clone(), key.kind.clone())).cloned()
    }

    /// Whether a namespace is one of the agent's; what belongs to no namespace is everybody's.
    fn is_ours(&self, namespace: Option<&str>) -> bool {
        let Some(namespace) = namespace else { return true };
        let patterns = &self.options.namespaces;
        namespace == self.site.namespace
            || patterns.iter().any(|pattern| argocd::glob::matches(pattern, namespace))
    }

    /// Whether objects of a kind are followed in the agent's own namespace only.
    fn is_at_home(&self, group: &str, kind: &str) -> bool {
        let mut of_it = self.options.kinds.iter().filter(|w| w.group == group && w.kind == kind);
        of_it.clone().next().is_some() && of_it.all(|w| w.at_home)
    }

    /// Whether the hub is told of what the cluster owns of this kind.
    fn shows(&self, key: &ObjectKey) -> bool {
        let this = |w: &&Watched| w.group == key.group && w.kind == key.kind;
        self.options.kinds.iter().filter(this).any(|w| w.shown)
    }

    /// The kind of an object, as the cluster serves it.
    async fn kind(&self, key: &ObjectKey) -> Result<Kind, bowline_kube::Error> {
        self.cluster.kind(&key.group, &key.kind).await
    }
}

impl Applier for Kubernetes {
    fn perform<'a>(&'a self, tasks: &'a [Task]) -> BoxFuture<'a, Vec<Result<(), String>>> {
        Box::pin(self.run(tasks))
    }

    fn look(&self, desired: &Desired, rev: Rev, before: Option<&Observed>, now: Wall) -> Look {
        self.see(desired, rev, before, now)
    }

    fn retry(&self, key: &ObjectKey) -> Option<Wall> {
        self.known.lock().troubles.get(key).map(|trouble| trouble.due(wall()))
    }

    fn turned(&self) {
        let keys: Vec<_> = self.known.lock().there.keys().cloned().collect();
        keys.iter().for_each(|key| self.tell(key));
    }

    fn operate(
        &self,
        desired: &Desired,
        rev: Rev,
        before: Option<&Observed>,
        request: &OperationRequest,
        now: Wall,
    ) -> Result<Look, String> {
        self.take_on(desired, rev, before, request, now)
    }
}
