//! What an agent stands on: a cluster inside itself, or Kubernetes.

use std::sync::Arc;

use bowline_drive::{Fold, Handle};
use bowline_kube::Cluster;
use bowline_resources::Site;
use bowline_sync::Recovery;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::applier::{Applier, Sink};
use crate::embedded::Embedded;
use crate::error::Error;
use crate::kubernetes::{Errand, Intake, Kubernetes, KubernetesOptions, Listed};
use crate::shelves::Shelves;
use crate::world::World;

/// The cluster of an agent.
pub(crate) enum Ground {
    /// Inside the agent.
    Embedded(Arc<Embedded>),
    /// A real one.
    Kubernetes(Arc<Kubernetes>, mpsc::UnboundedReceiver<Errand>),
}

impl Ground {
    /// Gets ready; a cluster that cannot be reached is waited for later.
    pub(crate) async fn open(
        options: Option<&KubernetesOptions>,
        shelves: &Shelves,
        world: &Arc<World>,
    ) -> Result<Self, Error> {
        let Some(options) = options else {
            return Ok(Self::Embedded(Arc::new(Embedded::new(shelves.live.clone()))));
        };
        let cluster = Cluster::connect(options.cluster.clone()).await?;
        let site = Site { agent: shelves.me.clone(), namespace: options.namespace.clone() };
        let sink = Sink(world.clone());
        let (kube, errands) = Kubernetes::new(cluster, site, options.clone(), sink);
        Ok(Self::Kubernetes(Arc::new(kube), errands))
    }

    pub(crate) fn applier(&self) -> Arc<dyn Applier> {
        match self {
            Self::Embedded(embedded) => embedded.clone(),
            Self::Kubernetes(kube, _) => kube.clone(),
        }
    }

    /// What follows the node's shelves on behalf of the cluster.
    pub(crate) fn fold(&self, world: &Arc<World>) -> Option<Box<dyn Fold>> {
        match self {
            Self::Embedded(embedded) => Some(Box::new(embedded.fold(Sink(world.clone())))),
            Self::Kubernetes(..) => None,
        }
    }

    /// How the agent's own `desired` is found again after a loss: a cluster is listed, a person's
    /// word is taken back from whoever has it.
    pub(crate) fn recovery(&self) -> Recovery {
        match self {
            Self::Embedded(_) => Recovery::Adopt,
            Self::Kubernetes(..) => Recovery::Relist,
        }
    }

    /// The node is there: the work begins.
    pub(crate) fn start(
        self,
        handle: &Handle,
        shelves: &Shelves,
        world: &Arc<World>,
        tasks: &TaskTracker,
        stop: &CancellationToken,
    ) {
        let (kube, errands) = match self {
            Self::Embedded(embedded) => return embedded.bind(handle.clone()),
            Self::Kubernetes(kube, errands) => (kube, errands),
        };
        let listed = Arc::new(Listed::new(kube.watched().len()));
        for at in 0..kube.watched().len() {
            tasks.spawn(kube.clone().follow(at, listed.clone(), stop.clone()));
        }
        let intake = Intake {
            kube: kube.clone(),
            handle: handle.clone(),
            shelves: shelves.clone(),
            world: world.clone(),
            wake: kube.wake.clone(),
        };
        tasks.spawn(intake.run(stop.clone()));
        tasks.spawn(kube.run_errands(errands, stop.clone()));
    }
}
