//! Watches against a server that does what real ones seldom do.

use std::time::Duration;

use serde_json::json;

use crate::cluster::Scope;
use crate::pace::Pace;
use crate::testing::{Fake, config_map, config_maps, hear, quick};
use crate::{Cluster, Watch};

async fn watch(cluster: &Cluster) -> Watch {
    cluster.watch(&config_maps(), Scope::Cluster, None)
}

fn gone() -> serde_json::Value {
    json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"})
}

/// A server, and a watch that has listed `a` (uid 1) and `b` (uid 2) at 10.
async fn settled(pace: Pace) -> (Fake, Watch) {
    let mut fake = Fake::start().await;
    let mut watch = watch(&fake.cluster(pace).await).await;
    let items = [config_map("a", "1", "5"), config_map("b", "2", "6")];
    fake.next_list().await.list("10", None, &items).await;
    for expected in ["put a 5", "put b 6", "listed"] {
        assert_eq!(hear(&mut watch).await, expected);
    }
    (fake, watch)
}

#[tokio::test]
async fn a_list_in_pages_then_what_happens_from_there() {
    let mut fake = Fake::start().await;
    let cluster = fake.cluster(quick()).await;
    let scope = Scope::Namespaces(vec!["web".into()]);
    let mut watch = cluster.watch(&config_maps(), scope, Some("app=x"));
    let first = fake.next_list().await;
    assert_eq!(first.path, "/api/v1/namespaces/web/configmaps");
    assert_eq!(first.query["labelSelector"], "app%3Dx");
    assert_eq!(first.query["limit"], "500");
    first.list("10", Some("more"), &[config_map("a", "1", "5")]).await;
    // What a page has is told before the next one is there.
    assert_eq!(hear(&mut watch).await, "put a 5");
    let second = fake.next_list().await;
    assert_eq!(second.query["continue"], "more");
    second.list("10", None, &[config_map("b", "2", "6")]).await;
    assert_eq!(hear(&mut watch).await, "put b 6");
    assert_eq!(hear(&mut watch).await, "listed");

    let asked = fake.next_watch().await;
    assert_eq!(asked.query["resourceVersion"], "10");
    assert_eq!(asked.query["allowWatchBookmarks"], "true");
    assert_eq!(asked.query["labelSelector"], "app%3Dx");
    let seconds: u64 = asked.query["timeoutSeconds"].parse().unwrap();
    assert!((200..=290).contains(&seconds), "{seconds}");
    let mut stream = asked.stream().await;
    stream.event("ADDED", &config_map("c", "3", "11")).await;
    stream.event("MODIFIED", &config_map("a", "1", "12")).await;
    stream.event("DELETED", &config_map("b", "2", "13")).await;
    for expected in ["put c 11", "put a 12", "gone core/ConfigMap/web/b 2"] {
        assert_eq!(hear(&mut watch).await, expected);
    }
}

#[tokio::test]
async fn a_watch_that_ends_goes_on_from_its_last_bookmark() {
    let (mut fake, mut watch) = settled(quick()).await;
    let mut stream = fake.next_watch().await.stream().await;
    stream.event("BOOKMARK", &json!({"metadata": {"resourceVersion": "99"}})).await;
    stream.end().await;
    let again = fake.next_watch().await;
    assert_eq!(again.query["resourceVersion"], "99");
    again.stream().await.event("ADDED", &config_map("c", "3", "100")).await;
    assert_eq!(hear(&mut watch).await, "put c 100");
}

#[tokio::test]
async fn an_expired_place_is_listed_anew_and_missed_deletions_are_told() {
    let (mut fake, mut watch) = settled(quick()).await;
    fake.next_watch().await.answer(410, &gone()).await;
    // `a` went, `b` went and came again as another.
    fake.next_list().await.list("20", None, &[config_map("b", "9", "18")]).await;
    for expected in
        ["missed core/ConfigMap/web/b 2", "put b 18", "missed core/ConfigMap/web/a 1", "listed"]
    {
        assert_eq!(hear(&mut watch).await, expected);
    }
    assert_eq!(fake.next_watch().await.query["resourceVersion"], "20");
}

