//! What the tests play on: a cluster, a namespace in it, and a few objects.

use std::path::Path;
use std::time::Duration;

use bowline_kube::{Access, Cluster, Delete, Heard, Kind, Options, Scope, Watch};
use bowline_resources::Object;
use serde_json::{Value, json};

use crate::bed;

/// So long a test waits for what must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A namespace of our own, deleted (but not waited for) at the end.
pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    pub(crate) namespace: String,
    pub(crate) config_maps: Kind,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        let kubeconfig = bed::clusters(1).kubeconfigs[0].clone();
        Self::at(&kubeconfig).await
    }

    pub(crate) async fn at(kubeconfig: &Path) -> Self {
        let cluster = connect(kubeconfig, "bowline").await;
        let namespace = bed::namespace("kube");
        let kind = cluster.kind("", "Namespace").await.unwrap();
        let meta = json!({"name": namespace});
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": meta});
        cluster.create(&kind, &Object::from_value(object).unwrap()).await.unwrap();
        let config_maps = cluster.kind("", "ConfigMap").await.unwrap();
        Self { cluster, namespace, config_maps }
    }

    /// Who connects to the same cluster under another name.
    pub(crate) async fn other(&self, manager: &str) -> Cluster {
        connect(&bed::clusters(1).kubeconfigs[0], manager).await
    }

    pub(crate) fn scope(&self) -> Scope {
        Scope::Namespaces(vec![self.namespace.clone()])
    }

    /// A watch over our ConfigMaps that are marked as ours: each namespace has one of its own.
    pub(crate) async fn watch(&self) -> Watch {
        watch(&self.cluster, &self.config_maps, self.scope()).await
    }

    pub(crate) fn config_map(&self, name: &str, data: &Value) -> Object {
        let meta = json!({"name": name, "namespace": self.namespace, "labels": {"test": "kube"}});
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data});
        Object::from_value(object).unwrap()
    }

    pub(crate) async fn create(&self, name: &str, data: &Value) -> Object {
        self.cluster.create(&self.config_maps, &self.config_map(name, data)).await.unwrap()
    }

    pub(crate) async fn delete(&self, name: &str) -> bowline_kube::Deleted {
        let namespace = Some(self.namespace.as_str());
        self.cluster.delete(&self.config_maps, namespace, name, Delete::default()).await.unwrap()
    }

    pub(crate) async fn end(self) {
        let kind = self.cluster.kind("", "Namespace").await.unwrap();
        self.cluster.delete(&kind, None, &self.namespace, Delete::default()).await.unwrap();
    }
}

pub(crate) async fn connect(kubeconfig: &Path, manager: &str) -> Cluster {
    let access = Access::Kubeconfig { path: Some(kubeconfig.to_owned()), context: None };
    let options = Options { access, manager: manager.into(), ..Options::default() };
    Cluster::connect(options).await.unwrap()
}

/// A watch that has listed; what was there is dropped.
pub(crate) async fn watch(cluster: &Cluster, kind: &Kind, scope: Scope) -> Watch {
    let mut watch = cluster.watch(kind, scope, Some("test=kube"));
    let listed = async { while !matches!(heard(&mut watch).await, Heard::Listed) {} };
    tokio::time::timeout(PATIENCE, listed).await.expect("a list in time, however much trouble");
    watch
}

pub(crate) async fn heard(watch: &mut Watch) -> Heard {
    tokio::time::timeout(PATIENCE, watch.next()).await.expect("to hear something in time")
}

/// What is heard next, in short: `put NAME` or `gone NAME UID`.
pub(crate) async fn hear(watch: &mut Watch) -> String {
    match heard(watch).await {
        Heard::Put(object) => format!("put {}", object.metadata.name),
        Heard::Gone { key, uid } => format!("gone {} {uid}", key.name),
        Heard::Missed { key, uid } => format!("missed {} {uid}", key.name),
        Heard::Listed => "listed".into(),
        Heard::Trouble(error) => format!("trouble {error}"),
    }
}

pub(crate) fn uid(object: &Object) -> String {
    object.metadata.uid.clone().unwrap()
}
