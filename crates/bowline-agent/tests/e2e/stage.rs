//! What the tests play on: a minimal hub, and agents that join it.

mod door;
mod view;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bowline_agent::{Agent, AgentOptions};
use bowline_client::{Client, Config};
use bowline_drive::{Drive, Handle, NoDecider, Options};
use bowline_identity::ca::SERVER_LIFE;
use bowline_identity::{CaSet, CertFiles, ClientAuth, HubDir, ServerReload, Versions};
use bowline_resources::{
    Desired, Mode, Object, ObjectKey, Owner, RosterEntry, desired_shelf, observed_shelf,
    roster_shelf,
};
use bowline_store::Sqlite;
use bowline_sync::{Limits, Open, Plan, Recovery, Sealer};
use bowline_types::{Body, Interest, Item, Key, NodeId, Rev, ShelfId, Signature, Wall};
use bowline_wire::{Incoming, ProxyRules, Server, ServerHandle, ServerOptions};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

pub(crate) use door::Door;
pub(crate) use view::View;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn now() -> Wall {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Wall(u64::try_from(since.as_millis()).unwrap())
}

pub(crate) fn a1() -> NodeId {
    NodeId::new("a1").unwrap()
}

pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    let result = tokio::time::timeout(PATIENCE, future).await;
    result.unwrap_or_else(|_| panic!("{what} did not happen"))
}

