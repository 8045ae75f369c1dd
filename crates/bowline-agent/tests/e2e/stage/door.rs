//! Who may come in at the test's hub.

use std::time::Duration;

use bowline_identity::ca::NODE_LIFE;
use bowline_identity::session::SESSION_LIFE;
use bowline_identity::{CaSet, HubDir, JoinRecord, JoinToken, TokenSigner, ca, peer_identity};
use bowline_types::Wall;
use bowline_wire::{
    Admission, AuthRequest, AuthResponse, BoxFuture, Call, Grant, JoinRequest, Peer, Refusal,
    RenewRequest,
};
use parking_lot::Mutex;

use super::{a1, now};

/// Lets `a1` in by its token, then by its certificate.
pub(crate) struct Door {
    pub(crate) set: Mutex<CaSet>,
    signer: TokenSigner,
    record: Mutex<Option<JoinRecord>>,
    /// How long the next certificate lasts.
    pub(crate) life: Mutex<Duration>,
    /// How many were renewed.
    pub(crate) renewals: tokio::sync::watch::Sender<usize>,
    /// Certificates that were issued before then are refused.
    pub(crate) revoked: Mutex<Option<Wall>>,
    /// The certificate that was last shown.
    pub(crate) shown: Mutex<Vec<u8>>,
}

impl Door {
    pub(super) fn new(dir: &HubDir, set: CaSet) -> Self {
        let signer = dir.token_signer().unwrap();
        let (record, life) = (Mutex::default(), Mutex::new(NODE_LIFE));
        let (revoked, shown, set) = (Mutex::default(), Mutex::default(), Mutex::new(set));
        let renewals = tokio::sync::watch::Sender::new(0);
        Self { set, signer, record, life, renewals, revoked, shown }
    }

    pub(super) fn token(&self, hub: &str) -> String {
        let expires = Wall(now().0 + 3_600_000);
        let minted = JoinToken::mint(vec![hub.into()], self.set.lock().pins(), Some(a1()), expires);
        let (token, record) = minted.unwrap();
        *self.record.lock() = Some(record);
        token.to_string()
    }

    fn sign(&self, csr: &[u8]) -> Grant {
        let csr = pem(csr);
        let life = std::mem::replace(&mut *self.life.lock(), NODE_LIFE);
        let set = self.set.lock();
        let chain = ders(&set.sign_csr(&csr, &a1(), life, now()).unwrap());
        let authorities = set.bundle().certs().iter().map(|c| c.to_vec()).collect();
        Grant { chain, authorities, node: a1() }
    }
}

fn ders(text: &str) -> Vec<Vec<u8>> {
    use rustls_pki_types::CertificateDer;
    use rustls_pki_types::pem::PemObject as _;
    CertificateDer::pem_slice_iter(text.as_bytes()).map(|c| c.unwrap().to_vec()).collect()
}

fn pem(der: &[u8]) -> String {
    use base64::Engine as _;
    let body = base64::engine::general_purpose::STANDARD.encode(der);
    format!("-----BEGIN CERTIFICATE REQUEST-----\n{body}\n-----END CERTIFICATE REQUEST-----\n")
}

fn named(peer: &Peer) -> Result<bowline_identity::PeerCert, Refusal> {
    let certificate = peer.certificate.as_ref();
    let certificate = certificate.ok_or_else(|| Refusal::unauthenticated("no certificate"))?;
    peer_identity(certificate).map_err(|e| Refusal::unauthenticated(e.to_string()))
}

impl Admission for Door {
    fn authenticate<'a>(
        &'a self,
        peer: &'a Peer,
        _: &'a Call,
        _: AuthRequest,
    ) -> BoxFuture<'a, Result<AuthResponse, Refusal>> {
        Box::pin(async move {
            let cert = named(peer)?;
            if self.revoked.lock().is_some_and(|at| cert.issued <= at) {
                return Err(Refusal::denied("BL-0302: revoked"));
            }
            *self.shown.lock() = peer.certificate.as_ref().unwrap().to_vec();
            let token = self.signer.mint(&cert.node, None, cert.thumbprint, SESSION_LIFE, now());
            Ok(AuthResponse { access_token: token.unwrap(), ..AuthResponse::default() })
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
        peer: &'a Peer,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<bowline_types::NodeId, Refusal>> {
        Box::pin(async move {
            let cert = named(peer)?;
            let token = call.token.as_deref().unwrap_or_default();
            let claims = self.signer.verify(token, cert.thumbprint, now());
            claims.map(|c| c.sub).map_err(|e| Refusal::unauthenticated(e.to_string()))
        })
    }

    fn join<'a>(
        &'a self,
        _: &'a Peer,
        request: JoinRequest,
    ) -> BoxFuture<'a, Result<Grant, Refusal>> {
        Box::pin(async move {
            let key = ca::request_key(&pem(&request.csr)).unwrap();
            let secret = String::from_utf8(request.token_secret).unwrap();
            let mut record = self.record.lock();
            let known = record.as_ref().filter(|r| r.id == request.token_id);
            let known = known.ok_or_else(|| Refusal::denied("unknown token"))?;
            let used = known.redeem(now(), &secret, &a1(), key);
            *record = Some(used.map_err(|e| Refusal::denied(e.to_string()))?);
            Ok(self.sign(&request.csr))
        })
    }

    fn renew<'a>(
        &'a self,
        peer: &'a Peer,
        request: RenewRequest,
    ) -> BoxFuture<'a, Result<Grant, Refusal>> {
        Box::pin(async move {
            named(peer)?;
            let grant = self.sign(&request.csr);
            self.renewals.send_modify(|n| *n += 1);
            Ok(grant)
        })
    }

    fn version(&self) -> String {
        "test-hub".into()
    }
}
