//! What the tests play on.

use std::time::Duration;

use bowline_client::api::{AgentCreate, JoinTokenCreate};
use bowline_client::{Client, Config, Error};
use bowline_hub::{Hub, HubOptions};
use bowline_resources::{Mode, Object};
use serde_json::json;

/// A hub in a folder of its own.
pub(crate) struct Stage {
    pub(crate) hub: Hub,
    pub(crate) admin: Client,
    pub(crate) token: String,
    pub(crate) dir: tempfile::TempDir,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut HubOptions)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut options = HubOptions::new(dir.path());
        change(&mut options);
        let hub = Hub::start(options).await.unwrap();
        let token = hub.first_token.clone().expect("a first start");
        let admin = client(&hub, &token);
        Self { hub, admin, token, dir }
    }

    /// Ends the hub and starts it again on the same folder and the same agents' port.
    pub(crate) async fn restart(self) -> Self {
        let Self { hub, token, dir, .. } = self;
        let agents = hub.addresses.agents;
        hub.drain().await;
        let mut options = HubOptions::new(dir.path());
        options.agents = agents;
        let hub = Hub::start(options).await.unwrap();
        assert_eq!(hub.first_token, None, "only the first start gives a token");
        let admin = client(&hub, &token);
        Self { hub, admin, token, dir }
    }

    /// The same, with a client that trusts what the hub has now.
    pub(crate) async fn restart_anew(self) -> Self {
        let admin = client(&self.hub, &self.token);
        Self { admin, ..self }.restart().await
    }

    pub(crate) async fn create_agent(&self, name: &str, mode: Mode) {
        let new = AgentCreate {
            name: name.into(),
            mode,
            rules: vec![],
            labels: [("env".to_owned(), "test".to_owned())].into(),
            kv_prefixes: vec![],
        };
        self.admin.create_agent(&new).await.unwrap();
    }

    pub(crate) async fn join_token(&self, name: &str, mode: Mode) -> String {
        let new = JoinTokenCreate {
            agent: name.into(),
            mode,
            labels: Default::default(),
            ttl_seconds: 600,
        };
        self.admin.create_join_token(&new).await.unwrap().token
    }
}

pub(crate) fn client(hub: &Hub, token: &str) -> Client {
    let mut config = Config::new(format!("https://localhost:{}", hub.addresses.api.port()));
    config.ca = Some(hub.trust().into_bytes());
    config.token = Some(token.into());
    Client::new(config).unwrap()
}

pub(crate) fn config_map(name: &str, namespace: &str, value: &str) -> Object {
    Object::from_value(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        "data": {"k": value},
    }))
    .unwrap()
}

/// The code of a refusal.
pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::Refused(problem)) => problem.code,
        other => panic!("not refused: {other:?}"),
    }
}

/// Waits until something is so; the test fails if that takes too long.
pub(crate) async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut look: impl FnMut() -> F,
) -> T {
    let patience = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let found = tokio::time::timeout(Duration::from_secs(60), patience).await;
    found.unwrap_or_else(|_| panic!("never happened: {what}"))
}
