//! Watching an agent's own API.

use bowline_resources::Mode;
use bowline_types::{Body, Item, Key};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::stage::*;

async fn put(hub: &Hub, n: usize, text: &str) {
    let item = Item::put(Key::new(&format!("k/{n:03}")).unwrap(), Body::new(text.to_owned()));
    hub.handle.write(&kv(), vec![], vec![item]).await.unwrap();
}

#[tokio::test]
async fn the_present_state_is_made_ready_as_it_is_read_and_is_whole() {
    const KEYS: usize = 200;
    let temp = tempfile::tempdir().unwrap();
    let (hub, agent) = pair(&temp, Mode::Managed).await;
    // More than the system holds for a reader that does not read.
    let old = "o".repeat(64 << 10);
    for n in 0..KEYS {
        put(&hub, n, &old).await;
    }
    let last = format!("/api/v1/kv/k/{:03}", KEYS - 1);
    until("all keys", async || http(agent.api, "GET", &last, "").await.0 == 200).await;
    let mut stream = TcpStream::connect(agent.api).await.unwrap();
    let request = "GET /api/v1/events?initial=true&kinds=kv HTTP/1.1\r\nhost: localhost\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    // It has begun.
    stream.read_u8().await.unwrap();

    put(&hub, KEYS - 1, "new").await;
    until("the change", async || http(agent.api, "GET", &last, "").await.1.contains("new")).await;
    let mut lines = BufReader::new(stream).lines();
    let mut told = vec![];
    soon("the end of the present state", async {
        while let Some(line) = lines.next_line().await.unwrap() {
            match line.strip_prefix("data: ").map(serde_json::from_str::<Value>) {
                Some(Ok(event)) if event["kind"] == "ready" => return,
                Some(Ok(event)) => told.push(event["entry"].clone()),
                // The first may have been cut by what was read before.
                _ => {}
            }
        }
    })
    .await;
    let keys: Vec<_> = told.iter().rev().map(|e| e["key"].as_str().unwrap().to_owned()).collect();
    let whole: Vec<_> = (1..KEYS).rev().map(|n| format!("k/{n:03}")).collect();
    assert_eq!(keys[..KEYS - 1], whole, "each key once, in order");
    let last = told.last().unwrap();
    assert_eq!(last["value"], "new", "read when it was sent, not when it was asked for");
}

#[tokio::test]
async fn a_stream_says_where_it_begins_before_anything_has_happened() {
    use bowline_client::api::{EventQuery, What};
    let temp = tempfile::tempdir().unwrap();
    let (hub, agent) = pair(&temp, Mode::Managed).await;
    put(&hub, 0, "old").await;
    until("the key", async || http(agent.api, "GET", "/api/v1/kv/k/000", "").await.0 == 200).await;
    let query = EventQuery { kinds: Some("kv".into()), ..EventQuery::default() };
    let mut events = client(&agent).events(&query).await.unwrap();
    let ready = soon("the first word", events.next()).await.unwrap().unwrap();
    assert_eq!(ready.what, What::Ready);
    drop(events);
    put(&hub, 1, "new").await;
    // The address of before, and the place that the reader has come to since.
    let (old, new) = ("0000000000000000-0", ready.cursor);
    let mut stream = TcpStream::connect(agent.api).await.unwrap();
    let request = format!(
        "GET /api/v1/events?kinds=kv&since={old} HTTP/1.1\r\nhost: localhost\r\n\
         last-event-id: {new}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut lines = BufReader::new(stream).lines();
    let told = soon("the change", async {
        loop {
            let line = lines.next_line().await.unwrap().unwrap();
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str::<Value>(data).unwrap();
            }
        }
    });
    assert_eq!(told.await["key"], "k/001", "neither a reset nor what was there before");
}
