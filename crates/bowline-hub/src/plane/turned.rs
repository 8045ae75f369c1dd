//! Mirrors that become sources: an agent was autonomous, and what the control plane merely showed of it
//! is now what is wanted there. Neither the agent's object nor the one here is made anew.

use std::sync::Arc;

use bowline_kube::{Delete, Error, Part, Patch, Propagation};
use bowline_resources::argocd::{LAST_UPDATED, SOURCE_UID, project};
use bowline_resources::{Desired, Object, ObjectKey};
use bowline_types::NodeId;
use serde_json::{Value, json};

use super::Plane;
use super::mirror::shows;

/// What the cluster says of an object on an agent's shelf.
pub(super) enum Found {
    /// It wants it so.
    Source(Arc<Object>),
    /// It does not want it.
    Nothing,
    /// It has another of that name, which is not for this agent: the agent keeps what it had.
    Taken,
}

impl From<Option<Arc<Object>>> for Found {
    fn from(source: Option<Arc<Object>>) -> Self {
        source.map_or(Self::Nothing, Self::Source)
    }
}

impl Plane {
    /// The source of an object, as a source should be.
    pub(super) async fn settled_source(
        &self,
        agent: &NodeId,
        key: &ObjectKey,
        had: Option<&Desired>,
    ) -> Result<Found, Error> {
        let found = self.source(agent, key);
        match (key.kind.as_str(), &found, had) {
            ("Application", Some(there), _) if is_mirror(there) => {
                self.turn_application(agent, there).await?;
                Ok(self.source(agent, key).into())
            }
            ("AppProject", None, Some(had)) => self.turn_project(agent, key, had).await,
            // It was managed before it was autonomous.
            ("AppProject", Some(_), _) => {
                self.drop_mirror(agent, key).await?;
                Ok(found.into())
            }
            _ => Ok(found.into()),
        }
    }

    /// Takes the agent's name off the project of an Application.
    async fn turn_application(&self, agent: &NodeId, there: &Object) -> Result<(), Error> {
        let shown = there.spec.as_ref().and_then(|s| s.get("project")).and_then(Value::as_str);
        let prefix = project::mirror_name(agent.as_str(), "");
        let own = shown.and_then(|p| p.strip_prefix(&prefix)).or(shown);
        let patch = json!({
            "metadata": {"annotations": {LAST_UPDATED: null}},
            "spec": {"project": own},
        });
        self.patch(there, &Patch::Merge(patch), Part::Whole).await
    }

    /// Makes a project of an agent one of the control plane's under its own name, unless there is one of
    /// that name.
    async fn turn_project(
        &self,
        agent: &NodeId,
        key: &ObjectKey,
        had: &Desired,
    ) -> Result<Found, Error> {
        let own = self.source_key(agent, key);
        if self.project_mirror(agent, key).is_none() {
            return Ok(Found::Nothing);
        }
        if self.there(&own).is_some() {
            tracing::warn!(%agent, project = %own.name,
                "the control plane has a project of this name that is not for this agent: the agent \
                 keeps its own; make it match the agent, or delete the mirror");
            return Ok(Found::Taken);
        }
        let kind = self.kind(key).await?;
        let made = self.cluster.create(&kind, &self.as_source(agent, had)).await?;
        self.note(made);
        self.drop_mirror(agent, key).await?;
        Ok(self.source(agent, key).into())
    }

    /// What shows a project of an agent, under the agent's name.
    fn project_mirror(&self, agent: &NodeId, key: &ObjectKey) -> Option<Arc<Object>> {
        let name = project::mirror_name(agent.as_str(), &key.name);
        let place = ObjectKey { name, ..self.source_key(agent, key) };
        self.there(&place).filter(|there| is_mirror(there) && shows(there, agent))
    }

    /// Shows a project no longer that the control plane has under its own name.
    async fn drop_mirror(&self, agent: &NodeId, key: &ObjectKey) -> Result<(), Error> {
        let Some(mirror) = self.project_mirror(agent, key) else { return Ok(()) };
        let (kind, meta) = (self.kind(key).await?, &mirror.metadata);
        let how = Delete {
            uid: meta.uid.clone(),
            resource_version: None,
            propagation: Propagation::Background,
        };
        self.cluster.delete(&kind, meta.namespace.as_deref(), &meta.name, how).await?;
        self.known.lock().there.remove(&mirror.key());
        Ok(())
    }

    /// A project of an agent's own, as the control plane says it of that agent.
    fn as_source(&self, agent: &NodeId, had: &Desired) -> Object {
        let mut object = had.object.intended();
        object.metadata.namespace = Some(self.options.namespace.clone());
        object.metadata.finalizers.clear();
        object.metadata.annotations.insert(SOURCE_UID.into(), had.uid.clone());
        if let Some(Value::Object(spec)) = &mut object.spec {
            spec.insert("sourceNamespaces".into(), json!([agent.as_str()]));
            let destinations = spec.get_mut("destinations").and_then(Value::as_array_mut);
            for destination in destinations.into_iter().flatten() {
                if let Value::Object(fields) = destination {
                    fields.insert("name".into(), agent.as_str().into());
                    fields.remove("server");
                }
            }
        }
        object
    }
}

/// Whether an object was made to show what an agent has.
pub(super) fn is_mirror(there: &Object) -> bool {
    let annotations = &there.metadata.annotations;
    annotations.contains_key(LAST_UPDATED) && annotations.contains_key(SOURCE_UID)
}
