//! Two nodes over a real connection: what is written at one is read at the other, proposals come
//! back, and a reconnect with nothing to say costs two frames under a kilobyte.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bowline_drive::{Drive, Fold, Handle, LinkNews, NoDecider, Options, start};
use bowline_store::Sqlite;
use bowline_sync::{Limits, Open, Plan, Recovery, Sealer};
use bowline_types::{
    Body, Change, Guard, Interest, Item, Key, NodeId, Now, ShelfId, ShelfName, Signature, Verdict,
};
use bowline_wire::{
    Admission, AuthRequest, AuthResponse, BoxFuture, Call, Dialer, DialerOptions, Grant, Incoming,
    JoinRequest, Peer, Refusal, RenewRequest, Server, ServerOptions,
};
use tokio::sync::watch;

struct Unsigned;

impl Sealer for Unsigned {
    fn sign(&self, _: &[u8]) -> Signature {
        Signature("signed".into())
    }
    fn verify(&self, _: &NodeId, _: &NodeId, _: &[u8], _: &Signature) -> bool {
        true
    }
}

/// Lets everyone in under the name that they say.
struct Door;

impl Admission for Door {
    fn authenticate<'a>(
        &'a self,
        _: &'a Peer,
        _: &'a Call,
        request: AuthRequest,
    ) -> BoxFuture<'a, Result<AuthResponse, Refusal>> {
        let access_token = request.credentials["name"].clone();
        Box::pin(async { Ok(AuthResponse { access_token, ..Default::default() }) })
    }
    fn refresh<'a>(
        &'a self,
        _: &'a Peer,
        _: String,
    ) -> BoxFuture<'a, Result<AuthResponse, Refusal>> {
        Box::pin(async { Err(Refusal::denied("no")) })
    }
    fn subscribe<'a>(
        &'a self,
        _: &'a Peer,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<NodeId, Refusal>> {
        let name = call.token.clone().unwrap_or_default();
        Box::pin(async move { Ok(NodeId::new(&name).unwrap()) })
    }
    fn join<'a>(&'a self, _: &'a Peer, _: JoinRequest) -> BoxFuture<'a, Result<Grant, Refusal>> {
        Box::pin(async { Err(Refusal::denied("no")) })
    }
    fn renew<'a>(&'a self, _: &'a Peer, _: RenewRequest) -> BoxFuture<'a, Result<Grant, Refusal>> {
        Box::pin(async { Err(Refusal::denied("no")) })
    }
    fn version(&self) -> String {
        "test".into()
    }
}

/// Tells how many changes and links there have been.
struct Counting(watch::Sender<(usize, Option<LinkNews>)>);

impl Fold for Counting {
    fn changed(&mut self, _: &ShelfId, changes: &[Change], _: Now) {
        self.0.send_modify(|seen| seen.0 += changes.len());
    }
    fn link(&mut self, news: &LinkNews, _: Now) {
        self.0.send_modify(|seen| seen.1 = Some(news.clone()));
    }
}

struct Running {
    drive: Drive,
    handle: Handle,
    seen: watch::Receiver<(usize, Option<LinkNews>)>,
}

fn run(name: &str, dir: &Path) -> Running {
    let (tell, seen) = watch::channel((0, None));
    let options = Options {
        id: NodeId::new(name).unwrap(),
        limits: Limits::default(),
        gate: Box::new(Open),
        sealer: Box::new(Unsigned),
        folds: vec![Box::new(Counting(tell))],
        decider: Box::new(NoDecider),
        on_halt: Box::new(|why| panic!("{why}")),
    };
    let drive = start(options, Sqlite::open(dir).unwrap()).unwrap();
    let handle = drive.handle();
    Running { drive, handle, seen }
}

fn kv() -> ShelfId {
    ShelfId::new(NodeId::hub(), ShelfName::new("kv").unwrap())
}

fn key(k: &str) -> Key {
    Key::new(k).unwrap()
}

fn put(k: &str, v: &str) -> Item {
    Item::put(key(k), Body::new(v.to_owned()))
}

fn serve(hub: &Handle) -> (std::net::SocketAddr, bowline_wire::ServerHandle) {
    let options = ServerOptions::new(Arc::new(Door));
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), options).unwrap();
    let (addr, handle) = (server.local_addr, server.handle());
    let hub = hub.clone();
    tokio::spawn(async move {
        let mut server = server; // all of it: dropped, it stops listening
        while let Some(Incoming::Link(link)) = server.links.recv().await {
            let hub = hub.clone();
            tokio::spawn(async move { hub.attach(link).await });
        }
    });
    (addr, handle)
}

