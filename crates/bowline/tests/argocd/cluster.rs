//! A cluster, as somebody with `kubectl` sees it.

use std::path::{Path, PathBuf};

use bowline_testbed::kubectl;
use serde_json::{Value, json};

/// One of the test bed's clusters.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) kubeconfig: PathBuf,
}

impl Cluster {
    pub(crate) fn new(kubeconfig: &Path) -> Self {
        Self { kubeconfig: kubeconfig.to_owned() }
    }

    /// Runs `kubectl`; gives what it printed, or what it complained of.
    pub(crate) fn run(&self, args: &[&str], input: Option<&Value>) -> Result<String, String> {
        kubectl(&self.kubeconfig, args, input.map(Value::to_string).as_deref())
    }

    /// Runs what must work.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        self.run(args, None).unwrap_or_else(|e| panic!("kubectl {args:?}: {e}"))
    }

    /// Creates a namespace.
    pub(crate) fn namespace(&self, name: &str) {
        let made = self.run(&["create", "namespace", name], None);
        assert!(made.as_ref().err().is_none_or(|e| e.contains("AlreadyExists")), "{made:?}");
    }

    /// Creates an object.
    pub(crate) fn create(&self, object: &Value) {
        self.run(&["create", "-f", "-"], Some(object)).unwrap_or_else(|e| panic!("create: {e}"));
    }

    /// An object, if it is there. The place is `kind/namespace/name`.
    pub(crate) fn get(&self, place: &str) -> Option<Value> {
        let (kind, namespace, name) = parts(place);
        match self.run(&["get", kind, name, "-n", namespace, "-o", "json"], None) {
            Ok(text) => Some(serde_json::from_str(&text).unwrap()),
            Err(error) if error.contains("NotFound") => None,
            Err(error) => panic!("get {place}: {error}"),
        }
    }

    /// Creates many objects at once.
    pub(crate) fn create_all(&self, objects: &[Value]) {
        self.create(&json!({"apiVersion": "v1", "kind": "List", "items": objects}));
    }

    /// Replaces many objects at once.
    pub(crate) fn replace_all(&self, objects: &[Value]) {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        self.run(&["replace", "-f", "-"], Some(&list)).unwrap_or_else(|e| panic!("replace: {e}"));
    }

    /// All objects of a kind in a namespace.
    pub(crate) fn list(&self, kind: &str, namespace: &str) -> Vec<Value> {
        let text = self.ok(&["get", kind, "-n", namespace, "-o", "json"]);
        let list: Value = serde_json::from_str(&text).unwrap();
        list["items"].as_array().unwrap().clone()
    }

    /// Changes an object by a merge patch.
    pub(crate) fn patch(&self, place: &str, patch: &Value) {
        let (kind, namespace, name) = parts(place);
        let patch = patch.to_string();
        self.ok(&["patch", kind, name, "-n", namespace, "--type=merge", "-p", &patch]);
    }

    /// Deletes an object and does not wait.
    pub(crate) fn delete(&self, place: &str) {
        let (kind, namespace, name) = parts(place);
        self.ok(&["delete", kind, name, "-n", namespace, "--wait=false"]);
    }
}

fn parts(place: &str) -> (&str, &str, &str) {
    let mut parts = place.split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(kind), Some(namespace), Some(name)) => (kind, namespace, name),
        _ => panic!("{place} is not kind/namespace/name"),
    }
}

/// An Application.
pub(crate) fn app(namespace: &str, name: &str, spec: &Value) -> Value {
    let mut whole = json!({
        "project": "default",
        "source": {"repoURL": "https://example.com/repo.git", "path": "guestbook", "targetRevision": "HEAD"},
        "destination": {"name": namespace, "namespace": "guestbook"},
    });
    for (field, value) in spec.as_object().unwrap() {
        whole[field] = value.clone();
    }
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": namespace}, "spec": whole,
    })
}
