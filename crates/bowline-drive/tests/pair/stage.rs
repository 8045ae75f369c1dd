//! What the tests play on: nodes with a store each, a hub that lets everyone in.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bowline_drive::{Decider, Drive, Fold, Handle, LinkNews, Options, start};
use bowline_store::{Sqlite, Store};
use bowline_sync::{Decision, Limits, Open, Sealer};
use bowline_types::{
    Body, Change, Item, Key, NodeId, Now, Proposal, ShelfId, ShelfName, Signature,
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

/// Whatever is asked for is written down.
struct Scribe;

impl Decider for Scribe {
    fn decide(&mut self, _: &NodeId, proposal: &Proposal, _: Now) -> Result<Decision, String> {
        let answer = proposal.ask.clone().unwrap_or_default();
        Ok(Decision { items: vec![put("asked", "for")], answer })
    }
}

pub(crate) struct Running {
    pub(crate) drive: Drive,
    pub(crate) handle: Handle,
    pub(crate) seen: watch::Receiver<(usize, Option<LinkNews>)>,
}

pub(crate) fn run(name: &str, dir: &Path) -> Running {
    run_on(name, Sqlite::open(dir).unwrap())
}

pub(crate) fn run_on(name: &str, store: impl Store + 'static) -> Running {
    let (tell, seen) = watch::channel((0, None));
    let options = Options {
        id: NodeId::new(name).unwrap(),
        limits: Limits::default(),
        gate: Box::new(Open),
        sealer: Box::new(Unsigned),
        folds: vec![Box::new(Counting(tell))],
        decider: Box::new(Scribe),
        on_halt: Box::new(|why| panic!("{why}")),
    };
    let drive = start(options, store).unwrap();
    let handle = drive.handle();
    Running { drive, handle, seen }
}

pub(crate) fn kv() -> ShelfId {
    ShelfId::new(NodeId::hub(), ShelfName::new("kv").unwrap())
}

pub(crate) fn key(k: &str) -> Key {
    Key::new(k).unwrap()
}

pub(crate) fn put(k: &str, v: &str) -> Item {
    Item::put(key(k), Body::new(v.to_owned()))
}

pub(crate) fn serve(hub: &Handle) -> (std::net::SocketAddr, bowline_wire::ServerHandle) {
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

pub(crate) async fn dial(addr: std::net::SocketAddr, agent: &Handle) -> bowline_wire::LinkHandle {
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

pub(crate) async fn until(running: &mut Running, enough: impl Fn(usize) -> bool) {
    let wait = running.seen.wait_for(|seen| enough(seen.0));
    tokio::time::timeout(Duration::from_secs(60), wait).await.unwrap().unwrap();
}
