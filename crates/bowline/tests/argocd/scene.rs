//! A hub on the control plane and one agent, each on its own namespaces of the shared clusters. They have
//! no other rights than those of `deploy/rbac` that go with their settings.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use bowline_testbed::{Account, Rights};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::stage::{Agent, Stage};

/// Whether `BOWLINE_LONG` asks for the long form of the tests that have one.
fn is_long() -> bool {
    std::env::var_os("BOWLINE_LONG").is_some()
}

/// How long anything may take on a loaded machine. In the long form Go agents compare hundreds of
/// Applications one by one.
pub(crate) fn patience() -> Duration {
    Duration::from_secs(if is_long() { 300 } else { 60 })
}

/// How many Applications it takes to see that none is lost.
pub(crate) fn many() -> usize {
    if is_long() { 500 } else { 40 }
}

/// What a test is played on.
pub(crate) struct Scene<A = Agent> {
    pub(crate) stage: Stage,
    pub(crate) plane: Cluster,
    pub(crate) site: Cluster,
    /// The agent's name, which is its namespace on the control plane.
    pub(crate) name: String,
    /// The namespace of Argo CD on the control plane.
    pub(crate) argocd: String,
    /// The agent's own namespace on its cluster.
    pub(crate) home: String,
    pub(crate) agent: A,
    accounts: RefCell<Vec<Account>>,
    files: tempfile::TempDir,
    litter: Litter,
}

impl Scene {
    pub(crate) fn managed() -> Self {
        Self::usual("managed", &[])
    }

    pub(crate) fn autonomous() -> Self {
        Self::usual("autonomous", &[])
    }

    /// A managed agent whose Applications name it as their destination.
    pub(crate) fn by_destination() -> Self {
        Self::usual("managed", &["--mapping", "destination"])
    }

    fn usual(mode: &str, flags: &[&str]) -> Self {
        Self::with(mode, flags, &json!({}), &json!({}))
    }

    /// An agent of this mode, and a hub, with these settings beside the usual.
    pub(crate) fn with_settings(mode: &str, hub: &Value, agent: &Value) -> Self {
        Self::with(mode, &[], hub, agent)
    }

    fn with(mode: &str, flags: &[&str], hub: &Value, agent: &Value) -> Self {
        let name = bowline_testbed::namespace(mode);
        let bare = Scene::without_agent(&name, mode, flags, hub);
        let joined = bare.join(&name, mode, agent);
        bare.and(joined)
    }
}

impl Scene<()> {
    /// A hub without agents; `mode` says on which cluster one is going to live.
    pub(crate) fn without_agent(name: &str, mode: &str, flags: &[&str], settings: &Value) -> Self {
        let clusters = bowline_testbed::clusters(3);
        let at = |n: usize| Cluster::new(&clusters.kubeconfigs[n]);
        let (plane, site) = (at(0), at(if mode == "managed" { 1 } else { 2 }));
        let (argocd, home) = (format!("{name}-cp"), format!("{name}-wl"));
        plane.namespace(&argocd);
        plane.namespace(name);
        site.namespace(&home);
        let files = tempfile::tempdir().unwrap();
        let account =
            Account::new(&Rights::of_hub(flags, settings), &plane.kubeconfig, name, &argocd);
        let settings = written(&files, "hub", settings);
        let mut more = vec!["--config", &settings, "--kubeconfig", account.flag(), "-n", &argocd];
        more.extend(flags);
        let stage = Stage::with_hub("auto", &more);
        let litter = [(&plane, &argocd), (&plane, &name.to_owned()), (&site, &home)];
        let litter = litter.map(|(cluster, namespace)| (cluster.clone(), namespace.clone()));
        let (name, litter) = (name.to_owned(), Litter(litter.to_vec()));
        let accounts = RefCell::new(vec![account]);
        Self { stage, plane, site, name, argocd, home, agent: (), accounts, files, litter }
    }

    fn and<A>(self, agent: A) -> Scene<A> {
        let Self { stage, plane, site, name, argocd, home, agent: (), accounts, files, litter } =
            self;
        Scene { stage, plane, site, name, argocd, home, agent, accounts, files, litter }
    }
}

