//! Who is cut off stays cut off; tokens let in one agent, once.

use std::time::Duration;

use bowline_resources::Mode;
use bowline_wire::{Error, RefusalCode};

use crate::agent::{Agent, dialer, join};
use crate::stage::{Stage, code, eventually};

/// Why the hub said no; the code is in front.
fn refusal<T>(result: Result<T, Error>) -> (RefusalCode, String) {
    match result {
        Err(Error::Refused(refusal)) => (refusal.code, refusal.message[..7].to_owned()),
        Err(other) => panic!("{}", other.chain()),
        Ok(_) => panic!("let in"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_agent_is_cut_off_and_stays_out_until_it_joins_anew() {
    let stage = Stage::new().await;
    let port = stage.hub.addresses.agents.port();
    let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let token = stage.join_token("alpha", Mode::Managed).await;
    join(home.path(), &token).await.unwrap();
    let agent = Agent::start(home.path(), port);
    let link = agent.connect().await.unwrap();
    eventually("it is connected", async || {
        stage.admin.agent("alpha").await.unwrap().connected.then_some(())
    })
    .await;

    let view = stage.admin.revoke_agent("alpha", "stolen").await.unwrap();
    assert!(view.revoked.is_some());
    tokio::time::timeout(Duration::from_secs(30), link).await.expect("cut").unwrap();
    eventually("the hub shows why", async || {
        stage.admin.agent("alpha").await.unwrap().last_error.filter(|e| e == "BL-0302: revoked")
    })
    .await;

    assert!(dialer(home.path(), port).dial().await.is_err());
    // Neither does the old token let it in again, though the key is the same.
    join_again(&stage, home.path(), &token).await;
    let stage = stage.restart().await;
    let port = stage.hub.addresses.agents.port();
    assert!(dialer(home.path(), port).dial().await.is_err(), "after a restart too");

    let token = stage.join_token("alpha", Mode::Managed).await;
    join(other.path(), &token).await.unwrap();
    assert!(dialer(home.path(), port).dial().await.is_err(), "the old certificate is dead");
    dialer(other.path(), port).dial().await.unwrap();
    assert_eq!(stage.admin.agent("alpha").await.unwrap().revoked, None);
}

async fn join_again(_: &Stage, home: &std::path::Path, token: &str) {
    // A join makes another key, so the token is used by somebody else now.
    let (kind, code) = refusal(join(home, token).await);
    assert_eq!((kind, code.as_str()), (RefusalCode::AlreadyExists, "BL-0313"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_token_lets_in_one_agent_once() {
    let stage = Stage::new().await;
    let token = stage.join_token("alpha", Mode::Autonomous).await;
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    join(one.path(), &token).await.unwrap();
    assert_eq!(refusal(join(two.path(), &token).await).1, "BL-0313");
    let view = stage.admin.agent("alpha").await.unwrap();
    assert_eq!((view.mode, view.connected), (Mode::Autonomous, false));
    assert!(stage.admin.join_tokens().await.unwrap().items.is_empty(), "it is used");

    let taken_back = stage.join_token("beta", Mode::Managed).await;
    let id = stage.admin.join_tokens().await.unwrap().items[0].id.clone();
    stage.admin.revoke_join_token(&id).await.unwrap();
    let (kind, code) = refusal(join(two.path(), &taken_back).await);
    assert_eq!((kind, code.as_str()), (RefusalCode::Unauthenticated, "BL-0311"));
    assert_eq!(self::code(stage.admin.agent("beta").await), "BL-0121", "and left no trace");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_joins_at_once_with_one_token_let_one_in() {
    let stage = Stage::new().await;
    let token = stage.join_token("alpha", Mode::Managed).await;
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (a, b) = tokio::join!(join(one.path(), &token), join(two.path(), &token));
    assert_eq!(u8::from(a.is_ok()) + u8::from(b.is_ok()), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_join_token_is_refused_with_its_own_code() {
    let stage = Stage::new().await;
    let new = bowline_client::api::JoinTokenCreate {
        agent: "alpha".into(),
        mode: Mode::Managed,
        labels: Default::default(),
        ttl_seconds: 1,
    };
    let token = stage.admin.create_join_token(&new).await.unwrap();
    let ends = token.view.expires;
    eventually("its time is over", async || (crate::agent::now() > ends.0).then_some(())).await;
    let home = tempfile::tempdir().unwrap();
    assert_eq!(refusal(join(home.path(), &token.token).await).1, "BL-0312");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_agent_is_cut_and_its_name_given_again_does_not_let_it_in() {
    let stage = Stage::new().await;
    let port = stage.hub.addresses.agents.port();
    let home = tempfile::tempdir().unwrap();
    join(home.path(), &stage.join_token("alpha", Mode::Managed).await).await.unwrap();
    let agent = Agent::start(home.path(), port);
    let link = agent.connect().await.unwrap();
    stage.admin.remove_agent("alpha").await.unwrap();
    tokio::time::timeout(Duration::from_secs(30), link).await.expect("cut").unwrap();
    assert!(dialer(home.path(), port).dial().await.is_err());
    stage.create_agent("alpha", Mode::Managed).await;
    assert!(dialer(home.path(), port).dial().await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_without_a_certificate_may_only_join() {
    let stage = Stage::new().await;
    let home = tempfile::tempdir().unwrap();
    join(home.path(), &stage.join_token("alpha", Mode::Managed).await).await.unwrap();
    let hub = format!("localhost:{}", stage.hub.addresses.agents.port());
    let trust = bowline_identity::TrustBundle::from_pem(&stage.hub.trust()).unwrap();
    let tls = bowline_identity::ClientTls::new(None, &trust, bowline_identity::Versions::Tls13);
    let auth = bowline_wire::AuthRequest { method: "mtls".into(), ..Default::default() };
    let name = bowline_types::NodeId::new("alpha").unwrap();
    let mut options = bowline_wire::DialerOptions::new(name, hub, std::sync::Arc::new(auth));
    options.tls = Some(tls.unwrap().config());
    let (kind, code) = refusal(bowline_wire::Dialer::new(options).dial().await);
    assert_eq!((kind, code.as_str()), (RefusalCode::Unauthenticated, "BL-0301"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_token_from_before_a_removal_does_not_bring_the_agent_back() {
    let (stage, home) = (Stage::new().await, tempfile::tempdir().unwrap());
    let token = stage.join_token("alpha", Mode::Managed).await;
    stage.create_agent("alpha", Mode::Managed).await;
    stage.admin.remove_agent("alpha").await.unwrap();
    assert_eq!(refusal(join(home.path(), &token).await).1, "BL-0313");
    assert_eq!(code(stage.admin.agent("alpha").await), "BL-0121");
    let token = stage.join_token("alpha", Mode::Managed).await;
    join(home.path(), &token).await.expect("a later one does");
}
