//! A small agent: it joins, keeps its shelves, takes what the hub wants, and reports it synced.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bowline_client::api::{HandedOver, Handover};
use bowline_drive::{Decider, Drive, Handle, Options};
use bowline_identity::{
    AgentDir, ClientTls, HeadSigner, JoinToken, NodeKey, TrustBundle, Versions, pem,
};
use bowline_resources::{
    Desired, Health, Mode, Observed, Of, OperationRequest, OperationState, Owner, RosterEntry,
    Sync, desired_shelf, observed_shelf, roster_shelf,
};
use bowline_store::Sqlite;
use bowline_sync::{Decision, Open, Plan, Recovery, Sealer};
use bowline_types::{
    Guard, Interest, Item, NodeId, Now, Prefix, Proposal, ShelfId, Signature, Verdict, Wall,
};
use bowline_wire::{
    AuthRequest, Dialer, DialerOptions, Error, Grant, JoinRequest, Link, RenewRequest, tunnel,
};

use crate::stage::Stage;

pub(crate) fn now() -> Wall {
    Wall(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64)
}

struct Signs(HeadSigner);

impl Sealer for Signs {
    fn sign(&self, message: &[u8]) -> Signature {
        Signature(self.0.sign(message).into())
    }

    fn verify(&self, _: &NodeId, _: &NodeId, _: &[u8], _: &Signature) -> bool {
        true
    }
}

/// Agrees to every operation, and hands over when it is told where its last write is.
struct Agrees(Arc<AtomicU64>);

impl Decider for Agrees {
    fn decide(&mut self, _: &NodeId, p: &Proposal, now: Now) -> Result<Decision, String> {
        let ask = p.ask.as_ref().ok_or("nothing was asked")?;
        if let Ok(Handover { .. }) = serde_json::from_slice(ask) {
            let last = match self.0.load(Ordering::SeqCst) {
                STILL_WRITING => return Err("still writing".into()),
                last => last,
            };
            let answer = serde_json::to_vec(&HandedOver { last }).unwrap();
            return Ok(Decision { items: vec![], answer: answer.into() });
        }
        let request = OperationRequest::decode(ask).map_err(|e| e.to_string())?;
        let state = OperationState::begin(&request, now.wall);
        let answer = serde_json::to_vec(&state).unwrap();
        Ok(Decision { items: vec![], answer: answer.into() })
    }
}

/// An agent that does not hand over yet.
pub(crate) const STILL_WRITING: u64 = u64::MAX;

/// An agent that has joined.
pub(crate) struct Agent {
    pub(crate) name: NodeId,
    pub(crate) dialer: Dialer,
    pub(crate) handle: Handle,
    /// Where it says that its last write is, or that it still writes.
    pub(crate) last: Arc<AtomicU64>,
    drive: Option<Drive>,
}

/// Joins with a token; keys and certificate are kept in `dir`.
pub(crate) async fn join(dir: &std::path::Path, token: &str) -> Result<Grant, Error> {
    let token: JoinToken = token.parse().unwrap();
    let dir = AgentDir::open(dir.join("pki")).unwrap();
    let keys = dir.begin_join().unwrap();
    let tls = ClientTls::join(token.pins.clone()).unwrap();
    let name = token.node.clone().unwrap();
    let credentials = Arc::new(AuthRequest::default());
    let mut options = DialerOptions::new(name, token.hubs[0].clone(), credentials);
    options.tls = Some(tls.config());
    let request = JoinRequest {
        token_id: token.id,
        token_secret: token.secret.into_bytes(),
        csr: pem::request(&keys.node.csr().unwrap()).unwrap(),
        head_key: keys.head.public(),
        agent_version: "test".into(),
    };
    let grant = Dialer::new(options).join(request).await?;
    let trust = TrustBundle::from_pem(&pem::encode_chain(&grant.authorities)).unwrap();
    dir.accept(&keys.node, &pem::encode_chain(&grant.chain), &trust, now()).unwrap();
    Ok(grant)
}

/// Renews the certificate in `dir`, with the agent that has it.
pub(crate) async fn renew(home: &std::path::Path, agent: &Agent, stage: &Stage) {
    let dir = AgentDir::open(home.join("pki")).unwrap();
    let trust = TrustBundle::from_pem(&stage.hub.trust()).unwrap();
    dir.set_trust(&trust).unwrap();
    let key = NodeKey::generate().unwrap();
    let request = RenewRequest {
        csr: pem::request(&key.csr().unwrap()).unwrap(),
        head_key: vec![],
        agent_version: "test".into(),
    };
    let port = stage.hub.addresses.agents.port();
    let grant = dialer(home, port).renew(request).await.unwrap();
    assert_eq!(grant.node, agent.name);
    dir.accept(&key, &pem::encode_chain(&grant.chain), &trust, now()).unwrap();
}

