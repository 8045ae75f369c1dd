//! Who this agent is: joining once, renewing in time, and following files that change.

mod join;

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bowline_identity::{
    AgentDir, CertFiles, ClientReload, HeadSigner, JoinToken, NodeKey, TrustBundle, Validity,
    Versions,
};
use bowline_types::NodeId;
use bowline_wire::{AuthRequest, BoxFuture, Credentials, Dialer, DialerOptions, RenewRequest};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tracing::{info, warn};

use crate::clock::wall;
use crate::error::Error;
use crate::options::AgentOptions;
use join::{Way, accept, fits, join, request};

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
    /// Rung when another CA signs than the one that signed the certificate.
    pub(crate) outdated: Notify,
    /// The certificate is new and the hub has not seen it yet.
    unshown: AtomicBool,
    /// Lets the agent in again if the hub does not take its certificate any more.
    spare: Mutex<Option<JoinToken>>,
    way: Way,
    /// Where the hub is.
    pub(crate) hubs: Vec<String>,
}

impl Identity {
    /// Finds out who this agent is, and joins if it is nobody yet.
    pub(crate) async fn open(options: &AgentOptions) -> Result<Self, Error> {
        let path = options.data.join("pki");
        let failed = |source| Error::Identity { path: path.clone(), source };
        let dir = AgentDir::open(&path).map_err(failed)?;
        let mut spare = None;
        if let Some(me) = dir.identity().map_err(failed)? {
            spare = spare_token(options, &me.me.node)?;
        } else {
            let token: JoinToken = options.join.as_deref().ok_or(Error::NotJoined)?.parse()?;
            fits(&token, options.name.as_ref())?;
            // Kept beside the identity, so that the next start needs neither token nor address; and
            // before it, so that no crash leaves an agent that has joined and does not know where.
            remember(&options.data, &token.hubs);
            let patience = options.join_patience;
            join(&dir, &token, &Way::of(options), options.name.as_ref(), patience).await?;
        }
        let me = dir.identity().map_err(failed)?.ok_or(Error::NotJoined)?;
        let name = me.me.node.clone();
        if let Some(wanted) = options.name.clone().filter(|wanted| *wanted != name) {
            return Err(Error::OtherName { wanted, found: name });
        }
        let files = CertFiles::One(dir.node_file());
        let tls = ClientReload::open(files, dir.trust_file(), Versions::Tls13)?;
        let mut hubs = match options.hubs.is_empty() {
            true => recall(&options.data),
            false => options.hubs.clone(),
        };
        if hubs.is_empty()
            && let Some(token) = &options.join
        {
            hubs = token.parse::<JoinToken>()?.hubs;
        }
        Ok(Self {
            name,
            dir,
            tls,
            validity: Mutex::new(me.pair.validity()),
            outdated: Notify::new(),
            unshown: AtomicBool::new(false),
            spare: Mutex::new(spare),
            way: Way::of(options),
            hubs,
        })
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
        self.tls.reload().map_err(|e| e.to_string())?;
        if self.is_outdated() {
            self.outdated.notify_one();
        }
        Ok(())
    }

    /// Whether the CA that signs now, which is the first of the bundle, is another than the one
    /// that signed the certificate: that one will not be trusted for long.
    pub(crate) fn is_outdated(&self) -> bool {
        let Ok(Some(me)) = self.dir.identity() else { return false };
        me.pair.chain().get(1).is_some_and(|issuer| me.trust.certs().first() != Some(issuer))
    }

    /// Lets the hub see a certificate that is new, so that it knows that it is in use. A link that
    /// is up goes on with the one it came up with.
    pub(crate) async fn show_if_new(&self, dialer: &Dialer) {
        if self.unshown.load(Ordering::Acquire) && dialer.ping().await.is_ok() {
            self.unshown.store(false, Ordering::Release);
        }
    }

    /// Gets a fresh certificate, if two thirds of this one's life are over or another CA signs now.
    /// Whether it did.
    pub(crate) async fn renew_if_due(&self, dialer: &Dialer) -> Result<bool, String> {
        if !self.validity().due(wall()) && !self.is_outdated() {
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
        self.unshown.store(true, Ordering::Release);
        info!(until = %bowline_resources::rfc3339(self.validity().not_after), "certificate renewed");
        Ok(true)
    }

    /// Joins anew with the token that was given, now that the hub does not take the certificate.
    /// Everything else stays: the data, the name, the key for heads. Whether it did.
    pub(crate) async fn rejoin(&self) -> bool {
        let Some(token) = self.spare.lock().take() else { return false };
        info!("the hub does not take the certificate: joining anew with the token that was given");
        match join(&self.dir, &token, &self.way, Some(&self.name), Duration::ZERO).await {
            Ok(()) => {}
            Err(Error::Join(error @ bowline_wire::Error::Refused(_))) => {
                warn!(error = error.chain(), "the join token that was given does not help");
                return false;
            }
            Err(error) => {
                warn!(%error, "joining anew failed; it is tried again");
                *self.spare.lock() = Some(token);
                return false;
            }
        }
        if let Err(error) = self.tls.reload() {
            warn!(%error, "the new certificate cannot be used");
        }
        self.note_validity();
        true
    }
}

/// Whether an error means that the hub and this agent do not take each other's certificates.
pub(crate) fn is_about_certificates(error: &bowline_wire::Error) -> bool {
    match error {
        // A line that breaks in the handshake says nothing of them, and must not cost a token.
        bowline_wire::Error::Tls { source, .. } => source.kind() == std::io::ErrorKind::InvalidData,
        // Revoked, or not in the roster.
        bowline_wire::Error::Refused(refusal) => {
            ["BL-0302", "BL-0303"].iter().any(|code| refusal.message.starts_with(code))
        }
        _ => false,
    }
}

/// The token that was given to an agent that has joined before. It is not needed as long as the
/// hub takes the certificate.
fn spare_token(options: &AgentOptions, me: &NodeId) -> Result<Option<JoinToken>, Error> {
    let Some(text) = &options.join else { return Ok(None) };
    let Ok(token) = text.parse::<JoinToken>() else {
        warn!("the join token cannot be read; it is not needed, since this agent has joined");
        return Ok(None);
    };
    fits(&token, Some(me))?;
    Ok(Some(token))
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

fn remember(data: &Path, hubs: &[String]) {
    let written = std::fs::File::create(data.join("pki").join(HUBS)).and_then(|mut file| {
        file.write_all(hubs.join("\n").as_bytes())?;
        file.sync_all()
    });
    if let Err(error) = written {
        warn!(%error, "the hub's address could not be kept: give it at the next start");
    }
}

fn recall(data: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(data.join("pki").join(HUBS)).unwrap_or_default();
    text.lines().filter(|l| !l.is_empty()).map(str::to_owned).collect()
}
