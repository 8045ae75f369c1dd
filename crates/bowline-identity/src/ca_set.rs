//! The CAs of a hub: one that signs, and while it is being replaced, one more that is trusted.
//!
//! Replacing a CA takes three steps, each of which may last as long as the slowest agent needs:
//! `rotate` makes the next CA and tells everybody to trust it; `promote` lets it sign; `retire_old`
//! ends the trust in the one before. At no moment does a peer meet a certificate by a CA of which
//! it could not have heard.

use std::time::Duration;

use bowline_types::{NodeId, Wall};

use crate::ca::{self, Ca, Issued};
use crate::{Fingerprint, TrustBundle};

/// A step that does not follow from where the set is.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A rotation is under way already.
    #[error("a rotation is under way: promote it, retire the old CA or abandon it first")]
    UnderWay,
    /// There is no next CA.
    #[error("no next CA has been made: rotate first")]
    NothingNext,
    /// There is no old CA.
    #[error("no old CA is left to retire")]
    NothingOld,
    /// The next CA could not be made.
    #[error("the next CA could not be made")]
    Ca(#[from] ca::Error),
}

/// Where a rotation stands.
#[derive(Debug)]
pub enum Phase {
    /// One CA, which signs.
    Steady,
    /// The next CA is trusted already but does not sign yet.
    Announced {
        /// The CA that will sign.
        next: Box<Ca>,
    },
    /// The new CA signs; the old one is still trusted.
    Switched {
        /// The CA that signed before.
        old: TrustBundle,
    },
}

/// The CA that signs, and the trust around it.
#[derive(Debug)]
pub struct CaSet {
    signing: Ca,
    phase: Phase,
}

impl CaSet {
    /// A single CA, with no rotation under way.
    pub fn new(signing: Ca) -> Self {
        Self { signing, phase: Phase::Steady }
    }

    /// A set as it was found on disk.
    pub(crate) fn restore(signing: Ca, phase: Phase) -> Self {
        Self { signing, phase }
    }

    /// The CA that signs now.
    pub fn signing(&self) -> &Ca {
        &self.signing
    }

    /// Where a rotation stands.
    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    /// What peers must trust now; the signing CA comes first.
    pub fn bundle(&self) -> TrustBundle {
        let mut bundle = TrustBundle::of(self.signing.cert_der().clone());
        match &self.phase {
            Phase::Steady => {}
            Phase::Announced { next } => bundle.add(next.cert_der().clone()),
            Phase::Switched { old } => bundle.extend(old),
        }
        bundle
    }

    /// What a join token minted now must pin, so that it outlives a promotion.
    pub fn pins(&self) -> Vec<Fingerprint> {
        match &self.phase {
            Phase::Announced { next } => vec![self.signing.fingerprint(), next.fingerprint()],
            Phase::Steady | Phase::Switched { .. } => vec![self.signing.fingerprint()],
        }
    }

    /// Step 1: makes the next CA, to be trusted at once and to sign later.
    pub fn rotate(&mut self, name: &str, now: Wall) -> Result<(), Error> {
        self.announce(Ca::create(name, now)?)
    }

    /// Step 1 with a CA from elsewhere.
    pub fn announce(&mut self, next: Ca) -> Result<(), Error> {
        if !matches!(self.phase, Phase::Steady) {
            return Err(Error::UnderWay);
        }
        self.phase = Phase::Announced { next: Box::new(next) };
        Ok(())
    }

    /// Takes step 1 back: the next CA has signed nothing, so nobody can miss it.
    pub fn abandon(&mut self) -> Result<(), Error> {
        if !matches!(self.phase, Phase::Announced { .. }) {
            return Err(Error::NothingNext);
        }
        self.phase = Phase::Steady;
        Ok(())
    }

    /// Step 2: the next CA signs from now on, the old one stays trusted.
    pub fn promote(&mut self) -> Result<(), Error> {
        match std::mem::replace(&mut self.phase, Phase::Steady) {
            Phase::Announced { next } => {
                let old = std::mem::replace(&mut self.signing, *next);
                self.phase = Phase::Switched { old: TrustBundle::of(old.cert_der().clone()) };
                Ok(())
            }
            other => {
                self.phase = other;
                Err(Error::NothingNext)
            }
        }
    }

    /// Step 3: ends the trust in the old CA and in everything that it signed.
    pub fn retire_old(&mut self) -> Result<(), Error> {
        if !matches!(self.phase, Phase::Switched { .. }) {
            return Err(Error::NothingOld);
        }
        self.phase = Phase::Steady;
        Ok(())
    }

    /// [`Ca::issue_server`] by the CA that signs now.
    pub fn issue_server(
        &self,
        sans: &[String],
        life: Duration,
        now: Wall,
    ) -> Result<Issued, ca::Error> {
        self.signing.issue_server(sans, life, now)
    }

    /// [`Ca::sign_csr`] by the CA that signs now.
    pub fn sign_csr(
        &self,
        csr_pem: &str,
        node: &NodeId,
        life: Duration,
        now: Wall,
    ) -> Result<String, ca::Error> {
        self.signing.sign_csr(csr_pem, node, life, now)
    }
}
