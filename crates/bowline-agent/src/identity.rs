//! Who this agent is: joining once, renewing in time, and following files that change.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline_identity::{
    AgentDir, CertFiles, ClientReload, ClientTls, HeadSigner, JoinToken, NodeKey, TrustBundle,
    Validity, Versions, pem,
};
use bowline_types::{NodeId, Wall};
use bowline_wire::{
    AuthRequest, Backoff, BoxFuture, Credentials, Dialer, DialerOptions, Grant, JoinRequest,
    RenewRequest,
};
use parking_lot::Mutex;
use tracing::{info, warn};

use crate::clock::wall;
use crate::error::Error;
use crate::options::AgentOptions;

/// What this agent says of itself.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Where the hub was, according to the token that let this agent in.
const HUBS: &str = "hubs";

/// An agent that has joined.
pub(crate) struct Identity {
    pub(crate) name: NodeId,
    dir: AgentDir,
    pub(crate) tls: ClientReload,
    validity: Mutex<Validity>,
    /// Where the hub is.
    pub(crate) hubs: Vec<String>,
}

impl Identity {
    /// Finds out who this agent is, and joins if it is nobody yet.
    pub(crate) async fn open(options: &AgentOptions) -> Result<Self, Error> {
        let path = options.data.join("pki");
        let failed = |source| Error::Identity { path: path.clone(), source };
        let dir = AgentDir::open(&path).map_err(failed)?;
        if dir.identity().map_err(failed)?.is_none() {
            let token: JoinToken = options.join.as_deref().ok_or(Error::NotJoined)?.parse()?;
            join(&dir, &token, options).await?;
            // Kept beside the identity, so that the next start needs neither token nor address.
            remember(&options.data, &token.hubs);
        }
        let me = dir.identity().map_err(failed)?.ok_or(Error::NotJoined)?;
        let name = me.me.node.clone();
        if let Some(wanted) = options.name.clone().filter(|wanted| *wanted != name) {
            return Err(Error::OtherName { wanted, found: name });
        }
        let files = CertFiles::One(dir.node_file());
        let tls = ClientReload::open(files, dir.trust_file(), Versions::Tls13)?;
        let hubs = match options.hubs.is_empty() {
            true => recall(&options.data),
            false => options.hubs.clone(),
        };
        Ok(Self { name, dir, tls, validity: Mutex::new(me.pair.validity()), hubs })
    }

    /// The key that signs the heads of this agent's shelves.
    pub(crate) fn head_signer(&self, options: &AgentOptions) -> Result<HeadSigner, Error> {
        let path = options.data.join("pki");
        self.dir.head_signer().map_err(|source| Error::Identity { path, source })
    }

    /// When the certificate holds.
    pub(crate) fn validity(&self) -> Validity {
        *self.validity.lock()
    }

    /// Secret files that others can read.
    pub(crate) fn exposed(&self) -> Vec<std::path::PathBuf> {
        self.dir.exposed()
    }

    /// How to reach the hub.
    pub(crate) fn dialer(
        &self,
        options: &AgentOptions,
        mode: Arc<dyn Fn() -> String + Send + Sync>,
    ) -> Dialer {
        let credentials = Arc::new(ByCertificate { mode });
        let mut dial = DialerOptions::new(self.name.clone(), "", credentials);
        dial.hubs.clone_from(&self.hubs);
        dial.tls = Some(self.tls.tls().config());
        dial.proxy = options.proxy.clone();
        dial.preference = options.transport;
        dial.limits = options.limits.clone();
        dial.keepalive = options.keepalive;
        dial.version = VERSION.into();
        Dialer::new(dial)
    }

    /// Reads certificate and trust again, if they have changed.
    pub(crate) fn reload(&self) -> Result<bool, Error> {
        let changed = self.tls.reload_if_changed()?;
        if changed {
            self.note_validity();
        }
        Ok(changed)
    }

    fn note_validity(&self) {
        if let Ok(Some(me)) = self.dir.identity() {
            *self.validity.lock() = me.pair.validity();
        }
    }

    /// Trusts these authorities from now on, as the hub says over the link.
    pub(crate) fn trust(&self, pem: &str) -> Result<(), String> {
        let bundle = TrustBundle::from_pem(pem).map_err(|e| e.to_string())?;
        if self.dir.identity().is_ok_and(|me| me.is_some_and(|me| me.trust == bundle)) {
            return Ok(());
        }
        self.dir.set_trust(&bundle).map_err(|e| e.to_string())?;
        self.tls.reload().map_err(|e| e.to_string())
    }

