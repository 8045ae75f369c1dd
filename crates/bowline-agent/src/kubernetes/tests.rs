//! What an agent makes of what its cluster tells, without a cluster: nobody is at the address.

use bowline_resources::{Operation, OperationState, Phase, Sync};
use serde_json::{Value, json};

use super::*;
use crate::world::World;

struct Stage {
    kube: Arc<Kubernetes>,
    errands: mpsc::UnboundedReceiver<Errand>,
    _folder: tempfile::TempDir,
}

async fn stage(recreation: Recreation) -> Stage {
    stage_with(|options| KubernetesOptions { recreation, ..options }).await
}

async fn stage_with(set: impl FnOnce(KubernetesOptions) -> KubernetesOptions) -> Stage {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    let file = json!({
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {}}],
    });
    std::fs::write(&path, file.to_string()).unwrap();
    let access = bowline_kube::Access::Kubeconfig { path: Some(path), context: None };
    let options = bowline_kube::Options { access, ..bowline_kube::Options::default() };
    let cluster = Cluster::connect(options.clone()).await.unwrap();
    let options = set(KubernetesOptions::new(options));
    let agent = bowline_types::NodeId::new("a1").unwrap();
    let site = Site { agent, namespace: options.namespace.clone() };
    let sink = Sink(Arc::new(World::default()));
    let (kube, errands) = Kubernetes::new(cluster, site, options, sink);
    Stage { kube: Arc::new(kube), errands, _folder: folder }
}

/// What the control plane wants, under this uid of its own.
fn desired(uid: &str) -> Desired {
    let app = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "web", "namespace": "a1", "finalizers": ["a.b/c"]},
        "spec": {"project": "default", "source": {"path": "deploy"}},
    });
    Desired::new(&Object::from_value(app).unwrap(), uid, Wall(1))
}

impl Stage {
    fn key(&self) -> ObjectKey {
        desired("s1").object.key()
    }

    /// The copy is on the cluster, under this uid of the cluster's, as it is wanted.
    fn copied(&self, uid: &str, desired: &Desired) -> Object {
        let mut copy = self.kube.site.manifest(desired);
        copy.metadata.uid = Some(uid.into());
        copy.metadata.rest.insert("resourceVersion".into(), Value::from("7"));
        let operation = json!({"sync": {"revision": "old"}});
        copy.status = Some(json!({"operationState": {"operation": operation}}));
        self.kube.note(&self.key(), copy.clone());
        let applied = Applied { desired: Arc::new(desired.clone()), rev: 1, from: Owner::Hub };
        self.kube.known.lock().applied.insert(self.key(), applied);
        copy
    }
}

#[tokio::test]
async fn what_is_as_it_is_wanted_is_not_tried_again() {
    let stage = stage(Recreation::Ignore).await;
    let (key, wanted) = (stage.key(), desired("s1"));
    // The write was done and its answer lost: the watch has told how it is since.
    stage.kube.note_trouble(&key, true);
    stage.copied("u1", &wanted);
    let later = Wall(wall().0 + 60_000);
    let look = stage.kube.see(&wanted, 1, None, later);
    assert_eq!(look.observed.sync, Sync::Synced);
    assert_eq!(look.again, None, "a time that is past would be due at once, for ever");
    assert_eq!(stage.kube.retry(&key), None);
}

#[tokio::test]
async fn what_is_gone_is_not_deleted_again() {
    let stage = stage(Recreation::Ignore).await;
    let key = stage.key();
    let wanted = Desired { deleting: true, ..desired("s1") };
    stage.kube.note_trouble(&key, true);
    let look = stage.kube.see(&wanted, 1, None, Wall(wall().0 + 60_000));
    assert!(look.observed.gone);
    assert_eq!(look.again, None);
}

#[tokio::test]
async fn what_may_not_be_listed_is_not_taken_for_gone() {
    let stage = stage(Recreation::Ignore).await;
    let key = stage.key();
    let place = (key.group.clone(), key.kind.clone());
    stage.kube.known.lock().untold.insert(place.clone(), "may not list".into());
    let going = Desired { deleting: true, ..desired("s1") };
    let look = stage.kube.see(&going, 1, None, wall());
    assert!(!look.observed.gone);
    assert_eq!(look.observed.complaint(), Some("may not list"));
    assert!(look.again.is_some(), "nobody tells of what is not there");
    stage.kube.known.lock().untold.remove(&place);
    assert!(stage.kube.see(&going, 1, None, wall()).observed.gone);
}

