//! What the principal calls a thing, and where it is on the shelves: there, the namespace of the agent's
//! name stands for the agent's own.

use bowline_argocd::{Apps, Place, Resource};
use bowline_resources::argocd::{GPG_KEYS, GROUP};
use bowline_resources::{Object, ObjectKey};
use bowline_types::NodeId;

use super::options::PrincipalMapping;

/// Names of both ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Naming {
    pub(super) me: NodeId,
    /// The agent's own namespace on its cluster.
    home: String,
    apps: AppNames,
}

/// Where Applications are.
#[derive(Clone, Debug, PartialEq, Eq)]
enum AppNames {
    /// All in the agent's own namespace, whatever the principal calls it.
    Home,
    /// Where the principal has them, but for those of its own namespace, which are in the agent's own.
    Kept {
        /// The principal's own.
        theirs: String,
    },
}

/// An Application that has no place here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "namespace {0} stands for this agent's own here, so an Application that the control plane has in a \
     namespace of that name would be another's: put it elsewhere"
)]
pub(super) struct Taken(String);

impl Naming {
    /// `theirs` is the principal's own namespace, as it says.
    pub(super) fn new(me: NodeId, home: &str, mapping: PrincipalMapping, theirs: &str) -> Self {
        let apps = match mapping {
            PrincipalMapping::Namespace => AppNames::Home,
            PrincipalMapping::Destination => AppNames::Kept { theirs: theirs.to_owned() },
        };
        Self { me, home: home.to_owned(), apps }
    }

    /// Where Applications are, in the words of the dialect.
    pub(super) fn apps(&self) -> Apps {
        match &self.apps {
            AppNames::Home => Apps::In(self.home.clone()),
            AppNames::Kept { .. } => Apps::AsNamed,
        }
    }

    /// The agent's own namespace on its cluster.
    pub(super) fn home(&self) -> &str {
        &self.home
    }

    /// Where something that the principal speaks of is on the shelves.
    pub(super) fn key_of(&self, resource: Resource, object: &Object) -> Result<ObjectKey, Taken> {
        let (namespace, name) = (object.metadata.namespace.as_deref(), &object.metadata.name);
        let place = Place::new(resource, namespace.unwrap_or_default(), name.as_str());
        let kept = self.is_kept(&place);
        match kept && [self.me.as_str(), &self.home].contains(&place.namespace.as_str()) {
            true => Err(Taken(place.namespace)),
            false => Ok(self.key(&place)),
        }
    }

    /// Where something of the dialect is on the shelves.
    pub(super) fn key(&self, place: &Place) -> ObjectKey {
        let (api_version, kind) = place.resource.type_of();
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let own = || self.me.to_string();
        let namespace = if self.is_kept(place) { place.namespace.clone() } else { own() };
        let (group, kind, name) = (group.into(), kind.into(), place.name.clone());
        ObjectKey { group, kind, namespace: Some(namespace), name }
    }

    /// Where an object of the shelves is, in the words of the dialect; none if it has none.
    pub(super) fn place(&self, key: &ObjectKey) -> Option<Place> {
        let resource = match (key.group.as_str(), key.kind.as_str()) {
            (GROUP, "Application") => Resource::Application,
            (GROUP, "AppProject") => Resource::AppProject,
            ("", "Secret") => Resource::Repository,
            ("", "ConfigMap") if key.name == GPG_KEYS => Resource::GpgKey,
            _ => return None,
        };
        let namespace = key.namespace.as_deref()?;
        let own = namespace == self.me.as_str();
        let namespace = match (&self.apps, resource) {
            (AppNames::Kept { theirs }, Resource::Application) if own => theirs,
            (AppNames::Kept { .. }, Resource::Application) => namespace,
            _ if own => &self.home,
            _ => return None,
        };
        Some(Place::new(resource, namespace, key.name.clone()))
    }

    /// Whether an Application comes from the principal's own namespace, and that is not the one that it
    /// goes to.
    pub(super) fn is_moved(&self, resource: Resource, object: &Object) -> bool {
        let AppNames::Kept { theirs } = &self.apps else { return false };
        resource == Resource::Application
            && object.metadata.namespace.as_ref() == Some(theirs)
            && *theirs != self.home
    }

    /// Whether a thing is in a namespace of the same name on both ends.
    fn is_kept(&self, place: &Place) -> bool {
        match &self.apps {
            AppNames::Home => false,
            AppNames::Kept { theirs } => {
                place.resource == Resource::Application && place.namespace != *theirs
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn naming(mapping: PrincipalMapping) -> Naming {
        Naming::new(NodeId::new("a1").unwrap(), "home", mapping, "theirs")
    }

    fn app(namespace: &str) -> Object {
        let meta = json!({"name": "web", "namespace": namespace});
        let app =
            json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": meta});
        Object::from_value(app).unwrap()
    }

    #[test]
    fn by_namespace_everything_is_the_agents_own() {
        let naming = naming(PrincipalMapping::Namespace);
        for namespace in ["a1", "theirs", "team"] {
            let key = naming.key_of(Resource::Application, &app(namespace)).unwrap();
            assert_eq!(key.to_string(), "argoproj.io/Application/a1/web");
            assert!(!naming.is_moved(Resource::Application, &app(namespace)));
        }
        let key = naming.key(&Place::new(Resource::Application, "home", "web"));
        let place = naming.place(&key).unwrap();
        assert_eq!(place, Place::new(Resource::Application, "home", "web"));
        assert_eq!(naming.place(&ObjectKey { namespace: Some("team".into()), ..key }), None);
    }

    #[test]
    fn by_destination_applications_keep_their_namespaces_but_for_the_principals_own() {
        let naming = naming(PrincipalMapping::Destination);
        let key = |namespace: &str| naming.key_of(Resource::Application, &app(namespace));
        for (namespace, shelf) in [("theirs", "a1"), ("team", "team")] {
            let key = key(namespace).unwrap();
            assert_eq!(key.namespace.as_deref(), Some(shelf));
            let place = naming.place(&key).unwrap();
            assert_eq!(place, Place::new(Resource::Application, namespace, "web"));
            assert_eq!(naming.key(&place), key);
        }
        assert!(naming.is_moved(Resource::Application, &app("theirs")));
        assert!(!naming.is_moved(Resource::Application, &app("team")));
        assert!(key("a1").unwrap_err().to_string().starts_with("namespace a1 stands for"));
        assert!(key("home").is_err());
        let project = naming.key(&Place::new(Resource::AppProject, "theirs", "shop"));
        assert_eq!(project.namespace.as_deref(), Some("a1"));
        assert_eq!(naming.place(&project).unwrap().namespace, "home");
    }
}
