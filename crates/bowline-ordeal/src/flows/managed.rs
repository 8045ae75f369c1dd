//! Flows of a managed agent: the control plane's word counts.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::controller::{FINALIZER, LASTING, REFRESH, REFRESHES, SYNCS};
use super::flow::{Play, gone, is, there};
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
    /// Deletion of what has a finalizer.
    Finalize,
    Project,
    Repository,
    Revert,
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
        Self::Finalize,
        Self::Project,
        Self::Repository,
        Self::Revert,
        Self::Recreate,
    ];

    fn kind(self) -> &'static str {
        match self {
            Self::Project => "AppProject",
            Self::Repository => "Secret",
            _ => "Application",
        }
    }

    /// Where the source is on the control plane.
    fn above(self, play: &Play<'_>) -> Place {
        let namespace = match self {
            Self::Project | Self::Repository => &play.ground.argocd,
            _ => &play.ground.managed.agent,
        };
        Place::new(self.kind(), namespace, &play.name)
    }

    /// Where the copy is on the agent's cluster.
    fn below(self, play: &Play<'_>) -> Place {
        Place::new(self.kind(), &play.ground.managed.namespace, &play.name)
    }

    fn object(self, play: &Play<'_>) -> Value {
        let (place, agent) = (self.above(play), &play.ground.managed.agent);
        let mut object = match self {
            Self::Project => json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
                "spec": {
                    "description": "old", "sourceRepos": ["*"], "sourceNamespaces": [agent],
                    "destinations": [{"name": agent, "namespace": "*"}],
                },
            }),
            Self::Repository => json!({
                "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
                "stringData": {"url": "https://example.com/repo.git", "password": "old"},
            }),
            _ => app(&place.namespace, &place.name, "old"),
        };
        object["metadata"] = json!({"name": place.name, "namespace": place.namespace});
        match self {
            Self::Finalize => object["metadata"]["finalizers"] = json!([FINALIZER]),
            Self::Terminate => object["metadata"]["annotations"] = json!({LASTING: "yes"}),
            Self::Repository => {
                object["metadata"]["labels"] =
                    json!({"argocd.argoproj.io/secret-type": "repository"});
            }
            _ => {}
        }
        object
    }

    pub(crate) async fn prepare(self, play: &Play<'_>) -> Result<()> {
        if self == Self::Create {
            return Ok(());
        }
        let (plane, site) = (&play.ground.plane, &play.ground.managed.cluster);
        plane.create(&self.object(play)).await?;
        let below = self.below(play);
        until(&format!("{below} is there"), PATIENCE, async || {
            there(site.get(&below).await?, "the copy").map(drop)
        })
        .await?;
        if self != Self::Terminate {
            return Ok(());
        }
        let above = self.above(play);
        plane.patch(&above, &json!({"operation": {"sync": {"revision": "v1"}}})).await?;
        until("an operation runs", PATIENCE, async || {
            let source = there(plane.get(&above).await?, "the source")?;
            is(&source, "/operation", &Value::Null)?;
            is(&source, "/status/operationState/phase", &json!("Running"))
        })
        .await
    }

    pub(crate) async fn act(self, play: &Play<'_>) -> Result<()> {
        let (plane, site) = (&play.ground.plane, &play.ground.managed.cluster);
        let (above, below) = (self.above(play), self.below(play));
        let path = |path: &str| json!({"spec": {"source": {"path": path}}});
        match self {
            Self::Create => plane.create(&self.object(play)).await,
            Self::Update => plane.patch(&above, &path("new")).await,
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
            Self::Delete | Self::Finalize => plane.delete(&above).await,
            Self::Project => plane.patch(&above, &json!({"spec": {"description": "new"}})).await,
            Self::Repository => {
                plane.patch(&above, &json!({"stringData": {"password": "new"}})).await
            }
            Self::Revert => site.patch(&below, &path("mine")).await,
            Self::Recreate => site.delete(&below).await,
        }
    }

    pub(crate) async fn look(self, play: &Play<'_>) -> Result<()> {
        let (plane, site) = (&play.ground.plane, &play.ground.managed.cluster);
        let (above, below) = (self.above(play), self.below(play));
        let (source, copy) = (plane.get(&above).await?, site.get(&below).await?);
        if matches!(self, Self::Delete | Self::Finalize) {
            gone(source, "the source")?;
            return gone(copy, "the copy");
        }
        let (source, copy) = (there(source, "the source")?, there(copy, "the copy")?);
        let uid = "/metadata/annotations/argocd.argoproj.io~1source-uid";
        is(&copy, uid, &source["metadata"]["uid"])?;
        is(&copy, "/metadata/deletionTimestamp", &Value::Null)?;
        match self {
            Self::Project => {
                is(&copy, "/spec/description", &json!("new"))?;
                is(&copy, "/spec/destinations/0/name", &json!("in-cluster"))
            }
            Self::Repository => {
                is(&source, "/data/password", &json!("bmV3"))?;
                is(&copy, "/data", &source["data"])
            }
            _ => self.look_at_app(&source, &copy),
        }
    }

    fn look_at_app(self, source: &Value, copy: &Value) -> Result<()> {
        let wanted = if self == Self::Update { "new" } else { "old" };
        is(source, "/spec/source/path", &json!(wanted))?;
        is(copy, "/spec/source/path", &json!(wanted))?;
        // Nothing stays asked for.
        is(source, "/operation", &Value::Null)?;
        is(copy, "/operation", &Value::Null)?;
        is(source, &pointer(REFRESH), &Value::Null)?;
        same_status(source, copy)?;
        let phase = "/status/operationState/phase";
        match self {
            Self::Status => is(copy, "/status/health/status", &json!("Healthy")),
            Self::Sync => {
                is(copy, "/status/operationState/operation/sync/revision", &json!("v2"))?;
                is(copy, &pointer(SYNCS), &json!("1"))?;
                is(copy, phase, &json!("Succeeded"))
            }
            Self::Terminate => {
                is(copy, &pointer(SYNCS), &json!("1"))?;
                is(copy, phase, &json!("Failed"))
            }
            Self::Refresh => {
                let looked = copy.pointer(&pointer(REFRESHES)).is_some();
                ensure!(looked, "nobody has looked");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    pub(crate) async fn clear(self, play: &Play<'_>) -> Result<()> {
        play.ground.plane.delete(&self.above(play)).await
    }
}

/// Complains unless both say the same of how it is doing. Nothing, and nothing any more, are alike.
pub(crate) fn same_status(one: &Value, other: &Value) -> Result<()> {
    let said = |object: &Value| match &object["status"] {
        Value::Object(status) if status.is_empty() => Value::Null,
        status => status.clone(),
    };
    let (one, other) = (said(one), said(other));
    ensure!(one == other, "one end says {one}, the other {other}");
    Ok(())
}

/// What Argo CD writes when all is well.
pub(crate) fn health() -> Value {
    json!({"status": {
        "health": {"status": "Healthy"}, "sync": {"status": "Synced", "revision": "abc"},
    }})
}

/// Where an annotation is.
pub(crate) fn pointer(annotation: &str) -> String {
    format!("/metadata/annotations/{}", annotation.replace('/', "~1"))
}