#[tokio::test]
async fn what_could_not_be_deleted_is_not_written_over() {
    let stage = stage(Recreation::Ignore).await;
    stage.copied("u1", &desired("s1"));
    let (key, desired) = (stage.key(), Arc::new(desired("s2")));
    let put = Task::Put { key: key.clone(), desired, rev: 2, from: Owner::Hub };
    let done = stage.kube.run(&[Task::Delete { key, ordered: None }, put]).await;
    assert!(done[0].is_err(), "nobody is at the address");
    assert_eq!(done[1], Err("waits: the former object could not be deleted yet".into()));
}

#[tokio::test]
async fn what_fails_is_tried_again_but_never_at_once() {
    let stage = stage(Recreation::Ignore).await;
    stage.kube.note_trouble(&stage.key(), true);
    let now = Wall(wall().0 + 60_000);
    let again = stage.kube.see(&desired("s1"), 1, None, now).again.unwrap();
    assert!(again > now, "the pass took longer than the wait");
}

#[tokio::test]
async fn an_object_of_somebody_else_does_not_keep_what_is_deleted_from_being_gone() {
    let stage = stage(Recreation::Ignore).await;
    let wanted = desired("s1");
    let mut theirs = stage.copied("u1", &wanted);
    theirs.metadata.annotations.clear();
    theirs.metadata.rest.insert("resourceVersion".into(), Value::from("8"));
    stage.kube.note(&stage.key(), theirs);
    assert!(!stage.kube.see(&wanted, 1, None, wall()).observed.gone);
    // It was never taken over, so there is nothing that the control plane has to wait for.
    let going = Desired { deleting: true, ..wanted };
    assert!(going.is_gone_by(&stage.kube.see(&going, 1, None, wall()).observed));
}

#[tokio::test]
async fn the_clusters_own_object_is_not_gone_while_it_is_finalized() {
    let stage = stage(Recreation::Ignore).await;
    let mut own = stage.copied("u1", &desired("s1"));
    own.metadata.annotations.clear();
    own.metadata.rest.insert("resourceVersion".into(), Value::from("8"));
    stage.kube.note(&stage.key(), own);
    let going = Desired { deleting: true, ..desired("u1") };
    assert!(!stage.kube.see(&going, 1, None, wall()).observed.gone);
}

#[tokio::test]
async fn what_the_control_plane_deleted_begins_anew_without_its_last_operation() {
    let stage = stage(Recreation::Resync).await;
    let copy = stage.copied("u1", &desired("s1"));
    // The watch tells its end before the answer comes, or a finalizer held it until now.
    let _unreachable = stage.kube.run(&[Task::Delete { key: stage.key(), ordered: None }]).await;
    stage.kube.vanish(&copy.key(), "u1");
    assert!(stage.kube.known.lock().lost.is_empty(), "nobody else deleted it");
}

#[tokio::test]
async fn of_what_is_gone_nothing_is_kept_but_what_may_be_asked_for_again() {
    let stage = stage(Recreation::Ignore).await;
    let copy = stage.copied("u1", &desired("s1"));
    stage.kube.vanish(&copy.key(), "u1");
    assert!(
        stage.kube.known.lock().applied.is_empty(),
        "one for each preview application, for ever"
    );
    let copy = stage.copied("u2", &desired("s1"));
    let _unreachable = stage.kube.run(&[Task::Delete { key: stage.key(), ordered: None }]).await;
    stage.kube.known.lock().mark_going(&stage.key(), &copy);
    stage.copied("u3", &desired("s2"));
    stage.kube.vanish(&copy.key(), "u2");
    assert_eq!(stage.kube.known.lock().applied.len(), 1, "its successor's");
}

#[tokio::test]
async fn the_last_operation_of_another_object_of_the_name_is_not_asked_for_again() {
    let stage = stage(Recreation::Resync).await;
    let copy = stage.copied("u1", &desired("s1"));
    stage.kube.vanish(&copy.key(), "u1");
    assert!(stage.kube.recreated(&stage.key(), "s2").is_none(), "made anew on the control plane");
    let copy = stage.copied("u2", &desired("s1"));
    stage.kube.vanish(&copy.key(), "u2");
    assert!(stage.kube.recreated(&stage.key(), "s1").is_some());
}

/// A sync that was taken on.
fn begun(key: ObjectKey) -> OperationState {
    let request = OperationRequest {
        id: "o1".into(),
        key,
        uid: None,
        operation: Operation::Sync,
        by: "control plane".into(),
        argument: Value::Null,
    };
    OperationState::begin(&request, Wall(1))
}