    /// Gets a fresh certificate, if two thirds of this one's life are over. Whether it did.
    pub(crate) async fn renew_if_due(&self, dialer: &Dialer) -> Result<bool, String> {
        if !self.validity().due(wall()) {
            return Ok(false);
        }
        let key = NodeKey::generate().map_err(|e| e.to_string())?;
        let csr = request(&key).map_err(|e| e.to_string())?;
        let head = self.dir.head_signer().map_err(|e| e.to_string())?;
        let asked = RenewRequest { csr, head_key: head.public(), agent_version: VERSION.into() };
        let grant = dialer.renew(asked).await.map_err(|e| e.chain())?;
        let granted = accept(&self.dir, &key, &grant, wall()).map_err(|e| e.to_string())?;
        if granted != self.name {
            return Err(format!("the hub renewed us as {granted}"));
        }
        self.tls.reload().map_err(|e| e.to_string())?;
        self.note_validity();
        info!(until = %bowline_resources::rfc3339(self.validity().not_after), "certificate renewed");
        Ok(true)
    }
}

/// Shows its certificate and nothing else; says in which mode it believes itself to be.
struct ByCertificate {
    mode: Arc<dyn Fn() -> String + Send + Sync>,
}

impl Credentials for ByCertificate {
    fn auth(&self) -> BoxFuture<'_, Result<AuthRequest, bowline_wire::Error>> {
        let auth = AuthRequest {
            method: "mtls".into(),
            mode: (self.mode)(),
            version: VERSION.into(),
            ..AuthRequest::default()
        };
        Box::pin(async move { Ok(auth) })
    }
}

/// Turns a token into an identity. A hub that is away is tried again for a while; one that says no
/// is not.
async fn join(dir: &AgentDir, token: &JoinToken, options: &AgentOptions) -> Result<(), Error> {
    let path = options.data.join("pki");
    let keys = dir.begin_join().map_err(|source| Error::Identity { path, source })?;
    let nobody = token.node.clone().or_else(|| options.name.clone());
    let nobody = nobody.unwrap_or_else(|| NodeId::new("joining").expect("a fixed, valid name"));
    let credentials = Arc::new(AuthRequest::default());
    let mut dial = DialerOptions::new(nobody, "", credentials);
    let own = !options.hubs.is_empty();
    dial.hubs.clone_from(if own { &options.hubs } else { &token.hubs });
    dial.tls = Some(ClientTls::join(token.pins.clone())?.config());
    dial.proxy = options.proxy.clone();
    dial.preference = options.transport;
    dial.version = VERSION.into();
    let dialer = Dialer::new(dial);
    let (began, mut backoff) = (Instant::now(), Backoff::default());
    let grant = loop {
        let asked = JoinRequest {
            token_id: token.id.clone(),
            token_secret: token.secret.clone().into_bytes(),
            csr: request(&keys.node)?,
            head_key: keys.head.public(),
            agent_version: VERSION.into(),
        };
        match dialer.join(asked).await {
            Ok(grant) => break grant,
            Err(error) => {
                let refused = matches!(error, bowline_wire::Error::Refused(_));
                if refused || began.elapsed() >= options.join_patience {
                    return Err(Error::Join(error));
                }
                warn!(error = error.chain(), "not joined yet");
                tokio::time::sleep(backoff.next_wait().max(Duration::from_millis(50))).await;
            }
        }
    };
    let name = accept(dir, &keys.node, &grant, wall())?;
    info!(%name, "joined the fleet");
    Ok(())
}

/// Keeps a grant, if all of it fits; says for whom it is.
fn accept(dir: &AgentDir, key: &NodeKey, grant: &Grant, now: Wall) -> Result<NodeId, Error> {
    let bad = |e: &dyn std::fmt::Display| Error::Grant(e.to_string());
    let trust =
        TrustBundle::from_pem(&pem::encode_chain(&grant.authorities)).map_err(|e| bad(&e))?;
    let chain = pem::encode_chain(&grant.chain);
    let identity = dir.accept(key, &chain, &trust, now).map_err(|e| bad(&e))?;
    Ok(identity.me.node)
}

/// A request for a certificate, as it travels.
fn request(key: &NodeKey) -> Result<Vec<u8>, Error> {
    pem::request(&key.csr()?).map_err(|e| Error::Grant(e.to_string()))
}

fn remember(data: &Path, hubs: &[String]) {
    if let Err(error) = std::fs::write(data.join("pki").join(HUBS), hubs.join("\n")) {
        warn!(%error, "the hub's address could not be kept: give it at the next start");
    }
}

fn recall(data: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(data.join("pki").join(HUBS)).unwrap_or_default();
    text.lines().filter(|l| !l.is_empty()).map(str::to_owned).collect()
}
