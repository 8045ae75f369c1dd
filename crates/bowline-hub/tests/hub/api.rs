//! The API, by the typed client.

use bowline_client::Expect;
use bowline_client::api::{
    AgentCreate, AuditEntry, AuditQuery, KvQuery, ObjectQuery, OperationCreate, Outcome, Page,
    Role, TokenCreate,
};
use bowline_resources::{Mode, Operation};
use bytes::Bytes;
use serde_json::json;

use crate::raw;
use crate::stage::{Stage, client, code, config_map};

#[tokio::test(flavor = "multi_thread")]
async fn agents_are_created_listed_and_removed() {
    let stage = Stage::new().await;
    stage.create_agent("alpha", Mode::Managed).await;
    stage.create_agent("beta", Mode::Autonomous).await;
    let again = AgentCreate {
        name: "alpha".into(),
        mode: Mode::Managed,
        rules: vec![],
        labels: Default::default(),
        kv_prefixes: vec![],
    };
    assert_eq!(code(stage.admin.create_agent(&again).await), "BL-0132");
    let bad = AgentCreate { name: "No Good".into(), ..again };
    assert_eq!(code(stage.admin.create_agent(&bad).await), "BL-0116");
    let page = Page { limit: Some(1), from: None };
    let first = stage.admin.agents(Some("env=test"), &page).await.unwrap();
    assert_eq!(first.items[0].name, "alpha");
    let page = Page { limit: Some(1), from: first.next };
    let second = stage.admin.agents(None, &page).await.unwrap();
    assert_eq!((second.items[0].name.as_str(), second.next), ("beta", None));
    stage.admin.remove_agent("alpha").await.unwrap();
    assert_eq!(code(stage.admin.agent("alpha").await), "BL-0121");
    let stage = stage.restart().await;
    let left = stage.admin.agents(None, &Page::default()).await.unwrap();
    assert_eq!(left.items.len(), 1);
    assert_eq!(left.items[0].mode, Mode::Autonomous);
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_created_replaced_patched_listed_and_deleted() {
    let stage = Stage::new().await;
    stage.create_agent("alpha", Mode::Managed).await;
    let object = config_map("a", "web", "1");
    let made = stage.admin.create_object("alpha", &object).await.unwrap();
    assert_eq!(made.object.metadata.generation, Some(1));
    assert_eq!(code(stage.admin.create_object("alpha", &object).await), "BL-0132");

    let same = stage.admin.put_object("alpha", &object, Expect::Any).await.unwrap();
    assert!(!same.created && same.value.rev == made.rev, "nothing changed, nothing written");
    let changed = config_map("a", "web", "2");
    let stale = stage.admin.put_object("alpha", &changed, Expect::Rev(made.rev + 7)).await;
    assert_eq!(code(stale), "BL-0131");
    let put = stage.admin.put_object("alpha", &changed, Expect::Rev(made.rev)).await.unwrap();
    assert_eq!(put.value.object.metadata.uid, made.object.metadata.uid);
    let patch = json!({"data": {"k": null, "l": "3"}});
    let key = object.key();
    let patched = stage.admin.patch_object("alpha", &key, &patch, Expect::Any).await.unwrap();
    assert_eq!(patched.object.rest["data"], json!({"l": "3"}));
    let rename = json!({"metadata": {"name": "b"}});
    let renamed = stage.admin.patch_object("alpha", &key, &rename, Expect::Any).await;
    assert_eq!(code(renamed), "BL-0116");

    for n in 0..5 {
        let object = config_map(&format!("n{n}"), "db", "x");
        stage.admin.put_object("alpha", &object, Expect::Missing).await.unwrap();
    }
    let query = ObjectQuery { limit: Some(2), ..ObjectQuery::default() };
    assert_eq!(stage.admin.all_objects(&query).await.unwrap().len(), 6);
    let query = ObjectQuery { label_selector: Some("app in (n1,n3)".into()), ..query };
    assert_eq!(stage.admin.all_objects(&query).await.unwrap().len(), 2);
    let query = ObjectQuery { namespace: Some("web".into()), ..ObjectQuery::default() };
    assert_eq!(stage.admin.all_objects(&query).await.unwrap().len(), 1);
    let query = ObjectQuery { field_selector: Some("nonsense=1".into()), ..query };
    assert_eq!(code(stage.admin.objects(&query).await), "BL-0115");

    let gone = stage.admin.delete_object("alpha", &key, Expect::Any).await.unwrap();
    assert!(gone.gone, "nobody has ever had it");
    assert_eq!(code(stage.admin.object("alpha", &key).await), "BL-0122");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_autonomous_agents_objects_are_read_only_at_the_hub() {
    let stage = Stage::new().await;
    stage.create_agent("beta", Mode::Autonomous).await;
    let made = stage.admin.create_object("beta", &config_map("a", "web", "1")).await;
    assert_eq!(code(made), "BL-0134");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_on_an_agent_that_is_away_certainly_did_not_start() {
    let stage = Stage::with(|o| o.patience = std::time::Duration::from_millis(50)).await;
    stage.create_agent("alpha", Mode::Managed).await;
    let object = config_map("a", "web", "1");
    stage.admin.create_object("alpha", &object).await.unwrap();
    let sync = OperationCreate { operation: Operation::Sync, id: None };
    let asked = stage.admin.operate("alpha", &object.key(), &sync).await;
    assert_eq!(code(asked), "BL-0141");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_written_by_compare_and_set_and_survive_a_restart() {
    let stage = Stage::new().await;
    let put = |key: &'static str, value: &'static str, cas| {
        let admin = stage.admin.clone();
        async move { admin.kv_put(key, Bytes::from(value), cas).await }
    };
    let one = put("site/a", "1", Some(0)).await.unwrap();
    assert_eq!(code(put("site/a", "2", Some(0)).await), "BL-0131");
    let two = put("site/a", "2", Some(one.rev)).await.unwrap();
    assert!(two.rev > one.rev && two.born == one.born);
    put("site/b/c", "3", None).await.unwrap();
    put("other", "4", None).await.unwrap();
    let query = KvQuery { prefix: Some("site/".into()), limit: Some(1), ..KvQuery::default() };
    let page = stage.admin.kv_list(&query).await.unwrap();
    assert_eq!(page.next.as_deref(), Some("site/a"));
    let rest = stage.admin.kv_list(&KvQuery { from: page.next, ..query }).await.unwrap();
    assert_eq!((rest.items[0].key.as_str(), rest.next), ("site/b/c", None));
    assert_eq!(code(stage.admin.kv_get("nothing").await), "BL-0123");
    assert_eq!(code(stage.admin.kv_delete("site/a", Some(one.rev)).await), "BL-0131");
    assert!(stage.admin.kv_delete("site/a", None).await.unwrap().gone);
    let stage = stage.restart().await;
    assert_eq!(stage.admin.kv_get("other").await.unwrap().value, "4");
    assert_eq!(code(stage.admin.kv_get("site/a").await), "BL-0123");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_shows_no_token_or_a_wrong_one_learns_nothing() {
    let stage = Stage::new().await;
    let wrong = client(&stage.hub, "bowline_admin_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    assert_eq!(code(wrong.agents(None, &Page::default()).await), "BL-0102");
    let nonsense = client(&stage.hub, "nonsense");
    assert_eq!(code(nonsense.kv_get("a").await), "BL-0102");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_checks_everything_and_writes_nothing() {
    let stage = Stage::new().await;
    stage.create_agent("alpha", Mode::Managed).await;
    stage.create_agent("beta", Mode::Autonomous).await;
    let (one, two) = (config_map("a", "web", "1"), config_map("a", "web", "2"));
    assert_eq!(code(stage.admin.would_put_object("alhpa", &one).await), "BL-0121");
    assert_eq!(code(stage.admin.would_put_object("beta", &one).await), "BL-0134");
    let large = config_map("a", "web", &"x".repeat(1 << 20));
    assert_eq!(code(stage.admin.would_put_object("alpha", &large).await), "BL-0136");
    let would = stage.admin.would_put_object("alpha", &one).await.unwrap();
    assert!(would.created && would.value.rev == 0, "{would:?}");
    assert_eq!(code(stage.admin.object("alpha", &one.key()).await), "BL-0122");

    let made = stage.admin.create_object("alpha", &one).await.unwrap();
    let would = stage.admin.would_put_object("alpha", &two).await.unwrap();
    assert!(!would.created && would.value.rev == made.rev, "{would:?}");
    assert_eq!(would.value.object.rest["data"], json!({"k": "2"}));
    let path = "/agents/alpha/objects/core/ConfigMap/web/a?dryRun=true";
    let (status, gone) = raw::call(&stage.hub, &stage.token, "DELETE", path, b"").await;
    assert_eq!(status, 200, "{gone}");
    let patch = br#"{"data": {"k": "3"}}"#;
    let (status, shown) = raw::call(&stage.hub, &stage.token, "PATCH", path, patch).await;
    assert!(status == 200 && shown.contains(r#""k":"3""#), "{shown}");
    let (status, _) = raw::call(&stage.hub, &stage.token, "PATCH", path, b"[]").await;
    assert_eq!(status, 422);
    assert_eq!(stage.admin.object("alpha", &one.key()).await.unwrap(), made);
    let audit = stage.admin.audit(&AuditQuery::default()).await.unwrap().items;
    let objects = audit.iter().filter(|e| e.verb.starts_with("object."));
    assert_eq!(objects.map(|e| e.verb.as_str()).collect::<Vec<_>>(), ["object.create"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_removed_whoever_writes_it_meanwhile() {
    let stage = Stage::new().await;
    for _ in 0..50 {
        stage.admin.kv_put("k", Bytes::from("1"), None).await.unwrap();
        let (put, gone) = tokio::join!(
            stage.admin.kv_put("k", Bytes::from("2"), None),
            stage.admin.kv_delete("k", None)
        );
        put.unwrap();
        gone.expect("nothing was to be compared");
    }
    let _maybe = stage.admin.kv_delete("k", None).await;
    assert_eq!(code(stage.admin.kv_delete("k", None).await), "BL-0123");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_set_of_an_agent_is_changed_and_entered_in_the_audit() {
    let stage = Stage::new().await;
    stage.create_agent("alpha", Mode::Managed).await;
    let patch = json!({"labels": {"env": null, "tier": "edge"}, "kvPrefixes": ["site/a/"]});
    let set = stage.admin.patch_agent("alpha", &patch).await.unwrap();
    assert_eq!(set.labels, [("tier".to_owned(), "edge".to_owned())].into());
    assert_eq!(set.kv_prefixes, ["site/a/"]);
    let again = stage.admin.patch_agent("alpha", &patch).await.unwrap();
    assert_eq!(again.rev, set.rev, "nothing changed, nothing written");
    let rules = json!({"rules": [{"kind": "Secret", "owner": "agent"}]});
    let ruled = stage.admin.patch_agent("alpha", &rules).await.unwrap();
    assert_eq!((ruled.rules.len(), ruled.kv_prefixes), (1, set.kv_prefixes));
    stage.admin.create_object("alpha", &config_map("a", "web", "1")).await.unwrap();
    for wrong in [
        json!({"mode": "autonomous"}),
        json!({"kvPrefixes": ["/site"]}),
        json!({"labels": "edge"}),
        json!({"rules": [{"kind": "ConfigMap", "owner": "agent"}]}),
    ] {
        assert_eq!(code(stage.admin.patch_agent("alpha", &wrong).await), "BL-0116", "{wrong}");
    }
    assert_eq!(code(stage.admin.patch_agent("alhpa", &patch).await), "BL-0121");
    let new = TokenCreate {
        name: "ops".into(),
        role: Role::Admin,
        agents: vec!["alpha".into()],
        namespaces: vec![],
        ttl_seconds: None,
    };
    let limited = client(&stage.hub, &stage.admin.create_token(&new).await.unwrap().token);
    assert_eq!(code(limited.patch_agent("alpha", &json!({"kvPrefixes": null})).await), "BL-0104");
    let query = AuditQuery { verb: Some("agent.set".into()), ..AuditQuery::default() };
    let done = |e: &AuditEntry| e.outcome == Outcome::Done;
    let audit = stage.admin.audit(&query).await.unwrap().items;
    assert_eq!(audit.iter().filter(|e| done(e)).count(), 2, "{audit:?}");
    let stage = stage.restart().await;
    assert_eq!(stage.admin.agent("alpha").await.unwrap().rules.len(), 1);
}
