//! What the tests play on: certificates, a hub that lets everyone in, an agent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bowline_sync::{Feed, Frame, Target};
use bowline_types::{
    Body, Cursor, Have, Head, InterestId, Key, NodeId, Place, Record, ShelfId, ShelfName, Term,
};
use bowline_wire::*;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// A CA, and what both ends need of it.
pub(crate) struct Pki {
    pub(crate) server: Arc<rustls::ServerConfig>,
    pub(crate) client: Arc<rustls::ClientConfig>,
    /// Trusts the CA but has no certificate.
    pub(crate) stranger: Arc<rustls::ClientConfig>,
    /// Trusts the CA and shows a certificate of another one.
    pub(crate) foreign: Arc<rustls::ClientConfig>,
    /// Trusts the CA and shows a certificate that has expired.
    pub(crate) expired: Arc<rustls::ClientConfig>,
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut ca = CertificateParams::new(vec![]).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap()
}

fn leaf(
    ca: &CertifiedIssuer<'static, KeyPair>,
    params: CertificateParams,
) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let key = KeyPair::generate().unwrap();
    let cert: CertificateDer<'static> = params.signed_by(&key, ca).unwrap().into();
    (vec![cert], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
}

impl Pki {
    pub(crate) fn new() -> Self {
        let (ca, other) = (authority(), authority());
        let leaf = |name: &str| leaf(&ca, CertificateParams::new(vec![name.to_owned()]).unwrap());
        let mut roots = rustls::RootCertStore::empty();
        roots.add(ca.der().clone()).unwrap();
        let roots = Arc::new(roots);
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider())
            .allow_unauthenticated()
            .build()
            .unwrap();
        let (chain, key) = leaf("localhost");
        let server = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .unwrap();
        let client = || {
            rustls::ClientConfig::builder_with_provider(provider())
                .with_protocol_versions(&[&rustls::version::TLS13])
                .unwrap()
                .with_root_certificates(roots.clone())
        };
        let (chain, key) = leaf("a1");
        let a1 = || CertificateParams::new(vec!["a1".to_owned()]).unwrap();
        let mut past = a1();
        past.not_after = rcgen::date_time_ymd(2001, 1, 1);
        let with = |(chain, key)| Arc::new(client().with_client_auth_cert(chain, key).unwrap());
        Self {
            foreign: with(self::leaf(&other, a1())),
            expired: with(self::leaf(&ca, past)),
            server: Arc::new(server),
            client: Arc::new(client().with_client_auth_cert(chain, key).unwrap()),
            stranger: Arc::new(client().with_no_client_auth()),
        }
    }
}

/// Lets in whoever shows a certificate; everyone is called by the token that they were given.
pub(crate) struct Door;

impl Admission for Door {
    fn authenticate<'a>(
        &'a self,
        peer: &'a Peer,
        call: &'a Call,
        request: AuthRequest,
    ) -> BoxFuture<'a, Result<AuthResponse, Refusal>> {
        Box::pin(async move {
            if peer.certificate.is_none() {
                return Err(Refusal::unauthenticated("no certificate"));
            }
            assert_eq!(call.protocol, Some(PROTOCOL));
            let access_token = request.credentials.get("name").cloned().unwrap_or_default();
            Ok(AuthResponse { access_token, ..Default::default() })
        })
    }

    fn refresh<'a>(
        &'a self,
        _: &'a Peer,
        _: String,
    ) -> BoxFuture<'a, Result<AuthResponse, Refusal>> {
        Box::pin(async { Err(Refusal::unauthenticated("no refresh")) })
    }

    fn subscribe<'a>(
        &'a self,
        _: &'a Peer,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<NodeId, Refusal>> {
        Box::pin(async move {
            let token = call.token.clone().unwrap_or_default();
            NodeId::new(&token).map_err(|_| Refusal::unauthenticated("bad token"))
        })
    }

    fn join<'a>(
        &'a self,
        _: &'a Peer,
        request: JoinRequest,
    ) -> BoxFuture<'a, Result<Grant, Refusal>> {
        Box::pin(async move {
            if request.token_secret != b"secret" {
                return Err(Refusal::denied("bad token"));
            }
            let node =
                NodeId::new(&request.token_id).map_err(|e| Refusal::denied(e.to_string()))?;
            Ok(Grant { chain: vec![request.csr], authorities: vec![vec![1]], node })
        })
    }

    fn renew<'a>(
        &'a self,
        peer: &'a Peer,
        request: RenewRequest,
    ) -> BoxFuture<'a, Result<Grant, Refusal>> {
        let seen = peer.certificate.is_some();
        Box::pin(async move {
            assert!(seen, "the wire refuses those without a certificate itself");
            Ok(Grant { chain: vec![request.csr], authorities: vec![], node: node("a1") })
        })
    }

    fn version(&self) -> String {
        "test-hub-1".into()
    }
}

