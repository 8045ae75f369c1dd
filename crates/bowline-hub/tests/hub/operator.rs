//! Audit, tokens, certificates, shelves, backups, health.

use bowline_client::Expect;
use bowline_client::api::{
    AuditEntry, AuditQuery, Level, ObjectQuery, Outcome, Role, ShelfState, TokenCreate,
};
use bowline_hub::{Hub, HubOptions};
use bowline_resources::{Mode, Observed, Of, RosterEntry, observed_shelf, roster_shelf};
use bowline_sync::FORBIDDEN;
use bowline_types::{Item, Key, NodeId, Verdict};
use bytes::Bytes;

use crate::agent::{connected, kv, now};
use crate::raw;
use crate::stage::{Stage, client, code, config_map, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn every_change_is_in_the_audit_with_its_outcome() {
    let stage = Stage::new().await;
    stage.create_agent("alpha", Mode::Managed).await;
    stage.admin.create_object("alpha", &config_map("a", "web", "1")).await.unwrap();
    let put = stage.admin.kv_put("k", Bytes::from("secret"), None).await.unwrap();
    let stale = stage.admin.kv_put("k", Bytes::from("2"), Some(put.rev + 9)).await;
    assert_eq!(code(stale), "BL-0131");
    let entries = stage.admin.audit(&AuditQuery::default()).await.unwrap().items;
    let told: Vec<_> = entries.iter().map(|e| (e.verb.as_str(), e.outcome)).collect();
    let expected = [
        ("kv.put", Outcome::Failed),
        ("kv.put", Outcome::Done),
        ("object.create", Outcome::Done),
        ("agent.create", Outcome::Done),
        ("token.create", Outcome::Done),
    ];
    assert_eq!(told, expected, "newest first");
    assert!(entries.iter().all(|e| !e.detail.contains("secret")));
    assert_eq!(entries[1].from.as_deref(), Some("127.0.0.1"));
    let query = AuditQuery { agent: Some("alpha".into()), limit: Some(1), ..Default::default() };
    let page = stage.admin.audit(&query).await.unwrap();
    assert_eq!(page.items[0].verb, "object.create");
    let next = AuditQuery { from: page.next, ..query };
    assert_eq!(stage.admin.audit(&next).await.unwrap().items[0].verb, "agent.create");
    let stage = stage.restart().await;
    let verb = Some("kv".into());
    let kept = stage.admin.audit(&AuditQuery { verb, ..Default::default() }).await.unwrap();
    assert_eq!(kept.items.len(), 2, "it survives a restart");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_agents_write_through_proposals_is_in_the_audit_with_who_and_verdict() {
    let (stage, home) = (Stage::new().await, tempfile::tempdir().unwrap());
    let agent = connected(&stage, home.path(), Mode::Managed).await;
    assert!(matches!(agent.propose_kv("site/a", "secret").await, Verdict::Taken { .. }));
    let stale = agent.propose_kv_at("site/a", "2", 999).await;
    assert!(matches!(stale, Verdict::Refused { .. }));
    let query = AuditQuery { who: Some("alpha".into()), ..AuditQuery::default() };
    let told = eventually("both verdicts", async || {
        let query = AuditQuery { verb: Some("kv".into()), ..query.clone() };
        let entries = stage.admin.audit(&query).await.unwrap().items;
        let open = entries.iter().any(|e| e.outcome == Outcome::Asked);
        (entries.len() == 2 && !open).then_some(entries)
    })
    .await;
    let short = |e: &AuditEntry| (e.verb.clone(), e.what.clone(), e.outcome);
    assert_eq!(short(&told[1]), ("kv.put".into(), "site/a".into(), Outcome::Done));
    assert_eq!(short(&told[0]), ("kv.put".into(), "site/a".into(), Outcome::Failed));
    assert!(told[0].detail.contains("rev"), "{:?}", told[0]);
    assert!(told.iter().all(|e| e.from.as_deref() == Some("127.0.0.1")));
    assert!(told.iter().all(|e| !e.detail.contains("secret")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denied_change_is_in_the_audit() {
    let stage = Stage::new().await;
    let viewer = new_token(&stage, Role::Viewer).await;
    let viewer = client(&stage.hub, &viewer);
    assert_eq!(code(viewer.kv_delete("k", None).await), "BL-0103");
    let entry = eventually("the entry", async || {
        let verb = Some("kv.delete".into());
        let found = stage.admin.audit(&AuditQuery { verb, ..Default::default() }).await.unwrap();
        found.items.into_iter().next()
    })
    .await;
    assert_eq!((entry.outcome, entry.who.as_str()), (Outcome::Denied, "somebody"));
    let key = config_map("a", "web", "1").key();
    stage.create_agent("alpha", Mode::Managed).await;
    assert_eq!(code(viewer.delete_object("alpha", &key, Expect::Any).await), "BL-0103");
    let entry = eventually("the object's entry", async || {
        let verb = Some("object.delete".into());
        let found = stage.admin.audit(&AuditQuery { verb, ..Default::default() }).await.unwrap();
        found.items.into_iter().next()
    })
    .await;
    assert_eq!((entry.what, entry.agent), (key.to_string(), Some("alpha".into())));
}

#[tokio::test(flavor = "multi_thread")]
async fn surplus_audit_entries_go_however_young_they_are() {
    let stage = Stage::with(|o| o.audit_entries = 10).await;
    for n in 0..30 {
        stage.admin.kv_put(&format!("k{n}"), Bytes::from("1"), None).await.unwrap();
    }
    eventually("the surplus is gone", async || {
        let all = stage.admin.audit(&AuditQuery::default()).await.unwrap().items;
        assert_eq!(all[0].what, "k29", "the newest stay");
        (all.len() == 10).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_entries_that_are_old_enough_go_however_few_they_are() {
    let stage = Stage::with(|o| o.audit_age = std::time::Duration::from_millis(1)).await;
    stage.admin.kv_put("k", Bytes::from("1"), None).await.unwrap();
    eventually("they are gone", async || {
        let left = stage.admin.audit(&AuditQuery::default()).await.unwrap().items;
        left.is_empty().then_some(())
    })
    .await;
    let stage = stage.restart().await;
    let left = stage.admin.audit(&AuditQuery::default()).await.unwrap().items;
    assert_eq!(left.len(), 0, "on disk too: {left:?}");
}

async fn audited(stage: &Stage, who: &str) -> Vec<AuditEntry> {
    let query = AuditQuery { who: Some(who.into()), limit: Some(500), ..Default::default() };
    stage.admin.audit(&query).await.unwrap().items
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_nothing_cannot_fill_the_audit() {
    let stage = Stage::new().await;
    stage.create_agent("alpha", Mode::Managed).await;
    let viewer = client(&stage.hub, &new_token(&stage, Role::Viewer).await);
    let key = config_map("a", "web", "1").key();
    for n in 0..30 {
        assert_eq!(code(viewer.kv_delete(&format!("k{n}"), None).await), "BL-0103");
        assert_eq!(code(viewer.delete_object("alpha", &key, Expect::Any).await), "BL-0103");
        let invented = format!("nobody-{n}");
        assert_eq!(code(viewer.delete_object(&invented, &key, Expect::Any).await), "BL-0103");
    }
    // What is entered after them is there.
    stage.admin.kv_put("k", Bytes::from("1"), None).await.unwrap();
    let told = eventually("the entries", async || {
        let told = audited(&stage, "somebody").await;
        (told.len() >= 3).then_some(told)
    })
    .await;
    let mut short: Vec<_> = told.iter().map(|e| (e.verb.as_str(), e.agent.as_deref())).collect();
    short.sort_unstable();
    let object = |agent| ("object.delete", Some(agent));
    assert_eq!(short, [("kv.delete", None), object("alpha"), object("nobody-0")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_may_not_write_is_entered_once_whatever_it_asks_for() {
    let (stage, home) = (Stage::new().await, tempfile::tempdir().unwrap());
    let agent = connected(&stage, home.path(), Mode::Managed).await;
    let (roster, patience) = (roster_shelf(), std::time::Duration::from_secs(60));
    let items = || (0..100).map(|n| Item::remove(Key::new(&format!("agent/x{n}")).unwrap()));
    for _ in 0..20 {
        let items = items().collect();
        let asked = agent.handle.propose(&roster, vec![], items, None, patience);
        let Verdict::Refused { why, .. } = asked.await.unwrap() else { panic!("taken") };
        assert_eq!(why, FORBIDDEN);
    }
    // Its entries go to disk before those of what it may.
    assert!(matches!(agent.propose_kv("site/a", "1").await, Verdict::Taken { .. }));
    let told = audited(&stage, "alpha").await;
    let short: Vec<_> = told.iter().map(|e| (e.verb.as_str(), e.what.as_str())).collect();
    let expected = [("kv.put", "site/a"), ("shelf.propose", "agent/x0"), ("agent.join", "alpha")];
    assert_eq!(short, expected);
    assert_eq!(told[1].outcome, Outcome::Denied);
    assert!(told[1].detail.starts_with("BL-0204: "), "{:?}", told[1]);
    assert!(told[1].detail.ends_with("the first of 100 keys"), "{:?}", told[1]);
}

async fn new_token(stage: &Stage, role: Role) -> String {
    let new = TokenCreate {
        name: "somebody".into(),
        role,
        agents: vec![],
        namespaces: vec![],
        ttl_seconds: None,
    };
    stage.admin.create_token(&new).await.unwrap().token
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_made_listed_and_taken_back_but_not_the_last_one() {
    let stage = Stage::new().await;
    let text = new_token(&stage, Role::Admin).await;
    let other = client(&stage.hub, &text);
    assert_eq!(other.tokens().await.unwrap().items.len(), 2);
    other.revoke_token("admin").await.unwrap();
    assert_eq!(code(stage.admin.tokens().await), "BL-0102");
    let id = other.tokens().await.unwrap().items[0].id.clone();
    assert_eq!(code(other.revoke_token(&id).await), "BL-0140");
    let bytes = std::fs::read(stage.dir.path().join("store").join("store.db"));
    let secret = text.rsplit('_').next().unwrap().as_bytes();
    let found = bytes.is_ok_and(|b| b.windows(secret.len()).any(|w| w == secret));
    assert!(!found, "a token is not on disk");
}

#[tokio::test(flavor = "multi_thread")]
async fn shelves_status_and_doctor_tell_how_it_stands() {
    let stage = Stage::new().await;
    stage.create_agent("alpha", Mode::Managed).await;
    let shelves = stage.admin.shelves().await.unwrap().items;
    let own: Vec<_> = shelves.iter().filter(|s| s.own).map(|s| s.id.as_str()).collect();
    assert_eq!(own, ["hub/access", "hub/audit", "hub/desired@alpha", "hub/kv", "hub/roster"]);
    assert!(shelves.iter().filter(|s| s.own).all(|s| s.state == ShelfState::Ready));
    let status = stage.admin.status().await.unwrap();
    assert!(status.ready && status.agents == 1 && status.connected == 0);
    let store = status.store.unwrap();
    assert_eq!((store.engine.as_str(), store.format), ("sqlite", bowline_store::FORMAT));
    assert!(store.bytes > 0);
    let doctor = stage.admin.doctor().await.unwrap();
    let warns = |f: &&bowline_client::api::Finding| f.about == "link" && f.level != Level::Ok;
    let new = doctor.findings.iter().find(warns).unwrap();
    assert!(new.what.contains("alpha"));
    for path in ["/debug/shelves", "/debug/links"] {
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nconnection: close\r\n\r\n",
            stage.token
        );
        assert_eq!(raw::send(&stage.hub, head.as_bytes()).await.0, 200, "{path}");
        let head = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        assert_eq!(raw::send(&stage.hub, head.as_bytes()).await.0, 401, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_can_be_restored() {
    let stage = Stage::new().await;
    stage.admin.kv_put("k", Bytes::from("v"), None).await.unwrap();
    let mut backup = stage.admin.backup().await.unwrap();
    let (size, mut bytes) = (backup.size().unwrap(), vec![]);
    while let Some(piece) = backup.next().await.unwrap() {
        bytes.extend_from_slice(&piece);
    }
    assert_eq!(bytes.len() as u64, size);
    let other = tempfile::tempdir().unwrap();
    let file = other.path().join("it.backup");
    std::fs::write(&file, bytes).unwrap();
    let manifest = bowline_store::restore(&file, &other.path().join("store")).unwrap();
    assert!(manifest.records >= 2);
    let left = std::fs::read_dir(stage.dir.path()).unwrap();
    let left = left.filter(|f| f.as_ref().unwrap().file_name().to_string_lossy().contains("tmp"));
    assert_eq!(left.count(), 0, "nothing is left behind");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adopted_shelf_has_what_was_taken_back_when_the_answer_comes() {
    let (stage, home) = (Stage::new().await, tempfile::tempdir().unwrap());
    let agent = connected(&stage, home.path(), Mode::Managed).await;
    let port = stage.hub.addresses.agents;
    let has = async |key: &str| {
        let held = agent.handle.read(&kv()).await.unwrap();
        held.is_some_and(|read| read.records.iter().any(|r| r.key.as_str() == key)).then_some(())
    };
    stage.admin.kv_put("old", Bytes::from("1"), None).await.unwrap();
    eventually("the agent has it", async || has("old").await).await;
    let (token, dir) = (stage.token, stage.dir);
    stage.hub.drain().await;
    let copy = tempfile::tempdir().unwrap();
    let old = copy.path().join("old");
    let copied = std::process::Command::new("cp").arg("-a").args([dir.path(), &old]).status();
    assert!(copied.unwrap().success());
    let start = async |dir: &std::path::Path| {
        let mut options = HubOptions::new(dir);
        (options.agents, options.accept_loss) = (port, true);
        Hub::start(options).await.unwrap()
    };
    let hub = start(dir.path()).await;
    agent.connect().await.unwrap();
    client(&hub, &token).kv_put("new", Bytes::from("1"), None).await.unwrap();
    eventually("the agent has it", async || has("new").await).await;
    hub.drain().await;

    let hub = start(&old).await;
    let admin = client(&hub, &token);
    // Comes again whenever it is sent away, as agents do.
    let again = async {
        loop {
            if let Ok(link) = agent.connect().await {
                link.await.unwrap();
            }
        }
    };
    let adopted = async {
        eventually("the proof", async || {
            let shelves = admin.shelves().await.unwrap().items;
            let kv = shelves.into_iter().find(|s| s.id == "hub/kv").unwrap();
            (kv.state == ShelfState::Stopped).then_some(())
        })
        .await;
        let view = admin.adopt_shelf("hub/kv").await.unwrap();
        assert_eq!(view.state, ShelfState::Ready, "{view:?}");
        assert_eq!(admin.kv_get("new").await.unwrap().value, "1");
    };
    tokio::select! {
        () = adopted => {}
        () = again => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_an_agent_holds_are_named_where_a_person_looks() {
    let (stage, home) = (Stage::new().await, tempfile::tempdir().unwrap());
    let agent = connected(&stage, home.path(), Mode::Managed).await;
    let key = config_map("kept", "web", "1").key();
    let mut observed = Observed::new(Of { uid: "u".into(), rev: 1 }, now());
    observed.message = "held: 9 of 10 objects are absent".into();
    let item = Item::put(key.record_key(), observed.encode());
    let shelf = observed_shelf(&agent.name);
    agent.handle.write(&shelf, vec![], vec![item]).await.unwrap();
    let asked = eventually("the question", async || {
        let shelves = stage.admin.shelves().await.unwrap().items;
        shelves.into_iter().find(|s| s.id == "hub/desired@alpha").unwrap().question
    })
    .await;
    assert!(asked.starts_with("1 objects"), "{asked}");
    let said = format!("{:?}", stage.admin.doctor().await.unwrap());
    assert!(said.contains(&key.to_string()), "{said}");
    let missing = stage.admin.object("alpha", &key).await.unwrap_err();
    assert!(missing.to_string().contains("held: 9 of 10"), "{missing}");
    assert_eq!(code(stage.admin.discard_shelf("hub/desired@alpha").await), "BL-0139");
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_that_cannot_be_connected_are_not_said_to_be() {
    let (stage, home) = (Stage::new().await, tempfile::tempdir().unwrap());
    let _agent = connected(&stage, home.path(), Mode::Managed).await;
    stage.create_agent("beta", Mode::Managed).await;
    let said = async || {
        let doctor = stage.admin.doctor().await.unwrap();
        doctor.findings.into_iter().filter(|f| f.about == "link").collect::<Vec<_>>()
    };
    let new = eventually("it is connected", async || {
        let said = said().await;
        (said[0].what == "the one agent is connected").then_some(said)
    })
    .await;
    assert!(new[1].hint.as_ref().unwrap().contains("bowline join-token beta"), "{new:?}");
    stage.admin.revoke_agent("alpha", "lost").await.unwrap();
    let revoked = said().await;
    assert_eq!(revoked[0].what, "no agents that could be connected", "{revoked:?}");
    assert_eq!(revoked[2].what, "revoked, and kept out: alpha", "{revoked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_and_health_are_on_their_own_ports() {
    let stage = Stage::new().await;
    stage.admin.kv_put("k", Bytes::from("v"), None).await.unwrap();
    let addresses = stage.hub.addresses;
    let (status, text) = raw::plain(addresses.metrics.unwrap(), "/metrics").await;
    assert_eq!(status, 200);
    for name in [
        "bowline_commits_total",
        "bowline_hub_agents_connected 0",
        "bowline_hub_lag_records_max 0",
        "bowline_hub_request_duration_seconds_count{method=\"PUT\",route=\"/api/v1/kv/{*key}\"} 1",
    ] {
        assert!(text.contains(name), "{name} in {text}");
    }
    assert!(!text.contains("by_agent"));
    assert_eq!(raw::plain(addresses.health.unwrap(), "/healthz").await.0, 200);
    assert_eq!(raw::plain(addresses.health.unwrap(), "/readyz").await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_admins_who_take_back_each_others_token_do_not_lock_everybody_out() {
    let stage = Stage::new().await;
    for _ in 0..10 {
        let new = TokenCreate {
            name: "second".into(),
            role: Role::Admin,
            agents: vec![],
            namespaces: vec![],
            ttl_seconds: None,
        };
        let tokens = stage.admin.tokens().await.unwrap().items;
        let first = tokens.into_iter().find(|t| t.role == Role::Admin).unwrap();
        let second = stage.admin.create_token(&new).await.unwrap();
        let other = client(&stage.hub, &second.token);
        let (one, two) =
            tokio::join!(stage.admin.revoke_token(&second.view.id), other.revoke_token(&first.id));
        assert!(one.is_err() || two.is_err(), "both are gone");
        if two.is_ok() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_of_some_namespaces_cannot_touch_a_whole_agent() {
    let stage = Stage::new().await;
    stage.create_agent("alpha", Mode::Managed).await;
    let new = TokenCreate {
        name: "web".into(),
        role: Role::Admin,
        agents: vec![],
        namespaces: vec!["web".into()],
        ttl_seconds: None,
    };
    let web = client(&stage.hub, &stage.admin.create_token(&new).await.unwrap().token);
    assert_eq!(code(web.remove_agent("alpha").await), "BL-0104");
    assert_eq!(code(web.revoke_agent("alpha", "no reason").await), "BL-0104");
    web.create_object("alpha", &config_map("a", "web", "1")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_ask_for_nothing_do_not_hold_up_the_end() {
    let stage = Stage::new().await;
    let at = stage.hub.addresses;
    let mut silent = vec![];
    for addr in [at.api, at.metrics.unwrap(), at.health.unwrap()] {
        silent.push(tokio::net::TcpStream::connect(addr).await.unwrap());
    }
    // They have been accepted before one that came later is answered.
    assert_eq!(raw::plain(at.metrics.unwrap(), "/metrics").await.0, 200);
    assert_eq!(raw::plain(at.health.unwrap(), "/healthz").await.0, 200);
    let limit = std::time::Duration::from_secs(8);
    tokio::time::timeout(limit, stage.hub.drain()).await.expect("sooner than any grace ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_was_cut_short_is_cleared_away() {
    let stage = Stage::new().await;
    let left = stage.dir.path().join("backup-00000000000000ff.tmp");
    std::fs::write(&left, "half of the store, maybe with its key").unwrap();
    let _stage = stage.restart().await;
    assert!(!left.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_was_removed_does_not_come_back_with_its_objects() {
    let stage = Stage::new().await;
    stage.create_agent("alpha", Mode::Managed).await;
    stage.admin.create_object("alpha", &config_map("a", "web", "1")).await.unwrap();
    // As a hub leaves it that is killed between the roster and what follows from it.
    let key = RosterEntry::key_of(&NodeId::new("alpha").unwrap());
    let handle = stage.hub.handle();
    handle.write(&roster_shelf(), vec![], vec![Item::remove(key)]).await.unwrap();
    let stage = stage.restart().await;
    stage.create_agent("alpha", Mode::Managed).await;
    let found = stage.admin.objects(&ObjectQuery::default()).await.unwrap();
    assert!(found.items.is_empty(), "{found:?}");
}