#[tokio::test]
async fn a_place_that_expires_in_the_middle_of_a_watch_is_listed_anew() {
    let (mut fake, mut watch) = settled(quick()).await;
    let mut stream = fake.next_watch().await.stream().await;
    stream.event("ADDED", &config_map("c", "3", "11")).await;
    assert_eq!(hear(&mut watch).await, "put c 11");
    stream.event("ERROR", &gone()).await;
    let items = [config_map("a", "1", "5"), config_map("b", "2", "6")];
    fake.next_list().await.list("20", None, &items).await;
    for expected in ["put a 5", "put b 6", "missed core/ConfigMap/web/c 3", "listed"] {
        assert_eq!(hear(&mut watch).await, expected);
    }
}

#[tokio::test]
async fn another_error_in_a_watch_is_told_and_the_watch_lists_anew() {
    let (mut fake, mut watch) = settled(quick()).await;
    let mut stream = fake.next_watch().await.stream().await;
    stream.event("ERROR", &json!({"kind": "Status", "code": 500, "message": "decoding"})).await;
    assert!(hear(&mut watch).await.contains("decoding"));
    fake.next_list().await.list("20", None, &[]).await;
    let mut told = vec![hear(&mut watch).await, hear(&mut watch).await];
    told.sort();
    assert_eq!(told, ["missed core/ConfigMap/web/a 1", "missed core/ConfigMap/web/b 2"]);
    assert_eq!(hear(&mut watch).await, "listed");
}

#[tokio::test]
async fn a_silent_watch_is_left_and_opened_again_at_its_place() {
    let silence = Duration::from_secs(4);
    let (mut fake, mut watch) = settled(Pace { silence, ..quick() }).await;
    let silent = fake.next_watch().await.stream().await;
    silent.abandoned().await;
    let again = fake.next_watch().await;
    assert_eq!(again.query["resourceVersion"], "10");
    again.stream().await.event("ADDED", &config_map("c", "3", "11")).await;
    assert_eq!(hear(&mut watch).await, "put c 11");
}

#[tokio::test]
async fn a_watch_that_outlives_what_was_asked_is_left_even_if_it_talks() {
    let (watch, grace) = (Duration::from_secs(4), Duration::ZERO);
    let (mut fake, _watch) = settled(Pace { watch, grace, ..quick() }).await;
    let mut talking = fake.next_watch().await.stream().await;
    talking.event("BOOKMARK", &json!({"metadata": {"resourceVersion": "50"}})).await;
    talking.abandoned().await;
    assert_eq!(fake.next_watch().await.query["resourceVersion"], "50");
}

#[tokio::test]
async fn half_a_line_counts_for_nothing() {
    let (mut fake, mut watch) = settled(quick()).await;
    let mut stream = fake.next_watch().await.stream().await;
    stream.event("ADDED", &config_map("c", "3", "11")).await;
    let whole = json!({"type": "DELETED", "object": config_map("a", "1", "12")}).to_string();
    stream.raw(&whole[..whole.len() / 2]).await;
    stream.cut().await;
    assert_eq!(hear(&mut watch).await, "put c 11");
    let again = fake.next_watch().await;
    assert_eq!(again.query["resourceVersion"], "11");
    again.stream().await.raw(&format!("{whole}\n")).await;
    assert_eq!(hear(&mut watch).await, "gone core/ConfigMap/web/a 1");
}

#[tokio::test]
async fn a_line_in_pieces_is_one_event() {
    let (mut fake, mut watch) = settled(quick()).await;
    let mut stream = fake.next_watch().await.stream().await;
    let whole = json!({"type": "ADDED", "object": config_map("c", "3", "11")}).to_string() + "\n";
    for piece in [&whole[..10], &whole[10..50], &whole[50..], "\n"] {
        stream.raw(piece).await;
    }
    assert_eq!(hear(&mut watch).await, "put c 11");
    stream.event("DELETED", &config_map("c", "3", "12")).await;
    assert_eq!(hear(&mut watch).await, "gone core/ConfigMap/web/c 3");
}

#[tokio::test]
async fn a_line_that_is_no_event_is_told_and_the_watch_lists_anew() {
    let (mut fake, mut watch) = settled(quick()).await;
    fake.next_watch().await.stream().await.raw("{\"type\":\"ADDED\",\"object\":{\n").await;
    assert!(hear(&mut watch).await.starts_with("trouble"));
    fake.next_list().await.list("20", None, &[]).await;
    assert!(hear(&mut watch).await.starts_with("missed"));
}

