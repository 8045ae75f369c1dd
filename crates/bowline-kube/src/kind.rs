//! Kinds and where they are served, found by discovery.

use serde::Deserialize;

use crate::Error;
use crate::call::{About, Call, encoded};
use crate::cluster::Cluster;

/// A kind as a cluster serves it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    /// Its group; empty for the core group.
    pub group: String,
    /// The version that the server prefers.
    pub version: String,
    /// Its name in CamelCase.
    pub kind: String,
    /// Its name in paths.
    pub plural: String,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// Whether it has a status subresource.
    pub status: bool,
}

impl Kind {
    /// `group/version`, or a bare version for the core group.
    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// `plural.group`, as RBAC and CustomResourceDefinitions are named.
    pub(crate) fn resource(&self) -> String {
        match self.group.as_str() {
            "" => self.plural.clone(),
            group => format!("{}.{group}", self.plural),
        }
    }

    /// The path of all objects in a namespace, or in the cluster.
    pub(crate) fn collection(&self, namespace: Option<&str>) -> String {
        self.collection_at(&self.version, namespace)
    }

    /// The same in another version.
    pub(crate) fn collection_at(&self, version: &str, namespace: Option<&str>) -> String {
        let base = match self.group.as_str() {
            "" => format!("/api/{version}"),
            group => format!("/apis/{group}/{version}"),
        };
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("{base}/namespaces/{}/{}", encoded(namespace), self.plural),
            None => format!("{base}/{}", self.plural),
        }
    }

    /// An error, unless a namespace is given exactly if the kind has one.
    pub(crate) fn check_namespace(&self, namespace: Option<&str>, name: &str) -> Result<(), Error> {
        let why = match (self.namespaced, namespace) {
            (true, None) => "it needs a namespace",
            (false, Some(_)) => "its kind belongs to the whole cluster: leave the namespace out",
            _ => return Ok(()),
        };
        Err(Error::Invalid { what: format!("{} {name}", self.resource()), why: why.into() })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    #[serde(default)]
    versions: Vec<Version>,
    preferred_version: Option<Version>,
}

#[derive(Deserialize)]
struct Version {
    version: String,
}

#[derive(Deserialize)]
struct Resources {
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    name: String,
    kind: String,
    namespaced: bool,
}

/// Asks the server for a kind: the preferred version of its group first, then the others.
pub(crate) async fn discover(cluster: &Cluster, group: &str, kind: &str) -> Result<Kind, Error> {
    for version in versions(cluster, group, kind).await? {
        let base = match group {
            "" => format!("/api/{version}"),
            group => format!("/apis/{}/{version}", encoded(group)),
        };
        let found: Resources = match cluster.read_json(&discovery(base, group, kind)).await {
            Ok(found) => found,
            // A version that is announced may still be on its way.
            Err(Error::NoKind { .. } | Error::NotFound { .. }) => continue,
            Err(error) => return Err(error),
        };
        if let Some(kind) = pick(found, group, &version, kind) {
            return Ok(kind);
        }
    }
    Err(Error::NoKind { group: group.into(), kind: kind.into() })
}

async fn versions(cluster: &Cluster, group: &str, kind: &str) -> Result<Vec<String>, Error> {
    if group.is_empty() {
        return Ok(vec!["v1".into()]);
    }
    let call = discovery(format!("/apis/{}", encoded(group)), group, kind);
    let found: Group = cluster.read_json(&call).await?;
    let mut versions: Vec<_> = found.preferred_version.into_iter().map(|v| v.version).collect();
    for Version { version } in found.versions {
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    Ok(versions)
}

fn discovery(path: String, group: &str, kind: &str) -> Call {
    let (resource, group, kind) = (path.clone(), group.to_owned(), kind.to_owned());
    Call::read(path, About { verb: "get", resource, group, kind, ..About::default() })
}

fn pick(found: Resources, group: &str, version: &str, kind: &str) -> Option<Kind> {
    let is_it = |r: &&Resource| r.kind == kind && !r.name.contains('/');
    let resource = found.resources.iter().find(is_it)?;
    let status = format!("{}/status", resource.name);
    Some(Kind {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        plural: resource.name.clone(),
        namespaced: resource.namespaced,
        status: found.resources.iter().any(|r| r.name == status),
    })
}
