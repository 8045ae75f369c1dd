//! On a full disk nothing new is kept, and yet whoever is cut off is out at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_client::api::{Role, TokenCreate};
use bowline_hub::{Hub, HubOptions};
use bowline_resources::Mode;
use bowline_store::{Error, Loaded, Memory, Store};
use bowline_types::Batch;

use crate::agent::{Agent, dialer, join};
use crate::stage::{Stage, client, code, eventually};

/// A store that outlives its hub, and has no room while it is told so.
#[derive(Clone, Default)]
struct Small {
    memory: Arc<Mutex<Memory>>,
    full: Arc<AtomicBool>,
}

impl Store for Small {
    fn commit(&mut self, batches: &[Batch]) -> Result<(), Error> {
        if self.full.load(Ordering::SeqCst) {
            return Err(Error::Full { path: "memory".into() });
        }
        self.memory.lock().unwrap().commit(batches)
    }

    fn load(&mut self, visit: &mut dyn FnMut(Loaded)) -> Result<(), Error> {
        self.memory.lock().unwrap().load(visit)
    }
}

/// A hub on such a store, which is full from now on and knows it.
async fn fill(stage: &Stage, store: &Small) {
    store.full.store(true, Ordering::SeqCst);
    assert_eq!(code(stage.admin.kv_put("a", "1".into(), None).await), "BL-0210");
}

async fn stage(store: &Small) -> Stage {
    let dir = tempfile::tempdir().unwrap();
    let hub = Hub::start_on(HubOptions::new(dir.path()), store.clone()).await.unwrap();
    let token = hub.first_token.clone().expect("a first start");
    let admin = client(&hub, &token);
    Stage { hub, admin, token, dir }
}

/// The same on the same port, after its end.
async fn again(stage: Stage, store: &Small) -> Stage {
    let Stage { hub, token, dir, .. } = stage;
    let agents = hub.addresses.agents;
    hub.drain().await;
    let mut options = HubOptions::new(dir.path());
    options.agents = agents;
    let hub = Hub::start_on(options, store.clone()).await.unwrap();
    let admin = client(&hub, &token);
    Stage { hub, admin, token, dir }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_agent_is_cut_at_once_and_kept_out_though_the_disk_is_full() {
    let store = Small::default();
    let stage = stage(&store).await;
    let port = stage.hub.addresses.agents.port();
    let home = tempfile::tempdir().unwrap();
    join(home.path(), &stage.join_token("alpha", Mode::Managed).await).await.unwrap();
    let agent = Agent::start(home.path(), port);
    let link = agent.connect().await.unwrap();
    fill(&stage, &store).await;

    let told = stage.admin.revoke_agent("alpha", "stolen").await;
    let text = format!("{told:?}");
    assert_eq!(code(told), "BL-0210");
    assert!(text.contains("in effect, but not on disk"), "{text}");
    tokio::time::timeout(Duration::from_secs(30), link).await.expect("cut").unwrap();
    assert!(dialer(home.path(), port).dial().await.is_err(), "it stays out");
    assert!(stage.admin.agent("alpha").await.unwrap().revoked.is_some(), "and that is shown");

    store.full.store(false, Ordering::SeqCst);
    eventually("the deed is in the audit", async || {
        let audit = stage.admin.audit(&Default::default()).await.unwrap();
        audit.items.iter().any(|e| e.verb == "agent.revoke").then_some(())
    })
    .await;
    let stage = again(stage, &store).await;
    assert!(dialer(home.path(), port).dial().await.is_err(), "after a restart too");
    let token = stage.join_token("alpha", Mode::Managed).await;
    let other = tempfile::tempdir().unwrap();
    join(other.path(), &token).await.unwrap();
    dialer(other.path(), port).dial().await.expect("by a new token it comes back");
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_taken_back_at_once_though_the_disk_is_full() {
    let store = Small::default();
    let stage = stage(&store).await;
    let new = |name: &str| TokenCreate {
        name: name.into(),
        role: Role::Admin,
        agents: vec![],
        namespaces: vec![],
        ttl_seconds: None,
    };
    let made = stage.admin.create_token(&new("ci")).await.unwrap();
    let ci = client(&stage.hub, &made.token);
    let joining = stage.join_token("beta", Mode::Managed).await;
    let join_id = stage.admin.join_tokens().await.unwrap().items[0].id.clone();
    fill(&stage, &store).await;

    assert_eq!(code(stage.admin.revoke_token(&made.view.id).await), "BL-0210");
    assert_eq!(code(ci.agents(None, &Default::default()).await), "BL-0102", "it counts no more");
    assert_eq!(code(ci.revoke_token("admin").await), "BL-0102");
    // The other one is as good as gone: this is the last for everything.
    assert_eq!(code(stage.admin.revoke_token("admin").await), "BL-0140");
    assert_eq!(code(stage.admin.revoke_join_token(&join_id).await), "BL-0210");
    let home = tempfile::tempdir().unwrap();
    assert!(join(home.path(), &joining).await.is_err());

    store.full.store(false, Ordering::SeqCst);
    eventually("both are in the audit", async || {
        let audit = stage.admin.audit(&Default::default()).await.unwrap();
        let has = |verb: &str| audit.items.iter().any(|e| e.verb == verb);
        (has("token.revoke") && has("join-token.revoke")).then_some(())
    })
    .await;
    let stage = again(stage, &store).await;
    let ci = client(&stage.hub, &made.token);
    assert_eq!(code(ci.agents(None, &Default::default()).await), "BL-0102", "after a restart too");
    assert!(stage.admin.join_tokens().await.unwrap().items.is_empty());
}