/// Waits until a look at an agent shows what it should.
pub(crate) async fn until(what: &str, mut look: impl AsyncFnMut() -> bool) {
    soon(what, async {
        while !look().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// Waits until the agent has heard its mode.
pub(crate) async fn settled(agent: &Agent, mode: Mode) {
    let said = format!("mode {mode}\"");
    until("the mode", async || {
        http(agent.api, "GET", "/api/v1/doctor", "").await.1.contains(&said)
    })
    .await;
}

/// A hub: a node, a server, a door.
pub(crate) struct Hub {
    pub(crate) handle: Handle,
    pub(crate) view: Arc<View>,
    pub(crate) door: Arc<Door>,
    pub(crate) addr: SocketAddr,
    root: PathBuf,
    server: ServerHandle,
    drive: Drive,
    links: tokio::task::JoinHandle<()>,
    dir: HubDir,
    tls: ServerReload,
}

struct Believes;

impl Sealer for Believes {
    fn sign(&self, _: &[u8]) -> Signature {
        Signature::default()
    }
    fn verify(&self, _: &NodeId, _: &NodeId, _: &[u8], _: &Signature) -> bool {
        true
    }
}

pub(crate) fn kv() -> ShelfId {
    "hub/kv".parse().unwrap()
}

impl Hub {
    pub(crate) async fn start(root: &Path) -> Self {
        Self::start_at(root, "127.0.0.1:0".parse().unwrap()).await
    }

    /// The same hub again, at the same address.
    pub(crate) async fn restart(root: &Path, addr: SocketAddr) -> Self {
        Self::start_at(root, addr).await
    }

    async fn start_at(root: &Path, addr: SocketAddr) -> Self {
        let dir = HubDir::open(root.join("pki")).unwrap();
        let set = dir.init("test", now()).unwrap();
        dir.ensure_server(&set, &["localhost".into()], SERVER_LIFE, now()).unwrap();
        let cert = CertFiles::One(dir.server_file());
        let tls = ServerReload::open(cert, dir.trust_file(), ClientAuth::Optional, Versions::Tls13)
            .unwrap();
        let view = Arc::new(View::default());
        let options = Options {
            id: NodeId::hub(),
            limits: Limits::default(),
            gate: Box::new(Open),
            sealer: Box::new(Believes),
            folds: vec![Box::new(view::Follow(view.clone()))],
            decider: Box::new(NoDecider),
            on_halt: Box::new(|why| panic!("{why}")),
        };
        let drive =
            bowline_drive::start(options, Sqlite::open(&root.join("store")).unwrap()).unwrap();
        let handle = drive.handle();
        for shelf in [roster_shelf(), kv(), desired_shelf(&a1(), Owner::Hub)] {
            handle.open(shelf, Plan::new(Recovery::Ask));
        }
        for shelf in [observed_shelf(&a1()), desired_shelf(&a1(), Owner::Agent)] {
            handle.interest(shelf, Interest::all());
        }
        let door = Arc::new(Door::new(&dir, set));
        let options = ServerOptions::new(door.clone()).tls(tls.tls().config());
        let mut server = Server::bind(addr, options).unwrap();
        let (addr, stop) = (server.local_addr, server.handle());
        let node = handle.clone();
        let links = tokio::spawn(async move {
            // All of it: a server stops when it is dropped.
            let server = &mut server;
            while let Some(incoming) = server.links.recv().await {
                if let Incoming::Link(link) = incoming {
                    let node = node.clone();
                    tokio::spawn(async move { node.attach(link).await });
                }
            }
        });
        Self { handle, view, door, addr, root: root.into(), server: stop, drive, links, dir, tls }
    }

    /// Goes away: no port, no process.
    pub(crate) async fn stop(self) -> (PathBuf, SocketAddr) {
        self.server.drain(Duration::from_millis(200)).await;
        self.links.abort();
        let _ended = self.links.await;
        tokio::task::spawn_blocking(move || self.drive.stop()).await.unwrap();
        (self.root, self.addr)
    }

    /// Takes a step of a CA rotation, and tells the agent.
    pub(crate) async fn rotate(&self, step: impl FnOnce(&mut CaSet)) {
        let bundle = {
            let mut set = self.door.set.lock();
            step(&mut set);
            self.dir.save_ca(&set).unwrap();
            self.dir.ensure_server(&set, &["localhost".into()], SERVER_LIFE, now()).unwrap();
            set.bundle().to_pem()
        };
        self.tls.reload().unwrap();
        let item = Item::put(Key::new("trust").unwrap(), Body::new(bundle.into_bytes()));
        self.handle.write(&roster_shelf(), vec![], vec![item]).await.unwrap();
    }

    /// Cuts the agent's link for this reason.
    pub(crate) fn cut(&self, why: &str) {
        assert_eq!(self.server.cut(&a1(), why), 1);
    }

    pub(crate) fn token(&self) -> String {
        self.door.token(&format!("localhost:{}", self.addr.port()))
    }

    pub(crate) async fn enlist(&self, entry: &RosterEntry) -> Rev {
        let item = Item::put(entry.key(), entry.encode());
        self.handle.write(&roster_shelf(), vec![], vec![item]).await.unwrap().rev
    }

    pub(crate) async fn mode(&self, mode: Mode) -> RosterEntry {
        let entry = RosterEntry::new(a1(), mode, Wall(1));
        self.enlist(&entry).await;
        entry
    }

    pub(crate) async fn want(&self, desired: &Desired) -> Rev {
        let item = Item::put(desired.object.key().record_key(), desired.encode());
        let shelf = desired_shelf(&a1(), Owner::Hub);
        self.handle.write(&shelf, vec![], vec![item]).await.unwrap().rev
    }

    pub(crate) async fn remove(&self, key: &ObjectKey) {
        let shelf = desired_shelf(&a1(), Owner::Hub);
        let item = Item::remove(key.record_key());
        self.handle.write(&shelf, vec![], vec![item]).await.unwrap();
    }
}

/// An agent's folder, and how to start it.
pub(crate) fn options(root: &Path, hub: Option<&Hub>) -> AgentOptions {
    let mut options = AgentOptions::new(root);
    options.proxy = ProxyRules::none();
    options.join = hub.map(Hub::token);
    options.patience = Duration::from_secs(30);
    options.join_patience = Duration::from_secs(30);
    options
}

/// A hub and an agent that has joined it.
pub(crate) async fn pair(temp: &tempfile::TempDir, mode: Mode) -> (Hub, Agent) {
    let hub = Hub::start(&temp.path().join("hub")).await;
    hub.mode(mode).await;
    let agent = start(temp, Some(&hub)).await;
    soon("a link", hub.view.link()).await;
    (hub, agent)
}

pub(crate) async fn start(temp: &tempfile::TempDir, hub: Option<&Hub>) -> Agent {
    Agent::start(options(&temp.path().join("a1"), hub)).await.unwrap()
}

pub(crate) fn client(agent: &Agent) -> Client {
    Client::new(Config::new(format!("http://{}", agent.api))).unwrap()
}

pub(crate) fn object(name: &str, spec: &str) -> Object {
    Object::from_value(json!({
        "apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {
            "name": name, "namespace": "web",
            "annotations": {"simulated.bowline.io/delay": "20ms"},
        },
        "spec": {"say": spec},
    }))
    .unwrap()
}

pub(crate) fn desired(name: &str, spec: &str) -> Desired {
    Desired::new(&object(name, spec), format!("uid-{name}"), Wall(1))
}

pub(crate) fn key(name: &str) -> ObjectKey {
    object(name, "").key()
}

/// Plain HTTP, for what the client has no method for: the status and the body.
pub(crate) async fn http(addr: SocketAddr, method: &str, path: &str, body: &str) -> (u16, String) {
    http_from(addr, method, path, body, &addr.to_string()).await
}

pub(crate) async fn http_from(
    addr: SocketAddr,
    method: &str,
    path: &str,
    body: &str,
    host: &str,
) -> (u16, String) {
    let mut stream = tokio::net::TcpStream::connect(addr).await.unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1.to_owned();
    (status, body)
}

pub(crate) fn live(name: &str) -> String {
    format!("/agent/live/{}", key(name))
}

/// What the embedded cluster has of an object, or nothing.
pub(crate) async fn live_spec(agent: &Agent, name: &str) -> Option<String> {
    let (status, body) = http(agent.api, "GET", &live(name), "").await;
    let value: Value = serde_json::from_str(&body).unwrap();
    (status == 200).then(|| value["spec"]["say"].as_str().unwrap().to_owned())
}
