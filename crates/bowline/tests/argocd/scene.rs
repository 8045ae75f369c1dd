//! A hub on the control plane and one agent, each on its own namespaces of the shared clusters, and
//! with no other rights than `deploy/rbac` gives them.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cluster::Cluster;
use crate::rights::{Account, Role};
use crate::stage::{Agent, Stage};

/// How long anything may take on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

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
    accounts: Vec<Account>,
    litter: Litter,
}

impl Scene {
    pub(crate) fn managed() -> Self {
        Self::new("managed", 1, "namespace")
    }

    pub(crate) fn autonomous() -> Self {
        Self::new("autonomous", 2, "namespace")
    }

    /// A managed agent whose Applications name it as their destination.
    pub(crate) fn by_destination() -> Self {
        Self::new("managed", 1, "destination")
    }

    fn new(mode: &str, cluster: usize, mapping: &str) -> Self {
        let name = bowline_testbed::namespace(mode);
        let mut bare = Scene::set(&name, cluster, &["--mapping", mapping]);
        let account = Account::new(Role::Agent, &bare.site, &name, &bare.home);
        let flags = ["--kubeconfig", account.flag(), "-n", &bare.home];
        let agent = bare.stage.join_with(&name, mode, &flags);
        bare.accounts.push(account);
        bare.with(agent)
    }
}

impl Scene<()> {
    /// A hub without agents; `mode` says on which cluster one is going to live.
    pub(crate) fn without_agent(name: &str, mode: &str, flags: &[&str]) -> Self {
        Self::set(name, if mode == "managed" { 1 } else { 2 }, flags)
    }

    fn set(name: &str, cluster: usize, flags: &[&str]) -> Self {
        let clusters = bowline_testbed::clusters(3);
        let at = |n: usize| Cluster::new(&clusters.kubeconfigs[n]);
        let (plane, site) = (at(0), at(cluster));
        let (argocd, home) = (format!("{name}-cp"), format!("{name}-wl"));
        plane.namespace(&argocd);
        plane.namespace(name);
        site.namespace(&home);
        let account = Account::new(Role::Hub, &plane, name, &argocd);
        let mut more = vec!["--kubeconfig", account.flag(), "-n", &argocd];
        more.extend(flags);
        let stage = Stage::with_hub("auto", &more);
        let litter = [(&plane, &argocd), (&plane, &name.to_owned()), (&site, &home)];
        let litter = litter.map(|(cluster, namespace)| (cluster.clone(), namespace.clone()));
        let (name, litter) = (name.to_owned(), Litter(litter.to_vec()));
        let accounts = vec![account];
        Self { stage, plane, site, name, argocd, home, agent: (), accounts, litter }
    }

    fn with<A>(self, agent: A) -> Scene<A> {
        let Self { stage, plane, site, name, argocd, home, agent: (), accounts, litter } = self;
        Scene { stage, plane, site, name, argocd, home, agent, accounts, litter }
    }
}

impl<A> Scene<A> {
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
        let account = Account::new(Role::Hub, &other, &self.name, &self.argocd);
        self.stage.swap_flag(self.accounts[0].flag(), account.flag());
        self.accounts.push(account);
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

    fn wait(&self, on: &Cluster, place: &str, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        self.until(&format!("{place}: {what}"), || {
            last = on.get(place).unwrap_or(Value::Null);
            is(&last)
        });
        last
    }

    /// Waits until something holds; else shows what the processes said.
    pub(crate) fn until(&self, what: &str, mut is: impl FnMut() -> bool) {
        let start = Instant::now();
        while !is() {
            assert!(start.elapsed() < PATIENCE, "not in time: {what}\n{}", self.stage.logs());
            std::thread::sleep(Duration::from_millis(100));
        }
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
