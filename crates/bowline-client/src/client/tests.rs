//! The client against a small server in this process.

use std::sync::Mutex;

use bowline_resources::Object;
use bytes::Bytes;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::api::{EventQuery, ObjectQuery, What};
use crate::{Watch, WatchItem};

type Answer = Full<Bytes>;
type Seen = Arc<Mutex<Vec<String>>>;

/// Answers by a function of the request's line, headers and body; what was asked is kept.
async fn serve(answer: fn(&str) -> Response<Answer>) -> (String, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Seen::default();
    let kept = seen.clone();
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let kept = kept.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request: Request<Incoming>| {
                    let kept = kept.clone();
                    async move { Ok::<_, std::io::Error>(one(request, &kept, answer).await) }
                });
                let http = hyper::server::conn::http1::Builder::new();
                let _ = http.serve_connection(TokioIo::new(socket), service).await;
            });
        }
    });
    (format!("http://{address}"), seen)
}

async fn one(
    request: Request<Incoming>,
    seen: &Seen,
    answer: fn(&str) -> Response<Answer>,
) -> Response<Answer> {
    let mut line = format!("{} {}", request.method(), request.uri());
    for name in ["authorization", "if-match", "if-none-match", "content-type"] {
        if let Some(value) = request.headers().get(name) {
            line += &format!(" {name}={}", value.to_str().unwrap());
        }
    }
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let asked = format!("{line} {}", String::from_utf8_lossy(&body));
    seen.lock().unwrap().push(asked.trim_end().to_owned());
    answer(&line)
}

fn reply(status: u16, text: &str) -> Response<Answer> {
    Response::builder().status(status).body(Full::new(text.to_owned().into())).unwrap()
}

/// Answers each request with the text that the function gives, as one chunk, and then breaks off
/// before the end of the body.
async fn serve_broken(answer: fn(&str) -> &'static str) -> (String, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Seen::default();
    let kept = seen.clone();
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let mut socket = tokio::io::BufReader::new(socket);
            let (mut head, mut line) = (String::new(), String::new());
            while line != "\r\n" {
                line.clear();
                socket.read_line(&mut line).await.unwrap();
                head.push_str(&line);
            }
            let text = answer(&head);
            kept.lock().unwrap().push(head);
            let start = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
            let answer = format!("{start}{:x}\r\n{text}\r\n", text.len());
            socket.write_all(answer.as_bytes()).await.unwrap();
            socket.shutdown().await.unwrap();
        }
    });
    (format!("http://{address}"), seen)
}

fn client(server: &str) -> Client {
    Client::new(Config { token: Some("t0k".into()), ..Config::new(server) }).unwrap()
}

const VIEW: &str = r#"{"agent":"alpha","key":"core/ConfigMap/n/a","rev":7,"owner":"hub",
    "object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"}}}"#;

#[tokio::test]
async fn an_object_is_put_with_token_and_guard() {
    let (server, seen) = serve(|_| reply(201, VIEW)).await;
    let client = client(&server);
    let object: Object = serde_json::from_str::<crate::api::ObjectView>(VIEW).unwrap().object;
    let written = client.put_object("alpha", &object, Expect::Rev(6)).await.unwrap();
    assert!(written.created);
    assert_eq!(written.value.rev, 7);
    client.put_object("alpha", &object, Expect::Missing).await.unwrap();
    let seen = seen.lock().unwrap();
    assert!(seen[0].starts_with(
        "PUT /api/v1/agents/alpha/objects/core/ConfigMap/n/a authorization=Bearer t0k \
         if-match=\"6\" content-type=application/json {\"apiVersion\""
    ));
    assert!(seen[1].contains("if-none-match=*"));
}