#[tokio::test]
async fn an_operation_that_the_cluster_will_not_take_has_failed_and_says_why() {
    let mut stage = stage(Recreation::Ignore).await;
    let wanted = desired("s1");
    stage.copied("u1", &wanted);
    let mut before = Observed::new(bowline_resources::Of { uid: "s1".into(), rev: 1 }, Wall(1));
    before.operation = Some(begun(stage.key()));
    let looked = |stage: &Stage| stage.kube.see(&wanted, 1, Some(&before), wall()).observed;
    assert!(looked(&stage).operation.unwrap().is_running());
    assert!(stage.errands.try_recv().is_ok());
    let slot = (stage.key(), "o1".to_owned());
    stage.kube.known.lock().refused.insert(slot, "spec.source: Required value".into());
    let operation = looked(&stage).operation.unwrap();
    assert_eq!(operation.phase, Phase::Failed);
    assert_eq!(operation.message, "spec.source: Required value");
    assert!(stage.errands.try_recv().is_err(), "it is not asked for again");
}

#[tokio::test]
async fn an_operation_is_sent_once_however_often_its_object_is_looked_at() {
    let mut stage = stage(Recreation::Ignore).await;
    let copy = stage.copied("u1", &desired("s1"));
    let state = begun(stage.key());
    for _ in 0..5 {
        stage.kube.pursue(&stage.key(), &state, &copy);
    }
    assert!(stage.errands.try_recv().is_ok());
    assert!(stage.errands.try_recv().is_err(), "each that fails would be asked for again");
}

/// The control plane of this uid wants it, under this uid of its own.
fn wanted_by(plane: Option<&str>, uid: &str) -> Desired {
    let mut wanted = desired(uid);
    let mark = plane.map(|plane| (argocd::PRINCIPAL_UID.to_owned(), plane.to_owned()));
    wanted.object.metadata.annotations.extend(mark);
    wanted
}

#[tokio::test]
async fn what_another_control_plane_wants_is_written_over_the_copy() {
    let stage = stage(Recreation::Ignore).await;
    let over = |copy: (Option<&str>, &str), wanted: (Option<&str>, &str)| {
        let copy = stage.copied("u1", &wanted_by(copy.0, copy.1));
        stage.kube.is_written_over(&copy, Some(&wanted_by(wanted.0, wanted.1)))
    };
    assert!(over((Some("p1"), "s1"), (Some("p2"), "s2")), "the plane was built anew");
    assert!(over((None, "s1"), (Some("p1"), "s2")), "nobody knows where the copy is from");
    assert!(!over((Some("p1"), "s1"), (Some("p1"), "s2")), "its source was made anew");
    assert!(!over((Some("p1"), "s1"), (None, "s2")), "the plane has no name");
    assert!(!over((None, "s1"), (None, "s2")));
    assert!(!over((Some("p1"), "s1"), (Some("p2"), "s1")), "it is the same object");
}

#[tokio::test]
async fn what_is_wanted_says_first_what_becomes_of_a_copy_of_another_source() {
    let stage = stage(Recreation::Ignore).await;
    let with = |uid: &str, policy: &str| {
        let mut desired = desired(uid);
        let policy = Some(policy).filter(|policy| !policy.is_empty());
        let mark = policy.map(|policy| (argocd::MISMATCH_POLICY.to_owned(), policy.to_owned()));
        desired.object.metadata.annotations.extend(mark);
        desired
    };
    let over = |copy: &str, wanted: &str| {
        let copy = stage.copied("u1", &with("s1", copy));
        stage.kube.is_written_over(&copy, Some(&with("s2", wanted)))
    };
    assert!(over("", "upsert") && over("recreate", "upsert"));
    assert!(!over("upsert", "recreate"));
    assert!(over("upsert", "") && over("upsert", "whatever"));
    assert!(!over("", "") && !over("recreate", "") && !over("", "whatever"));
}

impl Stage {
    /// What becomes of a sync of `wanted` that is meant for the object of this uid.
    fn synced(&self, wanted: &Desired, uid: Option<&str>) -> Result<Look, String> {
        let request = OperationRequest {
            id: "o2".into(),
            key: self.key(),
            uid: uid.map(str::to_owned),
            operation: Operation::Sync,
            by: "control plane".into(),
            argument: Value::Null,
        };
        self.kube.take_on(wanted, 1, None, &request, wall())
    }
}