/// Settings as a file: JSON is YAML too.
fn written(files: &tempfile::TempDir, name: &str, settings: &Value) -> String {
    let file = files.path().join(format!("{name}.yaml"));
    std::fs::write(&file, settings.to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

impl<A> Scene<A> {
    /// A native agent on the site, in the agent's own namespace there.
    pub(crate) fn join(&self, name: &str, mode: &str, settings: &Value) -> Agent {
        self.join_at(name, mode, &self.site, &self.home, settings)
    }

    /// A native agent on a cluster, whose own namespace is `home`.
    pub(crate) fn join_at(
        &self,
        name: &str,
        mode: &str,
        site: &Cluster,
        home: &str,
        settings: &Value,
    ) -> Agent {
        let account = Account::new(&Rights::of_agent(settings), &site.kubeconfig, name, home);
        self.join_as(account, name, mode, home, settings)
    }

    /// A native agent that reaches its cluster by an account.
    pub(crate) fn join_as(
        &self,
        account: Account,
        name: &str,
        mode: &str,
        home: &str,
        settings: &Value,
    ) -> Agent {
        let settings = written(&self.files, name, settings);
        let flags = ["--config", &settings, "--kubeconfig", account.flag(), "-n", home];
        let agent = self.stage.join_with(name, mode, &flags);
        self.accounts.borrow_mut().push(account);
        agent
    }

    /// Other settings of the hub, from its next start on.
    pub(crate) fn set_hub(&self, settings: &Value) {
        written(&self.files, "hub", settings);
    }

    /// A namespace of a cluster that goes when the test is over, made if it is not there.
    pub(crate) fn lend(&mut self, cluster: &Cluster, namespace: &str) {
        cluster.namespace(namespace);
        self.clean(cluster, namespace);
    }

    /// A namespace of a cluster that somebody makes in the course of the test.
    pub(crate) fn clean(&mut self, cluster: &Cluster, namespace: &str) {
        self.litter.0.push((cluster.clone(), namespace.to_owned()));
    }

    /// What the hub's log says.
    pub(crate) fn hub_says(&self, words: &str) {
        self.until(&format!("the hub says {words:?}"), || {
            let log = std::fs::read_to_string(self.stage.path("hub.log")).unwrap_or_default();
            log.contains(words)
        });
    }

    /// The place of one of the agent's Applications on the control plane.
    pub(crate) fn there(&self, app: &str) -> String {
        format!("application/{}/{app}", self.name)
    }

    /// The place of one of the agent's Applications on its own cluster.
    pub(crate) fn here(&self, app: &str) -> String {
        format!("application/{}/{app}", self.home)
    }

    /// Has the hub, from its next start on, work on the third cluster, with the namespaces of the
    /// control plane and nothing in them.
    pub(crate) fn another_plane(&mut self) -> Cluster {
        let other = Cluster::new(&bowline_testbed::clusters(3).kubeconfigs[2]);
        for namespace in [&self.argocd, &self.name] {
            other.namespace(namespace);
            self.litter.0.push((other.clone(), namespace.clone()));
        }
        let rights = Rights::of_hub(&[], &json!({}));
        let account = Account::new(&rights, &other.kubeconfig, &self.name, &self.argocd);
        let accounts = self.accounts.get_mut();
        self.stage.swap_flag(accounts[0].flag(), account.flag());
        accounts.push(account);
        other
    }

    /// Waits until the object at a place of the control plane is so.
    pub(crate) fn plane_shows(
        &self,
        place: &str,
        what: &str,
        is: impl Fn(&Value) -> bool,
    ) -> Value {
        self.wait(&self.plane, place, what, is)
    }

    /// Waits until the object at a place of the agent's cluster is so.
    pub(crate) fn site_shows(&self, place: &str, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        self.wait(&self.site, place, what, is)
    }

    /// Waits until the object at a place of a cluster is so.
    pub(crate) fn wait(
        &self,
        on: &Cluster,
        place: &str,
        what: &str,
        is: impl Fn(&Value) -> bool,
    ) -> Value {
        let mut last = Value::Null;
        self.until(&format!("{place}: {what}"), || {
            last = on.get(place).unwrap_or(Value::Null);
            is(&last)
        });
        last
    }

    /// Waits until something holds; else shows all that may explain why it does not.
    pub(crate) fn until(&self, what: &str, mut is: impl FnMut() -> bool) {
        let start = Instant::now();
        while !is() {
            let known = || format!("{}{}", self.known(), self.stage.logs());
            assert!(start.elapsed() < patience(), "not in time: {what}\n{}", known());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// What the hub knows of its agents' objects, and what there is on both sides.
    fn known(&self) -> String {
        let told = self.stage.run(&["get", "objects", "-o", "json"]);
        let apps = |cluster: &Cluster, namespace: &str| {
            cluster.ok(&["get", "applications", "-n", namespace, "-o", "json"])
        };
        format!(
            "--- the hub knows\n{}\n--- control plane\n{}\n--- agent's cluster\n{}\n",
            String::from_utf8_lossy(&told.stdout),
            apps(&self.plane, &self.name),
            apps(&self.site, &self.home),
        )
    }

    /// Runs the command line against the hub.
    pub(crate) fn bowline(&self, args: &[&str]) -> String {
        self.stage.ok(args)
    }
}

/// Namespaces that are left to the clusters, which live on: nobody waits for their end.
pub(crate) struct Litter(pub(crate) Vec<(Cluster, String)>);

impl Drop for Litter {
    fn drop(&mut self) {
        for (cluster, namespace) in &self.0 {
            cluster.run(&["delete", "namespace", namespace, "--wait=false"], None).ok();
        }
    }
}