/// Lets everyone in, certificate or not.
pub(crate) struct OpenDoor;

static DOOR: Door = Door;

impl Admission for OpenDoor {
    fn authenticate<'a>(
        &'a self,
        _: &'a Peer,
        _: &'a Call,
        _: AuthRequest,
    ) -> BoxFuture<'a, Result<AuthResponse, Refusal>> {
        let access_token = "a1".into();
        Box::pin(async { Ok(AuthResponse { access_token, ..Default::default() }) })
    }

    fn refresh<'a>(
        &'a self,
        peer: &'a Peer,
        token: String,
    ) -> BoxFuture<'a, Result<AuthResponse, Refusal>> {
        DOOR.refresh(peer, token)
    }

    fn subscribe<'a>(
        &'a self,
        peer: &'a Peer,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<NodeId, Refusal>> {
        DOOR.subscribe(peer, call)
    }

    fn join<'a>(
        &'a self,
        peer: &'a Peer,
        request: JoinRequest,
    ) -> BoxFuture<'a, Result<Grant, Refusal>> {
        DOOR.join(peer, request)
    }

    fn renew<'a>(
        &'a self,
        peer: &'a Peer,
        request: RenewRequest,
    ) -> BoxFuture<'a, Result<Grant, Refusal>> {
        DOOR.renew(peer, request)
    }

    fn version(&self) -> String {
        DOOR.version()
    }
}

pub(crate) fn node(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

/// A hub on a port of its own.
pub(crate) fn hub(pki: &Pki) -> Server {
    hub_with(ServerOptions::new(Arc::new(Door)).tls(pki.server.clone()))
}

pub(crate) fn hub_with(options: ServerOptions) -> Server {
    Server::bind("127.0.0.1:0".parse().unwrap(), options).unwrap()
}

/// How agent `a1` dials a hub on this port.
pub(crate) fn to(port: u16, pki: &Pki) -> DialerOptions {
    let auth = AuthRequest {
        method: "mtls".into(),
        credentials: BTreeMap::from([("name".into(), "a1".into())]),
        mode: "managed".into(),
        version: "1".into(),
        namespace: "argocd".into(),
    };
    let mut options = DialerOptions::new(node("a1"), format!("localhost:{port}"), Arc::new(auth));
    options.tls = Some(pki.client.clone());
    options.patience = Duration::from_secs(30);
    options
}

/// A link, seen from both ends: the hub's, the agent's.
pub(crate) async fn pair(server: &mut Server, dialer: &Dialer) -> (Link, Link) {
    let (agent, hub) = tokio::join!(dialer.dial(), taken(server));
    (hub, agent.unwrap())
}

pub(crate) async fn taken(server: &mut Server) -> Link {
    match server.links.recv().await.unwrap() {
        Incoming::Link(link) => link,
        other => panic!("not a link: {other:?}"),
    }
}

pub(crate) fn shelf(name: &str) -> ShelfId {
    ShelfId::new(node("a1"), ShelfName::new(name).unwrap())
}

pub(crate) fn which(name: &str) -> Frame {
    Frame::Which { shelf: shelf(name) }
}

pub(crate) fn feed(number: u64, bodies: usize, size: usize) -> Frame {
    let at = Cursor { term: Term(7), rev: number + 1 };
    let record = |n: usize| Record {
        key: Key::new(&format!("apps/Deployment/default/web-{n}")).unwrap(),
        born: 1,
        rev: number + 1,
        body: Some(Body::new(vec![(n % 251) as u8; size])),
    };
    Frame::Feed(Box::new(Feed {
        head: Head::blank(shelf("observed")),
        number,
        target: Target::Main,
        was: Have::default(),
        interest: InterestId(9),
        to: Place { cursor: at, seen: at, part: None },
        floor: 0,
        base: Cursor::default(),
        records: (0..bodies).map(record).collect(),
    }))
}