async fn dial(addr: std::net::SocketAddr, agent: &Handle) -> bowline_wire::LinkHandle {
    let auth = AuthRequest {
        credentials: [("name".to_owned(), agent.id().to_string())].into(),
        ..AuthRequest::default()
    };
    let options = DialerOptions::new(agent.id().clone(), addr.to_string(), Arc::new(auth));
    let link = Dialer::new(options).dial().await.unwrap();
    let handle = link.handle.clone();
    let agent = agent.clone();
    tokio::spawn(async move { agent.attach(link).await });
    handle
}

async fn until(running: &mut Running, enough: impl Fn(usize) -> bool) {
    let wait = running.seen.wait_for(|seen| enough(seen.0));
    tokio::time::timeout(Duration::from_secs(60), wait).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_at_one_is_read_at_the_other_and_both_survive_a_restart() {
    let (hub_dir, agent_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let hub = run("hub", hub_dir.path());
    hub.handle.open(kv(), Plan::new(Recovery::Ask));
    let mut agent = run("a1", agent_dir.path());
    agent.handle.interest(kv(), Interest::all());
    hub.handle.write(&kv(), vec![], vec![put("a/x", "1")]).await.unwrap();
    let (addr, _server) = serve(&hub.handle);
    let link = dial(addr, &agent.handle).await;
    until(&mut agent, |n| n >= 1).await;

    // The agent writes through the owner, and reads what it wrote.
    let patience = Duration::from_secs(60);
    let guards = vec![Guard { key: key("a/y"), at: None }];
    let items = vec![put("a/y", "2")];
    let verdict = agent.handle.propose(&kv(), guards.clone(), items.clone(), None, patience).await;
    assert!(matches!(verdict, Ok(Verdict::Taken { .. })), "{verdict:?}");
    let read = agent.handle.read(&kv()).await.unwrap().unwrap();
    assert_eq!(read.records.len(), 2);
    let again = agent.handle.propose(&kv(), guards, items, None, patience).await.unwrap();
    assert!(matches!(again, Verdict::Refused { .. }), "it is there by now: {again:?}");
    link.close();
    agent.drive.stop();
    hub.drive.stop();

    let hub = run("hub", hub_dir.path());
    hub.handle.open(kv(), Plan::new(Recovery::Ask));
    let agent = run("a1", agent_dir.path());
    assert_eq!(agent.handle.read(&kv()).await.unwrap().unwrap().records.len(), 2);
    assert_eq!(hub.handle.read(&kv()).await.unwrap().unwrap().records.len(), 2);
    agent.drive.stop();
    hub.drive.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quiet_reconnect_is_two_frames_under_a_kilobyte() {
    let (hub_dir, agent_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let hub = run("hub", hub_dir.path());
    hub.handle.open(kv(), Plan::new(Recovery::Ask));
    for n in 0..100 {
        let items = (0..100).map(|m| put(&format!("apps/{n}/{m}"), "x")).collect();
        hub.handle.write(&kv(), vec![], items).await.unwrap();
    }
    let mut agent = run("a1", agent_dir.path());
    agent.handle.interest(kv(), Interest::all());
    let (addr, _server) = serve(&hub.handle);
    let link = dial(addr, &agent.handle).await;
    until(&mut agent, |n| n >= 10_000).await;
    link.close();
    let gone = agent.seen.wait_for(|s| matches!(s.1, Some(LinkNews::Down { .. })));
    tokio::time::timeout(Duration::from_secs(60), gone).await.unwrap().unwrap();

    // A change after the quiet part shows that both have heard each other.
    let _link = dial(addr, &agent.handle).await;
    let hub_handle = hub.handle.clone();
    let seen = agent.seen.clone();
    let counters = loop {
        let news = seen.borrow().1.clone();
        if let Some(LinkNews::Up { counters, .. }) = news {
            break counters;
        }
        tokio::task::yield_now().await;
    };
    while counters.received().0 < 1 {
        tokio::task::yield_now().await;
    }
    // Let the hub handle our hello too: it answers a read only after it.
    while hub_handle.report().await.unwrap().links.iter().all(|l| !l.greeted) {
        tokio::task::yield_now().await;
    }
    let (sent, received) = (counters.sent(), counters.received());
    assert_eq!((sent.0, received.0), (1, 1), "one hello each way");
    assert!(sent.1 + received.1 < 1024, "{sent:?} {received:?}");
    agent.drive.stop();
    hub.drive.stop();
}