/// A dialer with the certificate that was kept in `dir`.
pub(crate) fn dialer(dir: &std::path::Path, hub: u16) -> Dialer {
    let identity = AgentDir::open(dir.join("pki")).unwrap().identity().unwrap().unwrap();
    let tls = ClientTls::new(Some(&identity.pair), &identity.trust, Versions::Tls13).unwrap();
    let auth = AuthRequest { method: "mtls".into(), ..AuthRequest::default() };
    let hub = format!("localhost:{hub}");
    let mut options = DialerOptions::new(identity.me.node, hub, Arc::new(auth));
    options.tls = Some(tls.config());
    Dialer::new(options)
}

/// `alpha`, joined and connected.
pub(crate) async fn connected(stage: &Stage, home: &std::path::Path, mode: Mode) -> Agent {
    join(home, &stage.join_token("alpha", mode).await).await.unwrap();
    let agent = Agent::start(home, stage.hub.addresses.agents.port());
    agent.connect().await.unwrap();
    agent
}

impl Agent {
    /// Starts a node on what was joined in `dir`.
    pub(crate) fn start(dir: &std::path::Path, hub: u16) -> Self {
        let dialer = dialer(dir, hub);
        let pki = AgentDir::open(dir.join("pki")).unwrap();
        let name = pki.identity().unwrap().unwrap().me.node;
        let last = Arc::new(AtomicU64::new(0));
        let options = Options {
            id: name.clone(),
            limits: Default::default(),
            gate: Box::new(Open),
            sealer: Box::new(Signs(pki.head_signer().unwrap())),
            folds: vec![],
            decider: Box::new(Agrees(last.clone())),
            on_halt: Box::new(|why| panic!("{why}")),
        };
        let store = Sqlite::open(&dir.join("store")).unwrap();
        let drive = bowline_drive::start(options, store).unwrap();
        let handle = drive.handle();
        handle.open(observed_shelf(&name), Plan::new(Recovery::Relist));
        handle.seal(observed_shelf(&name));
        handle.open(desired_shelf(&name, Owner::Agent), Plan::new(Recovery::Ask).control());
        handle.interest(desired_shelf(&name, Owner::Hub), Interest::all());
        handle.interest(kv(), Interest::all());
        let me = Prefix::new(RosterEntry::key_of(&name).as_str()).unwrap();
        handle.interest(roster_shelf(), [me].into_iter().collect());
        Self { name, dialer, handle, last, drive: Some(drive) }
    }

    /// Connects and serves the link, tunnels too, until it ends.
    pub(crate) async fn connect(&self) -> Result<tokio::task::JoinHandle<()>, Error> {
        let mut link: Link = self.dialer.dial().await?;
        let mut tunnels = link.tunnels.take().unwrap();
        let dialer = self.dialer.clone();
        tokio::spawn(async move {
            while let Some(asked) = tunnels.recv().await {
                let tunnel = dialer.open_tunnel(&asked).await.unwrap();
                tokio::spawn(tunnel::echo(tunnel));
            }
        });
        let handle = self.handle.clone();
        Ok(tokio::spawn(async move { handle.attach(link).await }))
    }

    /// What the hub wants of this agent, by key.
    pub(crate) async fn wanted(&self) -> Vec<(String, u64, Desired)> {
        let shelf = desired_shelf(&self.name, Owner::Hub);
        let read = self.handle.read(&shelf).await.unwrap();
        let records = read.map(|r| r.records).unwrap_or_default();
        let one = |r: &bowline_types::Record| {
            let desired = Desired::decode(r.body.as_ref().unwrap()).unwrap();
            (r.key.to_string(), r.rev, desired)
        };
        records.iter().map(one).collect()
    }

    /// Says that everything is as it is wanted, and gone if it is to be gone.
    pub(crate) async fn report_all(&self) {
        for (key, rev, desired) in self.wanted().await {
            let mut observed = Observed::new(Of { uid: desired.uid, rev }, now());
            (observed.sync, observed.health) = (Sync::Synced, Health::Healthy);
            if desired.deleting {
                (observed.gone, observed.health) = (true, Health::Missing);
            }
            let item = Item::put(bowline_types::Key::new(&key).unwrap(), observed.encode());
            self.handle.write(&observed_shelf(&self.name), vec![], vec![item]).await.unwrap();
        }
    }

    /// Asks the hub to write a key.
    pub(crate) async fn propose_kv(&self, key: &str, value: &'static str) -> Verdict {
        self.propose(key, value, vec![]).await
    }

    /// Asks the hub to write a key, if it is at a rev.
    pub(crate) async fn propose_kv_at(&self, key: &str, value: &'static str, rev: u64) -> Verdict {
        let guard = Guard { key: bowline_types::Key::new(key).unwrap(), at: Some(rev) };
        self.propose(key, value, vec![guard]).await
    }

    async fn propose(&self, key: &str, value: &'static str, guards: Vec<Guard>) -> Verdict {
        let key = bowline_types::Key::new(key).unwrap();
        let item = Item::put(key, bowline_types::Body::new(value));
        let patience = Duration::from_secs(60);
        self.handle.propose(&kv(), guards, vec![item], None, patience).await.unwrap()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if let Some(drive) = self.drive.take() {
            drive.stop();
        }
    }
}

pub(crate) fn kv() -> ShelfId {
    "hub/kv".parse().unwrap()
}
