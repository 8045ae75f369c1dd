//! The agent's side of TLS, and the command line's.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rustls::client::{ResolvesClientCert, Resumption};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore, SignatureScheme};

use super::verify::{Asks, HubCheck};
use super::{Error, Pair, Versions, alpn, provider};
use crate::{Fingerprint, TrustBundle};

#[derive(Debug)]
struct Slot(ArcSwapOption<CertifiedKey>);

impl ResolvesClientCert for Slot {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.load_full()
    }

    fn has_certs(&self) -> bool {
        self.0.load().is_some()
    }
}

/// TLS for outbound connections; what it shows and whom it trusts can be replaced at any time.
#[derive(Debug)]
pub struct ClientTls {
    slot: Arc<Slot>,
    hub: Arc<HubCheck>,
    config: Arc<ClientConfig>,
}

impl ClientTls {
    /// Trusts servers whose certificate, for the name that was dialled, is by a CA of `trust`.
    pub fn new(
        pair: Option<&Pair>,
        trust: &TrustBundle,
        versions: Versions,
    ) -> Result<Self, Error> {
        Self::with(pair, HubCheck::bundle(trust, Asks::Ours)?, versions)
    }

    /// The same, for a server that speaks another dialect: if it is a hub of ours, it shows what it
    /// shows to clients that are not.
    pub fn foreign(
        pair: Option<&Pair>,
        trust: &TrustBundle,
        versions: Versions,
    ) -> Result<Self, Error> {
        Self::with(pair, HubCheck::bundle(trust, Asks::Foreign)?, versions)
    }

    /// For people and programs at a hub's API: trusts servers whose certificate, for the name that was
    /// dialled, leads to one of these anchors, whatever they are certificates of.
    pub fn anchored(roots: RootCertStore, versions: Versions) -> Result<Self, Error> {
        Self::with(None, HubCheck::anchored(roots)?, versions)
    }

    /// For joining: trusts servers whose chain contains a CA with one of the pinned keys, and shows
    /// no certificate. `set_pair` and `set_trust` turn it into an ordinary one.
    pub fn join(pins: Vec<Fingerprint>) -> Result<Self, Error> {
        Self::with(None, HubCheck::pinned(pins), Versions::Tls13)
    }

    /// The same for laboratories: believes any server that has the key of the certificate that it shows.
    pub fn insecure(pair: Option<&Pair>, versions: Versions) -> Result<Self, Error> {
        Self::with(pair, HubCheck::anybody(), versions)
    }

    fn with(pair: Option<&Pair>, hub: HubCheck, versions: Versions) -> Result<Self, Error> {
        let slot = Arc::new(Slot(ArcSwapOption::new(pair.map(Pair::certified))));
        let hub = Arc::new(hub);
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(versions.list())
            .map_err(Error::Settings)?
            .dangerous()
            .with_custom_certificate_verifier(hub.clone())
            .with_client_cert_resolver(slot.clone());
        config.alpn_protocols = alpn();
        config.resumption = Resumption::disabled();
        Ok(Self { slot, hub, config: Arc::new(config) })
    }

    /// The settings for the connector; they stay valid through every change below.
    pub fn config(&self) -> Arc<ClientConfig> {
        self.config.clone()
    }

    /// The settings with other protocols on offer, for a connector that speaks only one.
    pub fn config_for(&self, protocols: &[&str]) -> Arc<ClientConfig> {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    }

    /// Shows another certificate from the next handshake on.
    pub fn set_pair(&self, pair: &Pair) {
        self.slot.0.store(Some(pair.certified()));
    }

    /// Trusts other CAs from the next handshake on.
    pub fn set_trust(&self, trust: &TrustBundle) -> Result<(), Error> {
        self.hub.set_trust(trust)
    }
}
