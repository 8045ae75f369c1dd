//! A collector in the test's own process: takes OTLP over HTTP and keeps what it reads.

use std::collections::BTreeMap;

use bowline_wire::otlp::message::{ExportTraceServiceRequest, KeyValue};
use prost::Message as _;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A span as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Who did it.
    pub(crate) node: String,
    pub(crate) name: String,
    pub(crate) trace: String,
    pub(crate) id: String,
    /// Empty at a root.
    pub(crate) parent: String,
    pub(crate) about: BTreeMap<String, String>,
}

/// All that came so far.
pub(crate) struct Collector {
    pub(crate) endpoint: String,
    seen: watch::Receiver<Vec<Seen>>,
}

impl Collector {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (tell, seen) = watch::channel(vec![]);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let spans = spans_of(stream).await;
                tell.send_modify(|seen| seen.extend(spans));
            }
        });
        Self { endpoint, seen }
    }

    /// Waits until the spans satisfy somebody.
    pub(crate) async fn until(&mut self, enough: impl Fn(&[Seen]) -> bool) -> Vec<Seen> {
        let wait = self.seen.wait_for(|seen| enough(seen));
        let wait = tokio::time::timeout(std::time::Duration::from_secs(60), wait);
        if let Ok(seen) = wait.await {
            return seen.unwrap().clone();
        }
        panic!("not enough spans came: {:#?}", *self.seen.borrow());
    }
}

async fn spans_of(mut stream: TcpStream) -> Vec<Seen> {
    let mut head = vec![];
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
    assert!(head.contains("content-type: application/x-protobuf\r\n"), "{head}");
    let length = head.lines().find_map(|l| l.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.trim().parse().unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    let request = ExportTraceServiceRequest::decode(&*body).unwrap();
    request.resource_spans.into_iter().flat_map(of_node).collect()
}

fn of_node(spans: bowline_wire::otlp::message::ResourceSpans) -> Vec<Seen> {
    let resource = texts(spans.resource.unwrap().attributes);
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let all = spans.scope_spans.into_iter().flat_map(|s| s.spans);
    all.map(|span| Seen {
        node: resource["service.instance.id"].clone(),
        name: span.name,
        trace: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        about: texts(span.attributes),
    })
    .collect()
}

fn texts(pairs: Vec<KeyValue>) -> BTreeMap<String, String> {
    pairs.into_iter().map(|pair| (pair.key, pair.value.unwrap().text)).collect()
}