#[tokio::test]
async fn a_sync_is_for_the_object_that_it_is_meant_for_and_no_other() {
    let stage = stage(Recreation::Ignore).await;
    let wanted = desired("s1");
    stage.copied("u1", &wanted);
    assert!(stage.synced(&wanted, Some("s1")).is_ok() && stage.synced(&wanted, None).is_ok());
    let why = stage.synced(&wanted, Some("s2")).unwrap_err();
    assert_eq!(why, "the object was deleted and made anew since");
    // What is there is still the copy of the one before.
    let why = stage.synced(&desired("s2"), Some("s2")).unwrap_err();
    assert!(why.starts_with(bowline_resources::NOT_YET), "{why}");
    assert!(stage.synced(&desired("u1"), None).is_ok(), "the cluster's own object");
}

#[tokio::test]
async fn a_sync_waits_for_the_end_of_the_copy_of_a_former_source() {
    let stage = stage(Recreation::Ignore).await;
    let copy = stage.copied("u1", &desired("s1"));
    stage.kube.known.lock().mark_going(&stage.key(), &copy);
    let waits = |wanted: &Desired| {
        let why = stage.synced(wanted, Some(&wanted.uid)).unwrap_err();
        why.starts_with(bowline_resources::NOT_YET)
    };
    assert!(
        waits(&desired("s2")),
        "an answer would end the wish, and the new object is synced by nobody"
    );
    assert!(waits(&desired("s1")), "somebody here deleted it: it is made again");
    let going = Desired { deleting: true, ..desired("s1") };
    assert!(!waits(&going), "nobody makes it again");
    assert!(!waits(&desired("u1")), "nor the cluster's own object");
}

#[tokio::test]
async fn somebody_elses_application_is_not_synced() {
    let stage = stage(Recreation::Ignore).await;
    let mut wanted = desired("s1");
    let mut theirs = stage.copied("u1", &wanted);
    theirs.metadata.annotations.clear();
    theirs.metadata.rest.insert("resourceVersion".into(), Value::from("8"));
    stage.kube.note(&stage.key(), theirs);
    let why = stage.synced(&wanted, None).unwrap_err();
    assert!(why.starts_with(bowline_resources::NOT_YET), "about to be taken over: {why}");
    wanted.object.metadata.annotations.insert(argocd::ADOPTION_POLICY.into(), "never".into());
    let why = stage.synced(&wanted, None).unwrap_err();
    assert_eq!(why, "the object of this name on the cluster is somebody else's");
}

#[tokio::test]
async fn a_sync_is_refused_until_the_one_before_has_ended() {
    let stage = stage(Recreation::Ignore).await;
    let wanted = desired("s1");
    let mut copy = stage.copied("u1", &wanted);
    let phases = [("Running", false), ("Terminating", false), ("Failed", true)];
    for (version, (phase, may)) in (8..).zip(phases) {
        copy.status = Some(json!({"operationState": {"phase": phase}}));
        let version = Value::from(version.to_string());
        copy.metadata.rest.insert("resourceVersion".into(), version);
        stage.kube.note(&stage.key(), copy.clone());
        assert_eq!(stage.synced(&wanted, None).is_ok(), may, "{phase}");
    }
}

#[tokio::test]
async fn what_argo_cd_reads_beside_itself_only_is_followed_and_put_nowhere_else() {
    let further = |namespaces: &[&str]| {
        let namespaces = namespaces.iter().map(|n| (*n).to_owned()).collect();
        stage_with(|options| {
            let mut kinds = options.kinds.clone();
            kinds.push(Watched::all("apps", "Deployment"));
            KubernetesOptions { namespaces, kinds, ..options }
        })
    };
    let home = bowline_kube::Scope::Namespaces(vec!["argocd".into()]);
    for (namespaces, wide) in [
        (&["team-*"][..], bowline_kube::Scope::Cluster),
        (&["team"], bowline_kube::Scope::Namespaces(vec!["argocd".into(), "team".into()])),
    ] {
        let stage = further(namespaces).await;
        let scopes = stage.kube.watched().iter().map(|w| (w.kind.as_str(), stage.kube.scope(w)));
        let expected = [
            ("Application", &wide),
            ("AppProject", &home),
            ("Secret", &home),
            ("ConfigMap", &home),
            ("Deployment", &wide),
        ];
        assert_eq!(scopes.collect::<Vec<_>>(), expected.map(|(kind, s)| (kind, s.clone())));
    }
    let stage = further(&["team"]).await;
    let project = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "shop", "namespace": "team"}, "spec": {},
    });
    let project = Desired::new(&Object::from_value(project).unwrap(), "s1", Wall(1));
    let (key, desired) = (project.object.key(), Arc::new(project));
    let put = Task::Put { key, desired, rev: 1, from: Owner::Hub };
    let why = "Argo CD reads this kind (AppProject) in its own namespace only: put it into argocd";
    assert_eq!(stage.kube.run(&[put]).await, [Err(why.to_owned())]);
}
