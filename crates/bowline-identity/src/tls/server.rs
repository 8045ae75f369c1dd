//! The hub's side of TLS.

use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use bowline_types::Wall;
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::verify::{ClientGate, asks_for_ours};
use super::{Error, Pair, Versions, alpn, provider};
use crate::{PeerCert, Revocations, TrustBundle};

/// What is asked of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    /// A node's certificate.
    Required,
    /// A node's certificate or none: who joins has none yet, and may do nothing else.
    Optional,
    /// The same, or a certificate of a trusted chain that names no node: who that is, another
    /// dialect says.
    Foreign,
    /// Nothing: people show a token.
    None,
}

/// What a port shows: our own certificate, and to clients that are not ours perhaps another.
#[derive(Debug)]
struct Slot {
    own: ArcSwap<CertifiedKey>,
    foreign: ArcSwapOption<CertifiedKey>,
}

impl ResolvesServerCert for Slot {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let foreign = self.foreign.load_full().filter(|_| !asks_for_ours(&hello));
        Some(foreign.unwrap_or_else(|| self.own.load_full()))
    }
}

/// TLS for a listening port; what it shows and whom it trusts can be replaced at any time.
#[derive(Debug)]
pub struct ServerTls {
    slot: Arc<Slot>,
    gate: Arc<ClientGate>,
    config: Arc<ServerConfig>,
}

impl ServerTls {
    /// A port that shows `pair` and trusts the nodes of `trust`.
    pub fn new(
        pair: &Pair,
        trust: &TrustBundle,
        auth: ClientAuth,
        versions: Versions,
    ) -> Result<Self, Error> {
        let own = ArcSwap::new(pair.certified());
        let slot = Arc::new(Slot { own, foreign: ArcSwapOption::empty() });
        let gate = Arc::new(ClientGate::new(auth, trust)?);
        let builder = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(versions.list())
            .map_err(Error::Settings)?;
        let builder = match auth {
            ClientAuth::None => builder.with_no_client_auth(),
            _ => builder.with_client_cert_verifier(gate.clone()),
        };
        let mut config = builder.with_cert_resolver(slot.clone());
        config.alpn_protocols = alpn();
        // See the module's head: nothing is resumed.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self { slot, gate, config: Arc::new(config) })
    }

    /// The settings for the listener; they stay valid through every change below.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.config.clone()
    }

    /// Shows another certificate from the next handshake on.
    pub fn set_pair(&self, pair: &Pair) {
        self.slot.own.store(pair.certified());
    }

    /// Clients that are not ours are shown `pair` from the next handshake on, and may show
    /// certificates of `trust` that name no node, besides those of the port's own trust. Each
    /// `None` ends that. Only a port with [`ClientAuth::Foreign`] lets such clients in.
    pub fn set_foreign(
        &self,
        pair: Option<&Pair>,
        trust: Option<&TrustBundle>,
    ) -> Result<(), Error> {
        self.gate.set_foreign_trust(trust)?;
        self.slot.foreign.store(pair.map(Pair::certified));
        Ok(())
    }

    /// Trusts other CAs from the next handshake on.
    pub fn set_trust(&self, trust: &TrustBundle) -> Result<(), Error> {
        self.gate.set_trust(trust)
    }

    /// Refuses these certificates from the next handshake on. Open links are the caller's to cut,
    /// by [`ServerTls::refuses`].
    pub fn set_revocations(&self, revoked: Revocations) {
        self.gate.set_revocations(revoked);
    }

    /// Whether this certificate has been revoked: one look-up, for all open links after a change.
    pub fn refuses(&self, peer: &PeerCert) -> bool {
        self.gate.refuses(peer)
    }

    /// The whole check once more, for open links after a change of trust:
    /// whether a connection that showed this chain (leaf first) would still be let in.
    pub fn recheck(&self, chain: &[CertificateDer<'_>], now: Wall) -> Result<(), rustls::Error> {
        let (leaf, rest) = chain.split_first().ok_or(rustls::Error::NoCertificatesPresented)?;
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_millis(now.0));
        self.gate.check(leaf, rest, now)
    }
}