#[tokio::test]
async fn trouble_is_told_once_when_it_begins_and_again_when_it_changes() {
    let mut fake = Fake::start().await;
    let mut watch = watch(&fake.cluster(quick()).await).await;
    for _ in 0..3 {
        fake.next_list().await.answer(503, &json!({"message": "starting"})).await;
    }
    let denied = json!({"reason": "Forbidden", "message": "User \"x\" cannot list resource \"configmaps\" in API group \"\" at the cluster scope"});
    for _ in 0..2 {
        fake.next_list().await.answer(403, &denied).await;
    }
    fake.next_list().await.list("10", None, &[]).await;
    assert!(hear(&mut watch).await.contains("starting"));
    assert!(hear(&mut watch).await.contains("grant `list` on `configmaps`"));
    assert_eq!(hear(&mut watch).await, "listed");
}

#[tokio::test]
async fn a_watch_that_cannot_be_opened_keeps_its_place_and_says_when_it_is_well_again() {
    let (mut fake, mut watch) = settled(quick()).await;
    for _ in 0..2 {
        fake.next_watch().await.answer(503, &json!({"message": "restarting"})).await;
    }
    assert!(hear(&mut watch).await.contains("restarting"));
    let again = fake.next_watch().await;
    assert_eq!(again.query["resourceVersion"], "10");
    let mut stream = again.stream().await;
    assert_eq!(hear(&mut watch).await, "listed");
    stream.event("DELETED", &config_map("a", "1", "12")).await;
    assert_eq!(hear(&mut watch).await, "gone core/ConfigMap/web/a 1");
}

#[tokio::test]
async fn a_list_whose_next_page_expired_starts_over_and_tells_nothing_twice() {
    let mut fake = Fake::start().await;
    let mut watch = watch(&fake.cluster(quick()).await).await;
    let (a, b) = (config_map("a", "1", "5"), config_map("b", "2", "6"));
    fake.next_list().await.list("10", Some("more"), &[a.clone(), b]).await;
    assert_eq!(hear(&mut watch).await, "put a 5");
    assert_eq!(hear(&mut watch).await, "put b 6");
    fake.next_list().await.answer(410, &gone()).await;
    // Meanwhile `b` went.
    let over = fake.next_list().await;
    assert!(!over.query.contains_key("continue"));
    over.list("20", None, &[a, config_map("c", "3", "15")]).await;
    for expected in ["put c 15", "missed core/ConfigMap/web/b 2", "listed"] {
        assert_eq!(hear(&mut watch).await, expected);
    }
}

#[tokio::test]
async fn all_namespaces_have_listed_before_it_is_told() {
    let mut fake = Fake::start().await;
    let cluster = fake.cluster(quick()).await;
    let scope = Scope::Namespaces(vec!["web".into(), "db".into()]);
    let mut watch = cluster.watch(&config_maps(), scope, None);
    let (one, other) = (fake.next_list().await, fake.next_list().await);
    assert_ne!(one.path, other.path);
    one.list("10", None, &[]).await;
    // The first is done and watches; the second is not, so nothing may be told but its objects.
    let _first = fake.next_watch().await;
    other.list("11", None, &[config_map("a", "1", "5")]).await;
    assert_eq!(hear(&mut watch).await, "put a 5");
    assert_eq!(hear(&mut watch).await, "listed");
}

#[tokio::test]
async fn a_watch_over_no_namespace_has_listed_at_once() {
    let mut fake = Fake::start().await;
    let cluster = fake.cluster(quick()).await;
    let mut watch = cluster.watch(&config_maps(), Scope::Namespaces(vec![]), None);
    assert_eq!(hear(&mut watch).await, "listed");
    assert!(fake.is_quiet());
}

#[tokio::test]
async fn dropping_a_watch_hangs_up() {
    let (mut fake, watch) = settled(quick()).await;
    let stream = fake.next_watch().await.stream().await;
    drop(watch);
    stream.abandoned().await;
}

