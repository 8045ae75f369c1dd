//! Checking the other side: chain, then revocation; or, while joining, a pin.

use std::sync::{Arc, LazyLock};

use arc_swap::{ArcSwap, ArcSwapOption};
use bowline_types::NodeId;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, WebPkiClientVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error as TlsError, OtherError,
    RootCertStore, SignatureScheme,
};

use super::{ClientAuth, Error, provider};
use crate::cert::{self, peer_identity};
use crate::{Fingerprint, PeerCert, Revocations, TrustBundle};

/// Both sides check signatures alike; the two traits that ask for it have no common parent.
macro_rules! signatures_as_known {
    () => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, TlsError> {
            let known = &provider().signature_verification_algorithms;
            verify_tls12_signature(message, cert, dss, known)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, TlsError> {
            let known = &provider().signature_verification_algorithms;
            verify_tls13_signature(message, cert, dss, known)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            provider().signature_verification_algorithms.supported_schemes()
        }
    };
}

/// The hub's certificate leads to no CA that the join token pins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the hub's certificate leads to no CA that is pinned: this is another hub, or its CA is new"
)]
pub struct PinMismatch;

/// A client's certificate that is in order, except that it names no node that may come in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client's certificate names no node that may come in")]
pub struct Refused(#[source] pub cert::Error);

fn other(error: impl std::error::Error + Send + Sync + 'static) -> TlsError {
    CertificateError::Other(OtherError(Arc::new(error))).into()
}

/// Checks the certificates of clients against what is trusted and revoked at that moment.
#[derive(Debug)]
pub(super) struct ClientGate {
    auth: ClientAuth,
    chain: ArcSwap<ChainCheck>,
    /// Chains of clients that are not ours.
    foreign: ArcSwapOption<ChainCheck>,
    revoked: ArcSwap<Revocations>,
}

/// An `ArcSwap` needs something sized to point to.
#[derive(Debug)]
struct ChainCheck(Arc<dyn ClientCertVerifier>);

impl ChainCheck {
    fn new(trust: &TrustBundle) -> Result<Arc<Self>, Error> {
        let builder = WebPkiClientVerifier::builder_with_provider(trust.roots()?, provider());
        Ok(Arc::new(Self(builder.build()?)))
    }
}

impl ClientGate {
    pub(super) fn new(auth: ClientAuth, trust: &TrustBundle) -> Result<Self, Error> {
        let chain = ArcSwap::new(ChainCheck::new(trust)?);
        let foreign = ArcSwapOption::empty();
        Ok(Self { auth, chain, foreign, revoked: ArcSwap::default() })
    }

    pub(super) fn set_foreign_trust(&self, trust: Option<&TrustBundle>) -> Result<(), Error> {
        self.foreign.store(trust.map(ChainCheck::new).transpose()?);
        Ok(())
    }

    pub(super) fn set_trust(&self, trust: &TrustBundle) -> Result<(), Error> {
        self.chain.store(ChainCheck::new(trust)?);
        Ok(())
    }

    pub(super) fn set_revocations(&self, revoked: Revocations) {
        self.revoked.store(Arc::new(revoked));
    }

    pub(super) fn refuses(&self, peer: &PeerCert) -> bool {
        self.revoked.load().refuses(peer)
    }

    /// The whole check, for a new connection and for one that is open already.
    pub(super) fn check(
        &self,
        leaf: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), TlsError> {
        let own = self.chain.load().0.verify_client_cert(leaf, chain, now);
        if let (Err(_), Some(foreign)) = (&own, &*self.foreign.load()) {
            foreign.0.verify_client_cert(leaf, chain, now)?;
            // A CA of others names no node of ours.
            return match peer_identity(leaf) {
                Err(cert::Error::Nameless) if self.auth == ClientAuth::Foreign => Ok(()),
                _ => own.map(|_| ()),
            };
        }
        own?;
        let peer = match peer_identity(leaf) {
            Ok(peer) => peer,
            Err(cert::Error::Nameless) if self.auth == ClientAuth::Foreign => return Ok(()),
            Err(error) => return Err(other(Refused(error))),
        };
        // We never sign it; a CA that the operator shares with others may have.
        if peer.node == NodeId::hub() {
            return Err(other(Refused(cert::Error::Hub)));
        }
        if self.refuses(&peer) {
            return Err(CertificateError::Revoked.into());
        }
        Ok(())
    }
}

impl ClientCertVerifier for ClientGate {
    fn client_auth_mandatory(&self) -> bool {
        self.auth == ClientAuth::Required
    }

    /// No hints: an agent has one certificate, and the list would have to outlive a reload.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, TlsError> {
        self.check(leaf, chain, now).map(|()| ClientCertVerified::assertion())
    }

    signatures_as_known!();
}

