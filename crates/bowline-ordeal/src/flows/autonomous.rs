//! Flows of an autonomous agent: its cluster's word counts, and the control plane shows it.

use anyhow::Result;
use serde_json::{Value, json};

use super::controller::SYNCS;
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
    Delete,
    Project,
}

impl Flow {
    pub(crate) const ALL: &[Self] =
        &[Self::Create, Self::Update, Self::Status, Self::Sync, Self::Delete, Self::Project];

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
            _ => app(&place.namespace, &place.name, "old"),
        }
    }

    pub(crate) async fn prepare(self, play: &Play<'_>) -> Result<()> {
        if self == Self::Create {
            return Ok(());
        }
        play.ground.autonomous.cluster.create(&self.object(play)).await?;
        let above = self.above(play);
        until(&format!("{above} is shown"), PATIENCE, async || {
            there(play.ground.plane.get(&above).await?, "the mirror").map(drop)
        })
        .await
    }

    pub(crate) async fn act(self, play: &Play<'_>) -> Result<()> {
        let (plane, site) = (&play.ground.plane, &play.ground.autonomous.cluster);
        let below = self.below(play);
        match self {
            Self::Create => site.create(&self.object(play)).await,
            Self::Update => site.patch(&below, &json!({"spec": {"source": {"path": "new"}}})).await,
            Self::Status => site.patch(&below, &health()).await,
            Self::Sync => {
                let operation = json!({"operation": {"sync": {"revision": "v2"}}});
                plane.patch(&self.above(play), &operation).await
            }
            Self::Delete => site.delete(&below).await,
            Self::Project => site.patch(&below, &json!({"spec": {"description": "new"}})).await,
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
        same_status(&mirror, &source)?;
        match self {
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