#[tokio::test]
async fn what_went_is_told_once() {
    let (mut fake, mut watch) = settled(quick()).await;
    let mut stream = fake.next_watch().await.stream().await;
    stream.event("DELETED", &config_map("a", "1", "11")).await;
    stream.end().await;
    assert_eq!(hear(&mut watch).await, "gone core/ConfigMap/web/a 1");
    let again = fake.next_watch().await;
    assert_eq!(again.query["resourceVersion"], "11");
    again.answer(410, &gone()).await;
    fake.next_list().await.list("20", None, &[config_map("b", "2", "6")]).await;
    assert_eq!(hear(&mut watch).await, "put b 6");
    assert_eq!(hear(&mut watch).await, "listed");
}

#[tokio::test]
async fn a_kind_that_vanished_is_told_and_listed_anew_when_it_is_back() {
    let (mut fake, mut watch) = settled(quick()).await;
    let unknown = json!({"reason": "NotFound", "message": "could not find it", "details": {}});
    fake.next_watch().await.answer(404, &unknown).await;
    fake.next_list().await.answer(404, &unknown).await;
    fake.next_list().await.list("20", None, &[config_map("a", "7", "18")]).await;
    assert!(hear(&mut watch).await.starts_with("trouble the cluster does not have the kind"));
    for expected in
        ["missed core/ConfigMap/web/a 1", "put a 18", "missed core/ConfigMap/web/b 2", "listed"]
    {
        assert_eq!(hear(&mut watch).await, expected);
    }
}

#[tokio::test]
async fn a_place_that_expires_now_and_then_is_no_trouble_but_one_after_the_other_is() {
    let (mut fake, mut watch) = settled(quick()).await;
    fake.next_watch().await.answer(410, &gone()).await;
    fake.next_list().await.list("10", None, &[]).await;
    while hear(&mut watch).await.starts_with("missed") {}
    let mut stream = fake.next_watch().await.stream().await;
    stream.event("ADDED", &config_map("c", "3", "11")).await;
    assert_eq!(hear(&mut watch).await, "put c 11");
    stream.event("ERROR", &gone()).await;
    fake.next_list().await.list("20", None, &[]).await;
    assert_eq!(hear(&mut watch).await, "missed core/ConfigMap/web/c 3");
    assert_eq!(hear(&mut watch).await, "listed");
    fake.next_watch().await.answer(410, &gone()).await;
    assert!(hear(&mut watch).await.starts_with("trouble"));
}

#[tokio::test]
async fn a_server_that_asks_for_a_long_wait_is_left_alone_for_as_long_as_we_ever_wait() {
    let mut fake = Fake::start().await;
    let pace = Pace { throttled: Duration::from_millis(300), ..quick() };
    let _watch = watch(&fake.cluster(pace).await).await;
    for _ in 0..2 {
        let asked = fake.next_list().await;
        let said = std::time::Instant::now();
        asked.answer_with(429, "Retry-After: 60\r\n", "{}").await;
        let next = fake.next_list().await;
        assert!(said.elapsed() >= Duration::from_millis(300), "{:?}", said.elapsed());
        next.answer_with(429, "Retry-After: 60\r\n", "{}").await;
    }
}

#[tokio::test]
async fn a_server_that_ends_every_watch_is_asked_at_a_pace() {
    for ending in ["at once", "410", "410 after a bookmark"] {
        let mut fake = Fake::start().await;
        let first_pause = Duration::from_millis(20);
        let pace = Pace { first_pause, settled: Duration::from_secs(1), ..quick() };
        let longest_pause = Duration::from_millis(80);
        let pace = Pace { longest_pause, ..pace };
        let mut watch = watch(&fake.cluster(pace).await).await;
        tokio::spawn(
            async move { while !matches!(watch.next().await, crate::Heard::Gone { .. }) {} },
        );
        let (mut asked, end) = (0, tokio::time::Instant::now() + Duration::from_millis(1500));
        while let Ok(request) = tokio::time::timeout_at(end, fake.next()).await {
            asked += 1;
            if !request.query.contains_key("watch") {
                request.list("10", None, &[]).await;
                continue;
            }
            let mut stream = request.stream().await;
            if ending == "410 after a bookmark" {
                let mark = json!({"metadata": {"resourceVersion": "11"}});
                stream.event("BOOKMARK", &mark).await;
            }
            if ending != "at once" {
                stream.event("ERROR", &gone()).await;
            }
            stream.end().await;
        }
        assert!(asked < 400, "{asked} requests in 1.5 s with pauses of {first_pause:?}: {ending}");
    }
}
