//! Who may connect. The wire asks; the hub decides.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::Pin;

use bowline_types::NodeId;
use rustls_pki_types::CertificateDer;

use crate::{Refusal, Transport};

/// A future that a trait object can return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The other end of a connection, as far as the transport knows it.
#[derive(Clone, Debug)]
pub struct Peer {
    /// From where it connects.
    pub remote: SocketAddr,
    /// The certificate that TLS has verified; none if the peer showed none.
    pub certificate: Option<CertificateDer<'static>>,
}

/// What came with a call beside its message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The access token: metadata `authorization`, as it is.
    pub token: Option<String>,
    /// The peer's native protocol, or none: it speaks the argocd-agent dialect.
    pub protocol: Option<u32>,
    /// The rest of the metadata that is text.
    pub metadata: BTreeMap<String, String>,
    /// How it came.
    pub transport: Transport,
}

/// An agent says who it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthRequest {
    /// How: `mtls`, `userpass`, `header`.
    pub method: String,
    /// With what, where the method needs it.
    pub credentials: BTreeMap<String, String>,
    /// `managed` or `autonomous`.
    pub mode: String,
    /// The agent's version.
    pub version: String,
    /// The namespace that the agent works in.
    pub namespace: String,
}

/// The hub believes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthResponse {
    /// For every further call.
    pub access_token: String,
    /// For a new access token; may be empty.
    pub refresh_token: String,
    /// The hub's version.
    pub version: String,
    /// The namespace that the hub works in.
    pub namespace: String,
}

/// A machine with a join token wants to be an agent.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinRequest {
    /// Which token.
    pub token_id: String,
    /// Its secret.
    pub token_secret: Vec<u8>,
    /// What shall be signed: PKCS #10, DER.
    pub csr: Vec<u8>,
    /// The key that will sign the heads of its shelves.
    pub head_key: Vec<u8>,
    /// Its version.
    pub agent_version: String,
}

impl std::fmt::Debug for JoinRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinRequest").field("token_id", &self.token_id).finish_non_exhaustive()
    }
}

/// An agent wants a fresh certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenewRequest {
    /// What shall be signed: PKCS #10, DER.
    pub csr: Vec<u8>,
    /// The key that signs the heads of its shelves.
    pub head_key: Vec<u8>,
    /// Its version.
    pub agent_version: String,
}

/// A certificate, and whom to trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// DER, leaf first.
    pub chain: Vec<Vec<u8>>,
    /// DER; more than one while a CA is being replaced.
    pub authorities: Vec<Vec<u8>>,
    /// The name that the agent now has.
    pub node: NodeId,
}

/// The hub's word on who may do what on the wire. Called for each RPC, never for each frame.
pub trait Admission: Send + Sync + 'static {
    /// Checks who the peer is; the answer's token then opens `Subscribe`.
    fn authenticate<'a>(
        &'a self,
        peer: &'a Peer,
        call: &'a Call,
        request: AuthRequest,
    ) -> BoxFuture<'a, Result<AuthResponse, Refusal>>;

    /// Gives a new access token for a refresh token.
    fn refresh<'a>(
        &'a self,
        peer: &'a Peer,
        refresh_token: String,
    ) -> BoxFuture<'a, Result<AuthResponse, Refusal>>;

    /// Names the agent behind a call that needs an access token: `Subscribe`, `Push`, tunnels.
    fn subscribe<'a>(
        &'a self,
        peer: &'a Peer,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<NodeId, Refusal>>;

    /// Lets a new agent in.
    fn join<'a>(
        &'a self,
        peer: &'a Peer,
        request: JoinRequest,
    ) -> BoxFuture<'a, Result<Grant, Refusal>>;

    /// Gives an agent with a valid certificate a new one.
    fn renew<'a>(
        &'a self,
        peer: &'a Peer,
        request: RenewRequest,
    ) -> BoxFuture<'a, Result<Grant, Refusal>>;

    /// What `Version` answers.
    fn version(&self) -> String;
}
