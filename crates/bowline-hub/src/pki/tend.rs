//! What changes beside the CA: the certificate that others maintain for the API, and the key of
//! session tokens.

use std::time::Duration;

use bowline_identity::session::SESSION_LIFE;
use bowline_identity::{CertFiles, Pair, PairReload};
use bowline_types::Wall;

use super::Pki;
use crate::options::Error;

/// How long a key of session tokens counts after another signs: twelve lives of a token.
const OVERLAP: Duration = Duration::from_secs(12 * SESSION_LIFE.as_secs());

impl Pki {
    /// Shows people at the API what others maintain in these files. What cannot be used at the start
    /// is an error; later, what was shown before stays.
    pub(crate) fn showing(mut self, files: Option<CertFiles>) -> Result<Self, Error> {
        self.shown = files.map(PairReload::new);
        if let Some(shown) = &self.shown {
            self.show_others(&shown.load().map_err(Error::ApiCertificate)?)?;
        }
        Ok(self)
    }

    /// Takes what others have replaced since this was last asked; whether they have.
    pub(crate) fn follow(&self) -> Result<bool, Error> {
        let Some(shown) = &self.shown else { return Ok(false) };
        match shown.load_if_changed().map_err(Error::ApiCertificate)? {
            Some(pair) => self.show_others(&pair).map(|()| true),
            None => Ok(false),
        }
    }

    pub(super) fn show_others(&self, pair: &Pair) -> Result<(), Error> {
        let set = self.api.tls().set_foreign(Some(pair), None);
        set.map_err(|e| Error::ApiCertificate(e.into()))
    }

    /// Makes another key for session tokens once this one has reached `age`; says what it did. The key
    /// before it counts for [`OVERLAP`] more: tokens that it signed have ended long before.
    pub(crate) fn tend_token_key(
        &self,
        age: Duration,
        now: Wall,
    ) -> Result<Option<&'static str>, Error> {
        // A reload in between would go on with what it has read before.
        let _alone = self.set.lock();
        let old = self.dir.token_age(now)?;
        let mut signer = self.dir.token_signer()?;
        let done = match signer.has_previous() {
            true if old >= OVERLAP => {
                signer.forget_previous();
                "the one before is forgotten"
            }
            false if old >= age => {
                signer.rotate().map_err(bowline_identity::dir::Error::from)?;
                "another one signs"
            }
            _ => return Ok(None),
        };
        // On disk first: a hub that starts again must know what it signs with now.
        self.dir.save_token_signer(&signer)?;
        *self.signer.write() = signer;
        Ok(Some(done))
    }
}
