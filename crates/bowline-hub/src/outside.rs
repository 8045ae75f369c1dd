//! What agents that are not ours see on their port, and whose certificates they may show.

use bowline_identity::reload::Error;
use bowline_identity::{Pair, TrustBundle};

/// What agents that are not ours see on their port, and whose certificates they may show. Our own see
/// the hub's certificate, whatever is set here.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Outside {
    /// The certificate that they are shown, leaf first, and its key, as PEM; none: the hub's own.
    pub certificate: Option<(String, String)>,
    /// The authorities whose certificates they may show, as PEM; none: the hub's own only.
    pub authorities: Option<String>,
}

impl Outside {
    pub(crate) fn read(&self) -> Result<(Option<Pair>, Option<TrustBundle>), Error> {
        let pair = self.certificate.as_ref().map(|(cert, key)| Pair::from_pems(cert, key));
        let trust = self.authorities.as_deref().map(TrustBundle::from_pem);
        Ok((pair.transpose()?, trust.transpose()?))
    }
}

impl std::fmt::Debug for Outside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Outside(..)")
    }
}
