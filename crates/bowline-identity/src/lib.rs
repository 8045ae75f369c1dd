//! Who is who: keys, certificates, TLS settings and tokens. The only crate that names crypto.
//!
//! Nothing here reads a clock on its own, except the TLS library while it shakes hands: the moment
//! is a parameter. How trust works as a whole is told in `docs/identity.md`.

pub mod api_token;
pub mod ca;
pub mod ca_set;
pub mod cert;
pub mod dir;
pub mod files;
mod fingerprint;
pub mod head;
pub mod join;
pub mod key;
pub mod pem;
mod random;
pub mod reload;
pub mod session;
pub mod tls;
pub mod trust;

pub use api_token::{ApiToken, ApiTokenHash};
pub use ca::{Ca, Issued};
pub use ca_set::{CaSet, Phase};
pub use cert::{PeerCert, Serial, Validity, due_for_renewal, peer_identity};
pub use dir::{AgentDir, AgentIdentity, HubDir};
pub use fingerprint::{BadFingerprint, Fingerprint};
pub use head::HeadSigner;
pub use join::{JoinRecord, JoinToken};
pub use key::NodeKey;
pub use reload::{CertFiles, ClientReload, PairReload, ServerReload};
pub use session::{Claims, TokenError, TokenSigner};
pub use tls::{ClientAuth, ClientTls, Pair, ServerTls, Versions, server_name};
pub use trust::{Revocations, TrustBundle};