#[tokio::test]
async fn lists_are_followed_to_their_end() {
    let (server, seen) = serve(|line| {
        let next = if line.contains("continue=") { "" } else { r#","continue":"a b""# };
        reply(200, &format!(r#"{{"items":[{VIEW}]{next}}}"#))
    })
    .await;
    let query = ObjectQuery { label_selector: Some("a in (b,c)".into()), ..ObjectQuery::default() };
    assert_eq!(client(&server).all_objects(&query).await.unwrap().len(), 2);
    let seen = seen.lock().unwrap();
    assert!(seen[0].starts_with("GET /api/v1/objects?labelSelector=a%20in%20%28b%2Cc%29"));
    assert!(seen[1].contains("continue=a%20b"));
}

#[tokio::test]
async fn a_refusal_keeps_its_code_and_hint() {
    let (server, _) = serve(|line| match line.contains("/kv/") {
        true => reply(
            412,
            r#"{"type":"x","title":"conflict","status":412,"code":"BL-0412","hint":"read it again","rev":9}"#,
        ),
        false => reply(404, "<html>nothing here"),
    })
    .await;
    let client = client(&server);
    let error = client.kv_put("a/b", Bytes::from_static(b"v"), Some(3)).await.unwrap_err();
    assert!(error.is_conflict() && !error.is_not_found());
    assert_eq!(error.to_string(), "conflict (BL-0412)");
    assert_eq!(error.hint().as_deref(), Some("read it again"));
    assert_eq!(error.problem().unwrap().rev, Some(9));
    let error = client.agent("x").await.unwrap_err();
    assert!(error.is_not_found());
    assert_eq!(error.to_string(), "not found: <html>nothing here");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = client(&server).status().await.unwrap_err();
    assert!(error.is_unreachable());
    // Only an agent speaks plain HTTP, and the doctor could not reach it either.
    let hint = error.hint().unwrap();
    assert!(hint.contains("is the agent running") && !hint.contains("doctor"), "{hint}");
}

#[tokio::test]
async fn the_port_of_agents_is_told_from_the_api() {
    let (server, _) = serve(|_| {
        let answer = Response::builder().header("content-type", "application/grpc");
        answer.body(Full::default()).unwrap()
    })
    .await;
    let error = client(&server).tokens().await.unwrap_err();
    assert!(error.to_string().contains("port for agents"), "{error}");
    assert!(error.hint().is_some());
}

#[tokio::test]
async fn plain_http_to_a_port_with_tls_says_so() {
    let (server, _) = serve_tls().await;
    let error = client(&server.replace("https", "http")).tokens().await.unwrap_err();
    assert!(error.hint().unwrap().contains("use https://"), "{error:?}");
}

#[tokio::test]
async fn an_answer_that_makes_no_sense_is_no_panic() {
    let (server, _) = serve(|_| reply(200, "[1,2")).await;
    assert!(matches!(client(&server).status().await, Err(Error::Answer { .. })));
}

const READY: &str = "id: 5\nevent: ready\ndata: {\"cursor\":\"5\",\"time\":\"2026-01-01T00:00:00Z\",\"kind\":\"ready\"}\n\n";
const NEWS: &str = "id: 6\ndata: {\"cursor\":\"6\",\"time\":\"2026-01-01T00:00:00Z\",\"kind\":\"kv\",\
    \"verb\":\"gone\",\"key\":\"a\"}\n\n";

async fn event(watch: &mut Watch) -> crate::api::Event {
    loop {
        if let WatchItem::Event(event) = watch.next().await.unwrap() {
            return *event;
        }
    }
}

#[tokio::test]
async fn a_watch_goes_on_after_its_last_event() {
    let (server, seen) = serve_broken(|head| match head.contains("since=5") {
        false => READY,
        true => NEWS,
    })
    .await;
    let mut watch = client(&server).watch(EventQuery { initial: true, ..EventQuery::default() });
    assert_eq!(event(&mut watch).await.what, What::Ready);
    assert!(matches!(watch.next().await.unwrap(), WatchItem::Lost(_)));
    assert!(matches!(event(&mut watch).await.what, What::Kv { .. }));
    assert_eq!(watch.cursor(), Some("6"));
    let seen = seen.lock().unwrap();
    assert!(seen[0].starts_with("GET /api/v1/events?initial=true"));
    assert!(seen[1].starts_with("GET /api/v1/events?since=5"), "{}", seen[1]);
}

#[tokio::test]
async fn a_watch_that_is_cut_off_before_the_first_change_goes_on_from_where_it_began() {
    let (server, seen) = serve_broken(|head| match head.contains("since=5") {
        false => READY,
        true => NEWS,
    })
    .await;
    let mut watch = client(&server).watch_now(EventQuery::default()).await.unwrap();
    assert_eq!(event(&mut watch).await.what, What::Ready);
    assert!(matches!(watch.next().await.unwrap(), WatchItem::Lost(_)));
    assert!(matches!(event(&mut watch).await.what, What::Kv { .. }));
    let seen = seen.lock().unwrap();
    assert!(seen[1].starts_with("GET /api/v1/events?since=5"), "{}", seen[1]);
}

const PART: &str = "event: reset\ndata: {\"cursor\":\"\",\"time\":\"2026-01-01T00:00:00Z\",\"kind\":\"reset\"}\n\n";

#[tokio::test]
async fn a_watch_that_is_cut_off_amid_the_present_state_asks_for_it_again() {
    let (server, seen) = serve_broken(|_| PART).await;
    let since = Some("3".to_owned());
    let mut watch = client(&server).watch(EventQuery { since, ..EventQuery::default() });
    assert_eq!(event(&mut watch).await.what, What::Reset);
    assert!(matches!(watch.next().await.unwrap(), WatchItem::Lost(_)));
    assert_eq!(event(&mut watch).await.what, What::Reset);
    let seen = seen.lock().unwrap();
    assert!(seen[1].starts_with("GET /api/v1/events?since=3"), "{}", seen[1]);
}

#[tokio::test]
async fn a_refused_watch_ends() {
    let (server, _) = serve(|_| reply(403, "{\"title\":\"forbidden\",\"code\":\"BL-0403\"}")).await;
    let mut watch = client(&server).watch(EventQuery::default());
    assert!(matches!(watch.next().await, Err(Error::Refused(_))));
}

#[tokio::test]
async fn a_backup_that_breaks_off_is_an_error() {
    let (server, _) = serve(|_| reply(200, "bytes")).await;
    let mut backup = client(&server).backup().await.unwrap();
    assert_eq!(backup.size(), Some(5));
    assert_eq!(backup.next().await.unwrap().unwrap(), "bytes");
    assert!(backup.next().await.unwrap().is_none());
    let (server, _) = serve_broken(|_| "by").await;
    let mut backup = client(&server).backup().await.unwrap();
    let mut pieces = 0;
    let error = loop {
        match backup.next().await {
            Ok(Some(_)) => pieces += 1,
            Ok(None) => panic!("taken for whole after {pieces} pieces"),
            Err(error) => break error,
        }
    };
    assert!(error.is_unreachable());
}

#[test]
fn addresses_that_would_leak_a_token_are_refused() {
    let refused = |server: &str| Client::new(Config::new(server)).unwrap_err().to_string();
    assert!(refused("http://hub.example:8080").contains("--insecure"));
    assert!(refused("https://hub.example:8080").contains("CA certificate"));
    assert!(refused("hub.example").contains("https://"));
    assert!(refused("ftp://hub").contains("https://"));
    for loopback in ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1"] {
        Client::new(Config::new(loopback)).unwrap();
    }
    let ca = Some(b"not a certificate".to_vec());
    assert!(Client::new(Config { ca, ..Config::new("https://a") }).is_err());
}

/// A server with a certificate of its own making; gives the address and the certificate.
async fn serve_tls() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = rustls_pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let Ok(stream) = acceptor.accept(socket).await else { continue };
            let service =
                service_fn(|_| async { Ok::<_, std::io::Error>(reply(200, "{\"items\":[]}")) });
            let http = hyper::server::conn::http1::Builder::new();
            tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
        }
    });
    (format!("https://localhost:{port}"), made.cert.pem())
}

#[tokio::test]
async fn only_the_given_authority_is_trusted() {
    let (server, pem) = serve_tls().await;
    let trusting =
        Client::new(Config { ca: Some(pem.into_bytes()), ..Config::new(&server) }).unwrap();
    assert!(trusting.tokens().await.unwrap().items.is_empty());
    let other =
        rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap().cert.pem();
    let wary =
        Client::new(Config { ca: Some(other.into_bytes()), ..Config::new(&server) }).unwrap();
    let error = wary.tokens().await.unwrap_err();
    assert!(error.is_unreachable());
    assert!(error.hint().unwrap().contains("another CA"), "{error:?}");
}
