//! The hub's certificates in use: what both ports show, whom they trust, and how that changes.

mod tend;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use bowline_client::api::{CaView, PkiView, ServerCertificate, Time};
use bowline_identity::ca::{NODE_LIFE, SERVER_LIFE, request_key};
use bowline_identity::cert::{common_name, host_names};
use bowline_identity::session::SESSION_LIFE;
use bowline_identity::{
    Ca, CaSet, CertFiles, ClientAuth, Fingerprint, HeadSigner, HubDir, PairReload, PeerCert, Phase,
    Revocations, ServerReload, TokenError, TokenSigner, TrustBundle, Validity, Versions,
    peer_identity, pem,
};
use bowline_types::{NodeId, Wall};
use parking_lot::{Mutex, RwLock};

use crate::access::NextStep;
use crate::options::Error;
use crate::outside::Outside;

/// The hub's certificates, keys and trust.
pub(crate) struct Pki {
    dir: HubDir,
    set: Mutex<CaSet>,
    agents: ServerReload,
    api: ServerReload,
    /// What others maintain, and people are shown at the API.
    shown: Option<PairReload>,
    signer: RwLock<TokenSigner>,
    sans: Vec<String>,
    /// Milliseconds of the last certificate: serial numbers of two revocations must not meet.
    last: AtomicU64,
}

/// A certificate that was just signed.
pub(crate) struct Signed {
    pub(crate) chain: Vec<Vec<u8>>,
    pub(crate) peer: PeerCert,
}

impl Pki {
    /// Opens the folder; on the first start the CA is made, or taken from `ca`. With `foreign`,
    /// certificates of agents that are not ours count as far as their chain goes.
    pub(crate) fn open(
        root: std::path::PathBuf,
        ca: Option<&str>,
        sans: &[String],
        foreign: bool,
        now: Wall,
    ) -> Result<Self, Error> {
        let dir = HubDir::open(root)?;
        let set = match ca {
            Some(text) => dir.init_with(Ca::from_pem(text)?)?,
            None => dir.init("bowline", now)?,
        };
        dir.ensure_server(&set, sans, SERVER_LIFE, now)?;
        let port = |auth, versions| {
            let cert = CertFiles::One(dir.server_file());
            ServerReload::open(cert, dir.trust_file(), auth, versions)
        };
        let auth = if foreign { ClientAuth::Foreign } else { ClientAuth::Optional };
        let agents = port(auth, Versions::Tls13)?;
        let api = port(ClientAuth::None, Versions::Tls12And13)?;
        let signer = RwLock::new(dir.token_signer()?);
        let (set, sans) = (Mutex::new(set), sans.to_vec());
        let (shown, last) = (None, AtomicU64::new(0));
        Ok(Self { dir, set, agents, api, shown, signer, sans, last })
    }

    /// Sets what agents that are not ours see and may show.
    pub(crate) fn set_outside(&self, outside: &Outside) -> Result<(), Error> {
        let (pair, trust) = outside.read()?;
        let set = self.agents.tls().set_foreign(pair.as_ref(), trust.as_ref());
        Ok(set.map_err(bowline_identity::reload::Error::from)?)
    }

    pub(crate) fn head_signer(&self) -> Result<HeadSigner, Error> {
        Ok(self.dir.head_signer()?)
    }

    pub(crate) fn agents_tls(&self) -> std::sync::Arc<rustls::ServerConfig> {
        self.agents.tls().config()
    }

    pub(crate) fn api_tls(&self) -> std::sync::Arc<rustls::ServerConfig> {
        self.api.tls().config()
    }

    /// Secret files that others can read.
    pub(crate) fn exposed(&self) -> Vec<std::path::PathBuf> {
        self.dir.exposed()
    }

    pub(crate) fn bundle(&self) -> TrustBundle {
        self.set.lock().bundle()
    }

    /// The pin of the trusted CA that signed a certificate.
    pub(crate) fn issuer_of(&self, der: &[u8]) -> Option<Fingerprint> {
        self.set.lock().bundle().issuer_of(der)
    }

    /// The pin of the CA that signs.
    pub(crate) fn signing(&self) -> Fingerprint {
        self.set.lock().signing().fingerprint()
    }

    /// The CA of a certificate of which nothing is known: the one before the last promotion, so
    /// that nobody is locked out for lack of knowledge.
    pub(crate) fn presumed(&self) -> Fingerprint {
        let set = self.set.lock();
        let old = match set.phase() {
            Phase::Switched { old } => old.pins().ok().and_then(|pins| pins.first().copied()),
            Phase::Steady | Phase::Announced { .. } => None,
        };
        old.unwrap_or_else(|| set.signing().fingerprint())
    }

    pub(crate) fn pins(&self) -> Vec<Fingerprint> {
        self.set.lock().pins()
    }

    /// Refuses these certificates from the next handshake on.
    pub(crate) fn set_revocations(&self, revoked: Revocations) {
        self.agents.tls().set_revocations(revoked);
    }

    /// Whether a certificate that was good at its handshake has been revoked since.
    pub(crate) fn refuses(&self, peer: &PeerCert) -> bool {
        self.agents.tls().refuses(peer)
    }

    /// A session token for a node with this certificate.
    pub(crate) fn mint(&self, peer: &PeerCert, mode: &str, now: Wall) -> Option<String> {
        let signer = self.signer.read();
        let minted = signer.mint(&peer.node, Some(mode), peer.thumbprint, SESSION_LIFE, now);
        minted.inspect_err(|error| tracing::error!(%error, "minting a session token")).ok()
    }

