//! The objects that the dialect keeps in step, and their names on the wire.

use std::fmt;

use bowline_resources::Object;

use crate::Target;

/// The annotation by which a copy names the object it was made of.
pub const SOURCE_UID: &str = "argocd.argoproj.io/source-uid";

/// A kind of object that the dialect keeps in step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// Applications.
    Application,
    /// AppProjects.
    AppProject,
    /// Secrets with a repository or its credentials.
    Repository,
    /// The ConfigMap with GPG keys.
    GpgKey,
}

impl Resource {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::Application, Self::AppProject, Self::Repository, Self::GpgKey];

    /// Its name in a resync; none for a kind that the dialect does not know.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.name() == name)
    }

    /// The kind that an event of this target is about; none if it is about no object.
    pub fn of(target: &Target) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.target() == *target)
    }

    /// Its name in a resync.
    pub fn name(self) -> &'static str {
        match self {
            Self::Application => "Application",
            Self::AppProject => "AppProject",
            Self::Repository => "Repository",
            Self::GpgKey => "GPGKey",
        }
    }

    /// The target of its events.
    pub fn target(self) -> Target {
        match self {
            Self::Application => Target::Application,
            Self::AppProject => Target::AppProject,
            Self::Repository => Target::Repository,
            Self::GpgKey => Target::GpgKey,
        }
    }

    /// The apiVersion and kind of its objects, which the typed JSON of Go leaves out.
    pub fn type_of(self) -> (&'static str, &'static str) {
        match self {
            Self::Application => ("argoproj.io/v1alpha1", "Application"),
            Self::AppProject => ("argoproj.io/v1alpha1", "AppProject"),
            Self::Repository => ("v1", "Secret"),
            Self::GpgKey => ("v1", "ConfigMap"),
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Where an object is, whatever incarnation of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// What it is.
    pub resource: Resource,
    /// Its namespace on this end.
    pub namespace: String,
    /// Its name on this end.
    pub name: String,
}

impl Place {
    /// A place.
    pub fn new(resource: Resource, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { resource, namespace: namespace.into(), name: name.into() }
    }

    /// Where this object is.
    pub fn of(resource: Resource, object: &Object) -> Self {
        let namespace = object.metadata.namespace.clone().unwrap_or_default();
        Self::new(resource, namespace, object.metadata.name.clone())
    }

    /// The `subject` of its events.
    pub fn subject(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.resource, self.namespace, self.name)
    }
}

/// The `resourceid` of an object's events.
pub fn resource_id(name: &str, uid: &str) -> String {
    format!("{name}_{uid}")
}

/// The uid by which both ends know the object: that of its source.
pub fn source_uid(object: &Object) -> &str {
    let noted = object.metadata.annotations.get(SOURCE_UID).filter(|uid| !uid.is_empty());
    noted.or(object.metadata.uid.as_ref()).map_or("", String::as_str)
}

/// The object's resourceVersion; empty if it has none.
pub fn version_of(object: &Object) -> &str {
    object.metadata.rest.get("resourceVersion").and_then(|v| v.as_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_and_targets_lead_back() {
        for resource in Resource::ALL {
            assert_eq!(Resource::from_name(resource.name()), Some(resource));
            assert_eq!(Resource::of(&resource.target()), Some(resource));
        }
        assert_eq!(Resource::from_name("ApplicationSet"), None, "only between two principals");
        assert_eq!(Resource::of(&Target::Heartbeat), None);
    }

    #[test]
    fn a_copy_goes_by_the_uid_of_its_source() {
        let mut object = Object::from_value(json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "r", "namespace": "argocd", "uid": "own", "resourceVersion": "9"},
        }))
        .unwrap();
        assert_eq!((source_uid(&object), version_of(&object)), ("own", "9"));
        object.metadata.annotations.insert(SOURCE_UID.into(), "theirs".into());
        assert_eq!(source_uid(&object), "theirs");
        object.metadata.annotations.insert(SOURCE_UID.into(), String::new());
        assert_eq!(source_uid(&object), "own");
        assert_eq!(Place::of(Resource::Repository, &object).subject(), "argocd/r");
    }
}
