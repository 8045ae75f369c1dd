//! Flows of an autonomous agent: its cluster's word counts, and the control plane shows it.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::controller::{LASTING, REFRESH, REFRESHES, SYNCS};
use super::flow::{Play, gone, is, there};
use super::managed::{health, pointer, same_status};
use crate::cluster::{Place, app};
use crate::stage::{PATIENCE, until};

/// The flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Flow {
    Create,
    Update,
    Status,
    Sync,
    Refresh,
    Terminate,
    Delete,
    Project,
    /// The mirror is edited.
    Revert,
    /// The mirror is deleted.
    Recreate,
}

impl Flow {
    pub(crate) const ALL: &[Self] = &[
        Self::Create,
        Self::Update,
        Self::Status,
        Self::Sync,
        Self::Refresh,
        Self::Terminate,
        Self::Delete,
        Self::Project,
        Self::Revert,
        Self::Recreate,
    ];

    /// Where the source is on the agent's cluster.
    fn below(self, play: &Play<'_>) -> Place {
        let kind = if self == Self::Project { "AppProject" } else { "Application" };
        Place::new(kind, &play.ground.autonomous.namespace, &play.name)
    }

    /// Where it is shown on the control plane.
    fn above(self, play: &Play<'_>) -> Place {
        let agent = &play.ground.autonomous.agent;
        match self {
            Self::Project => {
                Place::new("AppProject", &play.ground.argocd, &format!("{agent}-{}", play.name))
            }
            _ => Place::app(agent, &play.name),
        }
    }

    fn object(self, play: &Play<'_>) -> Value {
        let place = self.below(play);
        match self {
            Self::Project => json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
                "metadata": {"name": place.name, "namespace": place.namespace},
                "spec": {
                    "description": "old", "sourceRepos": ["*"],
                    "destinations": [{"server": "https://kubernetes.default.svc", "namespace": "web"}],
                },
            }),
            Self::Terminate => {
                let mut app = app(&place.namespace, &place.name, "old");
                app["metadata"]["annotations"] = json!({LASTING: "yes"});
                app
            }
            _ => app(&place.namespace, &place.name, "old"),
        }
    }

    pub(crate) async fn prepare(self, play: &Play<'_>) -> Result<()> {
        if self == Self::Create {
            return Ok(());
        }
        play.ground.autonomous.cluster.create(&self.object(play)).await?;
        let (plane, above) = (&play.ground.plane, self.above(play));
        until(&format!("{above} is shown"), PATIENCE, async || {
            there(plane.get(&above).await?, "the mirror").map(drop)
        })
        .await?;
        if self != Self::Terminate {
            return Ok(());
        }
        plane.patch(&above, &json!({"operation": {"sync": {"revision": "v1"}}})).await?;
        until("an operation runs", PATIENCE, async || {
            let mirror = there(plane.get(&above).await?, "the mirror")?;
            is(&mirror, "/operation", &Value::Null)?;
            is(&mirror, "/status/operationState/phase", &json!("Running"))
        })
        .await
    }

    pub(crate) async fn act(self, play: &Play<'_>) -> Result<()> {
        let (plane, site) = (&play.ground.plane, &play.ground.autonomous.cluster);
        let (above, below) = (self.above(play), self.below(play));
        match self {
            Self::Create => site.create(&self.object(play)).await,
            Self::Update => site.patch(&below, &json!({"spec": {"source": {"path": "new"}}})).await,
            Self::Status => site.patch(&below, &health()).await,
            Self::Sync => {
                let operation = json!({"operation": {"sync": {"revision": "v2"}}});
                plane.patch(&above, &operation).await
            }
            Self::Refresh => {
                let asked = json!({"metadata": {"annotations": {REFRESH: "normal"}}});
                plane.patch(&above, &asked).await
            }
            Self::Terminate => {
                let phase = json!({"status": {"operationState": {"phase": "Terminating"}}});
                plane.patch(&above, &phase).await
            }
            Self::Delete => site.delete(&below).await,
            Self::Project => site.patch(&below, &json!({"spec": {"description": "new"}})).await,
            Self::Revert => {
                plane.patch(&above, &json!({"spec": {"source": {"path": "mine"}}})).await
            }
            Self::Recreate => plane.delete(&above).await,
        }
    }

    pub(crate) async fn look(self, play: &Play<'_>) -> Result<()> {
        let source = play.ground.autonomous.cluster.get(&self.below(play)).await?;
        let mirror = play.ground.plane.get(&self.above(play)).await?;
        if self == Self::Delete {
            gone(source, "the source")?;
            return gone(mirror, "the mirror");
        }
        let (source, mirror) = (there(source, "the source")?, there(mirror, "the mirror")?);
        let uid = "/metadata/annotations/argocd.argoproj.io~1source-uid";
        is(&mirror, uid, &source["metadata"]["uid"])?;
        is(&source, "/metadata/deletionTimestamp", &Value::Null)?;
        if self == Self::Project {
            is(&source, "/spec/description", &json!("new"))?;
            return is(&mirror, "/spec/description", &json!("new"));
        }
        let wanted = if self == Self::Update { "new" } else { "old" };
        is(&source, "/spec/source/path", &json!(wanted))?;
        is(&mirror, "/spec/source/path", &json!(wanted))?;
        is(&mirror, "/operation", &Value::Null)?;
        is(&mirror, &pointer(REFRESH), &Value::Null)?;
        same_status(&mirror, &source)?;
        match self {
            Self::Refresh => {
                ensure!(source.pointer(&pointer(REFRESHES)).is_some(), "nobody has looked");
                Ok(())
            }
            Self::Terminate => {
                is(&source, &pointer(SYNCS), &json!("1"))?;
                is(&source, "/status/operationState/phase", &json!("Failed"))
            }
            Self::Status => is(&source, "/status/health/status", &json!("Healthy")),
            Self::Sync => {
                is(&source, "/status/operationState/operation/sync/revision", &json!("v2"))?;
                is(&source, &pointer(SYNCS), &json!("1"))
            }
            _ => Ok(()),
        }
    }

    pub(crate) async fn clear(self, play: &Play<'_>) -> Result<()> {
        play.ground.autonomous.cluster.delete(&self.below(play)).await
    }
}