    /// The node that a session token speaks for.
    pub(crate) fn verify(
        &self,
        token: &str,
        peer: &PeerCert,
        now: Wall,
    ) -> Result<NodeId, TokenError> {
        self.signer.read().verify(token, peer.thumbprint, now).map(|claims| claims.sub)
    }

    /// The key that a request (DER) is for.
    pub(crate) fn request_key(csr: &[u8]) -> Result<Fingerprint, bowline_identity::ca::Error> {
        request_key(&pem::encode_request(csr))
    }

    /// Signs a request (DER) for `node`.
    pub(crate) fn sign(
        &self,
        csr: &[u8],
        node: &NodeId,
        now: Wall,
    ) -> Result<Signed, bowline_identity::ca::Error> {
        // Serial numbers tell by their millisecond whether a certificate is older than a revocation.
        let last = self.last.fetch_max(now.0, Ordering::Relaxed);
        let now = Wall(now.0.max(last));
        let text = self.set.lock().sign_csr(&pem::encode_request(csr), node, NODE_LIFE, now)?;
        let chain = pem::certificates(&text).unwrap_or_default();
        let chain: Vec<_> = chain.iter().map(|der| der.to_vec()).collect();
        let peer = peer_identity(chain.first().map_or(&[][..], |leaf| leaf))?;
        Ok(Signed { chain, peer })
    }

    /// Reads the files again, and renews the hub's own certificate if it is due.
    pub(crate) fn reload(&self, now: Wall) -> Result<(), Error> {
        let mut set = self.set.lock();
        if let Some(read) = self.dir.ca()? {
            *set = read;
        }
        *self.signer.write() = self.dir.token_signer()?;
        self.show(&set, now)?;
        // Last: what others maintain must not keep the hub from its own.
        match &self.shown {
            Some(shown) => self.show_others(&shown.load().map_err(Error::ApiCertificate)?),
            None => Ok(()),
        }
    }

    fn show(&self, set: &CaSet, now: Wall) -> Result<(), Error> {
        self.dir.ensure_server(set, &self.sans, SERVER_LIFE, now)?;
        self.agents.reload()?;
        Ok(self.api.reload()?)
    }

    /// Takes a step of a rotation; nothing changes unless it is on disk.
    pub(crate) fn step(
        &self,
        now: Wall,
        step: impl FnOnce(&mut CaSet) -> Result<(), bowline_identity::ca_set::Error>,
    ) -> Result<(), Error> {
        let mut set = self.set.lock();
        step(&mut set)?;
        if let Err(error) = self.dir.save_ca(&set) {
            // What is on disk counts.
            if let Ok(Some(read)) = self.dir.ca() {
                *set = read;
            }
            return Err(error.into());
        }
        self.show(&set, now)
    }

    /// Where a rotation stands.
    pub(crate) fn phase(&self) -> &'static str {
        match self.set.lock().phase() {
            Phase::Steady => "steady",
            Phase::Announced { .. } => "announced",
            Phase::Switched { .. } => "switched",
        }
    }

    /// The step that a rotation takes next; none: there is no rotation.
    pub(crate) fn next_step(&self) -> Option<NextStep> {
        match self.set.lock().phase() {
            Phase::Steady => None,
            Phase::Announced { .. } => Some(NextStep::Promote),
            Phase::Switched { .. } => Some(NextStep::Retire),
        }
    }

    /// What the API shows; `agents` says how many certificates count, by the CA that signed them.
    pub(crate) fn view(&self, agents: &BTreeMap<Fingerprint, u64>) -> Result<PkiView, Error> {
        let set = self.set.lock();
        let signing = set.signing().cert_der().clone();
        let bundle = set.bundle();
        let pins = bundle.pins().map_err(bowline_identity::tls::Error::from);
        let pins = pins.map_err(bowline_identity::reload::Error::from)?;
        let ca = |(der, pin): (&rustls::pki_types::CertificateDer<'static>, &Fingerprint)| {
            let validity = Validity::of(der).map_err(bowline_identity::ca::Error::from)?;
            Ok::<_, Error>(CaView {
                fingerprint: pin.to_string(),
                subject: common_name(der).map_err(bowline_identity::ca::Error::from)?,
                not_before: Time(validity.not_before),
                not_after: Time(validity.not_after),
                signing: *der == signing,
                agents: agents.get(pin).copied().unwrap_or(0),
            })
        };
        let authorities = bundle.certs().iter().zip(&pins).map(ca).collect::<Result<_, _>>()?;
        let pair = CertFiles::One(self.dir.server_file()).load()?;
        let hub = ServerCertificate {
            serial: Fingerprint::of(pair.leaf()).to_string(),
            names: host_names(pair.leaf()).map_err(bowline_identity::ca::Error::from)?,
            not_after: Time(pair.validity().not_after),
        };
        Ok(PkiView { authorities, hub, bundle: bundle.to_pem() })
    }

    /// When the hub's own certificate ends, and when the CA does.
    pub(crate) fn ends(&self) -> Option<(Wall, Wall)> {
        let pair = CertFiles::One(self.dir.server_file()).load().ok()?;
        Some((pair.validity().not_after, self.set.lock().signing().validity().not_after))
    }
}
