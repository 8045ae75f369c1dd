//! A server on loopback that a test plays by hand: it hears each request and says what comes back.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::access::Surroundings;
use crate::dial::Proxies;
use crate::pace::Pace;
use crate::{Access, Cluster, Heard, Kind, Options, Watch};

/// So long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(60);

/// Any connection.
trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// The server.
pub(crate) struct Fake {
    pub(crate) port: u16,
    /// Files of the test.
    pub(crate) folder: tempfile::TempDir,
    asked: mpsc::UnboundedReceiver<Asked>,
    _tasks: JoinSet<()>,
}

/// A request that waits for its answer.
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: HashMap<String, String>,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
    /// The certificate that the client showed.
    pub(crate) certificate: Option<Vec<u8>>,
    io: Box<dyn Io>,
}

/// An answer that goes on.
pub(crate) struct Stream {
    io: Box<dyn Io>,
}

impl Fake {
    pub(crate) async fn start() -> Self {
        Self::start_with(None).await
    }

    pub(crate) async fn start_tls(config: rustls::ServerConfig) -> Self {
        Self::start_with(Some(TlsAcceptor::from(Arc::new(config)))).await
    }

    async fn start_with(tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, asked) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                connections.spawn(serve(socket, tls.clone(), tell.clone()));
            }
        });
        Self { port, folder: tempfile::tempdir().unwrap(), asked, _tasks: tasks }
    }

    /// The next request.
    pub(crate) async fn next(&mut self) -> Asked {
        let next = tokio::time::timeout(PATIENCE, self.asked.recv()).await;
        next.expect("a request in time").expect("the server runs")
    }

    /// The next request, which must be a list, or a watch.
    pub(crate) async fn next_list(&mut self) -> Asked {
        let asked = self.next().await;
        assert!(asked.method == "GET" && !asked.query.contains_key("watch"), "{}", asked.path);
        asked
    }

    pub(crate) async fn next_watch(&mut self) -> Asked {
        let asked = self.next().await;
        assert_eq!(asked.query.get("watch").map(String::as_str), Some("true"), "{}", asked.path);
        asked
    }

    /// No request waits.
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.asked.try_recv().is_err()
    }

    pub(crate) fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// A kubeconfig with this user.
    pub(crate) fn kubeconfig(&self, user: &Value) -> Access {
        let server = format!("http://127.0.0.1:{}", self.port);
        self.kubeconfig_to(&json!({"server": server}), user)
    }

    pub(crate) fn kubeconfig_to(&self, cluster: &Value, user: &Value) -> Access {
        let file = json!({
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
        });
        let path = self.file("kubeconfig", &file.to_string());
        Access::Kubeconfig { path: Some(path), context: None }
    }

    /// A cluster at this server.
    pub(crate) async fn cluster(&self, pace: Pace) -> Cluster {
        let access = self.kubeconfig(&json!({"token": "secret"}));
        self.cluster_with(Options { access, ..Options::default() }, pace).await
    }

    pub(crate) async fn cluster_with(&self, options: Options, pace: Pace) -> Cluster {
        Cluster::open(options, nowhere(), pace).await.unwrap()
    }
}

