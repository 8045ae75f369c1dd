//! The hub under test, in a process of its own.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use bowline_drive::NoDecider;
use bowline_identity::{ClientAuth, HeadSigner, HubDir, ServerTls, Versions, peer_identity};
use bowline_resources::{Owner, RosterEntry, desired_shelf, observed_shelf, roster_shelf};
use bowline_store::Sqlite;
use bowline_sync::{Open, Plan, Recovery, Sealer};
use bowline_types::{Interest, NodeId, ShelfId, ShelfName, Signature};
use bowline_wire::*;

use crate::child::ready;
use crate::flag;
use crate::seed::{identity, now};

/// `hub --data DIR --port PORT`: serves until it is killed.
pub(crate) async fn serve(args: &[String]) -> Result<()> {
    let data = PathBuf::from(flag(args, "--data")?);
    let port: u16 = flag(args, "--port")?.parse()?;
    let dir = HubDir::open(identity(&data))?;
    let ca = dir.ca()?.context("no CA")?;
    let pair = dir.ensure_server(
        &ca,
        &["127.0.0.1".to_owned()],
        bowline_identity::ca::SERVER_LIFE,
        now(),
    )?;
    let head = Arc::new(parking_lot::Mutex::new(vec![]));
    let options = bowline_drive::Options {
        id: NodeId::hub(),
        limits: bowline_sync::Limits::default(),
        gate: Box::new(Open),
        sealer: Box::new(Own(dir.head_signer()?, head.clone())),
        folds: vec![],
        decider: Box::new(NoDecider),
        on_halt: Box::new(|_| std::process::abort()),
    };
    let drive = bowline_drive::start(options, Sqlite::open(&data.join("store"))?)?;
    let handle = drive.handle();
    handle.open(roster_shelf(), Plan::new(Recovery::Ask).control());
    let kv = ShelfId::new(NodeId::hub(), ShelfName::new("kv")?);
    handle.open(kv, Plan::new(Recovery::Ask));
    let roster = handle.read(&roster_shelf()).await?.context("no roster")?;
    for record in roster.records {
        let Some(body) = &record.body else { continue };
        let entry = RosterEntry::decode(body)?;
        *head.lock() = entry.head_key.clone();
        handle.open(desired_shelf(&entry.name, Owner::Hub), Plan::new(Recovery::Ask).control());
        handle.interest(observed_shelf(&entry.name), Interest::all());
    }
    let tls = ServerTls::new(&pair, &ca.bundle(), ClientAuth::Required, Versions::Tls13)?;
    let options = ServerOptions::new(Arc::new(Door)).tls(tls.config());
    let mut server = Server::bind(format!("127.0.0.1:{port}").parse()?, options)?;
    ready(&[("addr", server.local_addr.to_string())]);
    while let Some(incoming) = server.links.recv().await {
        if let Incoming::Link(link) = incoming {
            let handle = handle.clone();
            tokio::spawn(async move { handle.attach(link).await });
        }
    }
    Ok(())
}

struct Own(HeadSigner, Arc<parking_lot::Mutex<Vec<u8>>>);

impl Sealer for Own {
    fn sign(&self, message: &[u8]) -> Signature {
        Signature(self.0.sign(message).into())
    }
    fn verify(&self, _: &NodeId, _: &NodeId, message: &[u8], signature: &Signature) -> bool {
        HeadSigner::verify(&self.1.lock(), message, &signature.0)
    }
}

struct Door;

impl Admission for Door {
    fn authenticate<'a>(
        &'a self,
        peer: &'a Peer,
        _: &'a Call,
        _: AuthRequest,
    ) -> BoxFuture<'a, Result<AuthResponse, Refusal>> {
        Box::pin(async move {
            let bad = || Refusal::unauthenticated("who?");
            let cert = peer.certificate.as_ref().ok_or_else(bad)?;
            let cert = peer_identity(cert).map_err(|_| bad())?;
            Ok(AuthResponse { access_token: cert.node.to_string(), ..Default::default() })
        })
    }
    fn refresh<'a>(
        &'a self,
        _: &'a Peer,
        _: String,
    ) -> BoxFuture<'a, Result<AuthResponse, Refusal>> {
        Box::pin(async { Err(Refusal::unauthenticated("no")) })
    }
    fn subscribe<'a>(
        &'a self,
        _: &'a Peer,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<NodeId, Refusal>> {
        Box::pin(async move {
            NodeId::new(&call.token.clone().unwrap_or_default())
                .map_err(|_| Refusal::unauthenticated("who?"))
        })
    }
    fn join<'a>(&'a self, _: &'a Peer, _: JoinRequest) -> BoxFuture<'a, Result<Grant, Refusal>> {
        Box::pin(async { Err(Refusal::unauthenticated("no")) })
    }
    fn renew<'a>(&'a self, _: &'a Peer, _: RenewRequest) -> BoxFuture<'a, Result<Grant, Refusal>> {
        Box::pin(async { Err(Refusal::unauthenticated("no")) })
    }
    fn version(&self) -> String {
        "bench".into()
    }
}