/// Whether a hub that trusts `trust` would let in who shows this chain (leaf first).
pub(crate) fn verify_node(
    chain: &[CertificateDer<'_>],
    trust: &TrustBundle,
    now: UnixTime,
) -> Result<Result<(), TlsError>, Error> {
    let gate = ClientGate::new(ClientAuth::Required, trust)?;
    let Some((leaf, rest)) = chain.split_first() else {
        return Ok(Err(TlsError::NoCertificatesPresented));
    };
    Ok(gate.check(leaf, rest, now))
}

/// By naming this authority, a client of ours asks for a certificate by the hub's own CA, on a port
/// that may show others another: `CN=bowline`, whatever the CA is called in full. Clients of others
/// name none, or theirs.
static OURS: LazyLock<[DistinguishedName; 1]> = LazyLock::new(|| {
    // A set of one attribute: 2.5.4.3, UTF8String.
    let mut name = vec![0x31, 0x10, 0x30, 0x0e, 0x06, 0x03, 0x55, 0x04, 0x03, 0x0c, 0x07];
    name.extend(b"bowline");
    [DistinguishedName::in_sequence(&name)]
});

/// Whether a client asks for a certificate by the hub's own CA.
pub(super) fn asks_for_ours(hello: &ClientHello<'_>) -> bool {
    let named = hello.certificate_authorities().unwrap_or_default();
    named.iter().any(|name| name.as_ref() == OURS[0].as_ref())
}

/// Whom a client believes to be the hub.
#[derive(Debug)]
enum Belief {
    /// Whoever has a certificate for that name by a CA of the bundle.
    Bundle(Arc<WebPkiServerVerifier>),
    /// Whoever has a certificate for that name by a CA with one of these keys.
    Pinned(Vec<Fingerprint>),
    /// Anybody.
    Anybody,
}

/// Checks the certificate of the hub.
#[derive(Debug)]
pub(super) struct HubCheck {
    belief: ArcSwap<Belief>,
    /// Which certificate is asked for.
    asks: Asks,
}

/// Which of its certificates a server is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asks {
    /// The one by the hub's own CA.
    Ours,
    /// The one that it shows to clients that are not ours.
    Foreign,
}

fn webpki(roots: Arc<RootCertStore>) -> Result<Arc<WebPkiServerVerifier>, Error> {
    Ok(WebPkiServerVerifier::builder_with_provider(roots, provider()).build()?)
}

impl HubCheck {
    pub(super) fn bundle(trust: &TrustBundle, asks: Asks) -> Result<Self, Error> {
        Ok(Self::of(Belief::Bundle(webpki(trust.roots()?)?), asks))
    }

    pub(super) fn anchored(roots: RootCertStore) -> Result<Self, Error> {
        Ok(Self::of(Belief::Bundle(webpki(Arc::new(roots))?), Asks::Ours))
    }

    pub(super) fn pinned(pins: Vec<Fingerprint>) -> Self {
        Self::of(Belief::Pinned(pins), Asks::Ours)
    }

    pub(super) fn anybody() -> Self {
        Self::of(Belief::Anybody, Asks::Foreign)
    }

    fn of(belief: Belief, asks: Asks) -> Self {
        Self { belief: ArcSwap::from_pointee(belief), asks }
    }

    pub(super) fn set_trust(&self, trust: &TrustBundle) -> Result<(), Error> {
        self.belief.store(Arc::new(Belief::Bundle(webpki(trust.roots()?)?)));
        Ok(())
    }
}

/// The pinned CA among what the server sent, as the only anchor. Its own signature need not be
/// checked: who sends it must hold a certificate that the pinned key has signed.
fn pinned_anchor(
    chain: &[CertificateDer<'_>],
    pins: &[Fingerprint],
) -> Result<Arc<WebPkiServerVerifier>, TlsError> {
    let pinned = |der: &&CertificateDer<'_>| {
        cert::public_key_pin(der).is_ok_and(|pin| pins.contains(&pin))
            && cert::is_ca(der).unwrap_or(false)
    };
    let anchor = chain.iter().find(pinned).ok_or_else(|| other(PinMismatch))?;
    let mut roots = RootCertStore::empty();
    roots.add(anchor.clone().into_owned())?;
    webpki(Arc::new(roots)).map_err(other)
}

impl ServerCertVerifier for HubCheck {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        match &**self.belief.load() {
            Belief::Bundle(check) => check.verify_server_cert(leaf, chain, name, ocsp, now),
            Belief::Pinned(pins) => {
                pinned_anchor(chain, pins)?.verify_server_cert(leaf, chain, name, ocsp, now)
            }
            Belief::Anybody => Ok(ServerCertVerified::assertion()),
        }
    }

    fn root_hint_subjects(&self) -> Option<&[DistinguishedName]> {
        (self.asks == Asks::Ours).then_some(&*OURS)
    }

    signatures_as_known!();
}