async fn serve(socket: TcpStream, tls: Option<TlsAcceptor>, tell: mpsc::UnboundedSender<Asked>) {
    let (mut io, certificate): (Box<dyn Io>, _) = match tls {
        None => (Box::new(socket), None),
        Some(tls) => {
            let Ok(stream) = tls.accept(socket).await else { return };
            let shown = stream.get_ref().1.peer_certificates();
            let shown = shown.and_then(|c| c.first()).map(|c| c.to_vec());
            (Box::new(stream), shown)
        }
    };
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = io.read_u8().await else { return };
        head.push(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.lines();
    let mut first = lines.next().unwrap().split(' ');
    let (method, target) = (first.next().unwrap().to_owned(), first.next().unwrap());
    let headers: HashMap<_, _> = lines
        .filter_map(|l| l.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length = headers.get("content-length").map_or(0, |l| l.parse().unwrap());
    let mut body = vec![0; length];
    io.read_exact(&mut body).await.unwrap();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query = query.split('&').filter_map(|p| p.split_once('='));
    let query = query.map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
    let path = path.to_owned();
    let _ = tell.send(Asked { method, path, query, headers, body, certificate, io });
}

impl Asked {
    /// Answers with JSON and closes the connection.
    pub(crate) async fn answer(self, code: u16, body: &Value) {
        self.answer_with(code, "", &body.to_string()).await;
    }

    /// The same with more headers, each ended by a line break.
    pub(crate) async fn answer_with(mut self, code: u16, headers: &str, body: &str) {
        let length = body.len();
        let text = format!(
            "HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nConnection: close\r\n\
             Content-Length: {length}\r\n{headers}\r\n{body}"
        );
        self.io.write_all(text.as_bytes()).await.unwrap();
        self.io.shutdown().await.unwrap();
    }

    /// Answers a list.
    pub(crate) async fn list(self, version: &str, next: Option<&str>, items: &[Value]) {
        let metadata = json!({"resourceVersion": version, "continue": next.unwrap_or_default()});
        self.answer(200, &json!({"kind": "List", "metadata": metadata, "items": items})).await;
    }

    /// Begins an answer that goes on.
    pub(crate) async fn stream(mut self) -> Stream {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
                    Transfer-Encoding: chunked\r\n\r\n";
        self.io.write_all(head.as_bytes()).await.unwrap();
        Stream { io: self.io }
    }

    pub(crate) fn token(&self) -> &str {
        self.headers.get("authorization").map_or("", String::as_str)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl Stream {
    /// Sends an event of a watch.
    pub(crate) async fn event(&mut self, sort: &str, object: &Value) {
        self.raw(&format!("{}\n", json!({"type": sort, "object": object}))).await;
    }

    /// Sends these very bytes.
    pub(crate) async fn raw(&mut self, text: &str) {
        let chunk = format!("{:x}\r\n{text}\r\n", text.len());
        self.io.write_all(chunk.as_bytes()).await.unwrap();
    }

    /// Ends it as agreed.
    pub(crate) async fn end(mut self) {
        self.io.write_all(b"0\r\n\r\n").await.unwrap();
        self.io.shutdown().await.unwrap();
    }

    /// Breaks it off.
    pub(crate) async fn cut(mut self) {
        self.io.shutdown().await.unwrap();
    }

    /// Waits until the client hangs up.
    pub(crate) async fn abandoned(mut self) {
        let mut byte = [0];
        let read = tokio::time::timeout(PATIENCE, self.io.read(&mut byte)).await;
        assert!(matches!(read.expect("the client hangs up in time"), Ok(0) | Err(_)));
    }
}

/// A process with nothing around it.
pub(crate) fn nowhere() -> Surroundings {
    let mount = "/nowhere".into();
    Surroundings { kubeconfig: false, service: None, mount, proxies: Proxies::default() }
}

/// Short pauses; limits that a test does not reach.
pub(crate) fn quick() -> Pace {
    Pace {
        settled: Duration::ZERO,
        first_pause: Duration::from_millis(1),
        longest_pause: Duration::from_millis(20),
        renewal: Duration::ZERO,
        ..Pace::default()
    }
}

pub(crate) fn config_maps() -> Kind {
    Kind {
        group: String::new(),
        version: "v1".into(),
        kind: "ConfigMap".into(),
        plural: "configmaps".into(),
        namespaced: true,
        status: false,
    }
}

/// A ConfigMap as it is inside a list: without kind.
pub(crate) fn config_map(name: &str, uid: &str, version: &str) -> Value {
    json!({"metadata": {
        "name": name, "namespace": "web", "uid": uid, "resourceVersion": version,
        "managedFields": [{"manager": "x"}],
    }})
}

/// What a watch tells next, in short.
pub(crate) async fn hear(watch: &mut Watch) -> String {
    let heard = tokio::time::timeout(PATIENCE, watch.next()).await.expect("to hear in time");
    match heard {
        Heard::Put(object) => {
            assert!(!object.metadata.rest.contains_key("managedFields"));
            assert_eq!((object.api_version.as_str(), object.kind.as_str()), ("v1", "ConfigMap"));
            let version = crate::list::resource_version(&object);
            format!("put {} {version}", object.metadata.name)
        }
        Heard::Gone { key, uid } => format!("gone {key} {uid}"),
        Heard::Missed { key, uid } => format!("missed {key} {uid}"),
        Heard::Listed => "listed".into(),
        Heard::Trouble(error) => format!("trouble {error}"),
    }
}
