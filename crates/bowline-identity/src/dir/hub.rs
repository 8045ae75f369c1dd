//! What a hub keeps: its CAs, its server certificate, and the keys for tokens and heads.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use bowline_types::Wall;
use tracing::{info, warn};

use super::agent::{NODE, head_signer_or_new};
use super::{Error, exposed, not_of};
use crate::cert::host_names;
use crate::files::{self, Access};
use crate::{Ca, CaSet, HeadSigner, Pair, Phase, TokenSigner, TrustBundle};

pub(super) const CA: &str = "ca.pem";
const CA_NEXT: &str = "ca-next.pem";
const CA_OLD: &str = "ca-old.crt";
const TRUST: &str = "ca.crt";
const SERVER: &str = "server.pem";
const TOKEN: &str = "token.key";
const HEAD: &str = "head.key";

/// A hub's identity folder: `ca.pem`, `server.pem`, `token.key`, `head.key`, the public `ca.crt`;
/// and `ca-next.pem` or `ca-old.crt` while the CA is being replaced.
#[derive(Clone, Debug)]
pub struct HubDir {
    root: PathBuf,
}

impl HubDir {
    /// Opens the folder, and makes it if need be.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self, Error> {
        let root = root.into();
        files::make_dir(&root)?;
        not_of(&root, NODE, "an agent")?;
        Ok(Self { root })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Where the server certificate and its key are.
    pub fn server_file(&self) -> PathBuf {
        self.path(SERVER)
    }

    /// Where the trust bundle is; people may copy it.
    pub fn trust_file(&self) -> PathBuf {
        self.path(TRUST)
    }

    /// The CAs, made if this is the first start. The CA comes last, so that its presence says that
    /// the folder is complete: what is missing later is lost, not new, and is never made anew.
    pub fn init(&self, name: &str, now: Wall) -> Result<CaSet, Error> {
        match self.ca()? {
            Some(set) => self.finish(set),
            None => self.found(Ca::create(name, now)?),
        }
    }

    /// Like [`HubDir::init`], with a CA that the operator brings along.
    pub fn init_with(&self, ca: Ca) -> Result<CaSet, Error> {
        match self.ca()? {
            Some(set) if set.signing().cert_der() == ca.cert_der() => self.finish(set),
            Some(_) => Err(Error::OtherCa),
            None => self.found(ca),
        }
    }

    /// Writes the trust bundle again if a crash kept `save_ca` from it: the CAs themselves say what
    /// is trusted, and a CA that was retired must not stay trusted for want of the last file.
    fn finish(&self, set: CaSet) -> Result<CaSet, Error> {
        let bundle = set.bundle().to_pem();
        if files::read_if_there(&self.trust_file())?.as_ref() != Some(&bundle) {
            files::write(&self.trust_file(), bundle.as_bytes(), Access::Public)?;
        }
        Ok(set)
    }

    fn found(&self, ca: Ca) -> Result<CaSet, Error> {
        head_signer_or_new(&self.path(HEAD))?;
        if files::read_if_there(&self.path(TOKEN))?.is_none() {
            TokenSigner::generate()?.save(&self.path(TOKEN))?;
        }
        let set = CaSet::new(ca);
        self.save_ca(&set)?;
        info!(ca = %set.signing().fingerprint(), "identity made");
        Ok(set)
    }

    /// The CAs as they are on disk; nothing before the first start.
    pub fn ca(&self) -> Result<Option<CaSet>, Error> {
        let Some(text) = files::read_if_there(&self.path(CA))? else { return Ok(None) };
        let signing = Ca::from_pem(&text)?;
        let next = files::read_if_there(&self.path(CA_NEXT))?;
        let next = next.map(|text| Ca::from_pem(&text)).transpose()?;
        let old = files::read_if_there(&self.path(CA_OLD))?;
        let old = old.map(|text| TrustBundle::from_pem(&text)).transpose()?;
        // A crash in `save_ca` leaves the signing CA under a second name, which then says nothing.
        let next = next.filter(|next| next.fingerprint() != signing.fingerprint());
        let old = old.filter(|old| !old.certs().contains(signing.cert_der()));
        let phase = match (next, old) {
            (Some(next), _) => Phase::Announced { next: Box::new(next) },
            (None, Some(old)) => Phase::Switched { old },
            (None, None) => Phase::Steady,
        };
        Ok(Some(CaSet::restore(signing, phase)))
    }

    /// Keeps the CAs after a step of a rotation. Each step takes effect with one replaced or removed
    /// file; what is written before it repeats what is known, what comes after it is clearing up.
    pub fn save_ca(&self, set: &CaSet) -> Result<(), Error> {
        if let Phase::Switched { old } = set.phase() {
            files::write(&self.path(CA_OLD), old.to_pem().as_bytes(), Access::Public)?;
        }
        if let Phase::Announced { next } = set.phase() {
            files::write(&self.path(CA_NEXT), next.to_pem().as_bytes(), Access::Private)?;
        }
        files::write(&self.path(CA), set.signing().to_pem().as_bytes(), Access::Private)?;
        if !matches!(set.phase(), Phase::Announced { .. }) {
            files::remove(&self.path(CA_NEXT))?;
        }
        if !matches!(set.phase(), Phase::Switched { .. }) {
            files::remove(&self.path(CA_OLD))?;
        }
        Ok(files::write(&self.trust_file(), set.bundle().to_pem().as_bytes(), Access::Public)?)
    }

    /// The server certificate, issued anew if there is none, if two thirds of its life are over, if
    /// the names have changed, or if another CA signs now.
    pub fn ensure_server(
        &self,
        set: &CaSet,
        sans: &[String],
        life: Duration,
        now: Wall,
    ) -> Result<Pair, Error> {
        if let Some(text) = files::read_if_there(&self.server_file())? {
            match Pair::from_pems(&text, &text) {
                Ok(pair) if still_good(&pair, set, sans, now) => return Ok(pair),
                Ok(_) => {}
                Err(error) => warn!(%error, "server certificate unreadable, issuing another"),
            }
        }
        let issued = set.issue_server(sans, life, now)?;
        let pair = Pair::try_from(&issued)?;
        let both = issued.cert_pem + &issued.key_pem;
        files::write(&self.server_file(), both.as_bytes(), Access::Private)?;
        Ok(pair)
    }

    /// The keys for session tokens.
    pub fn token_signer(&self) -> Result<TokenSigner, Error> {
        Ok(TokenSigner::load(&self.path(TOKEN))?)
    }

    /// Keeps the keys for session tokens, after a rotation.
    pub fn save_token_signer(&self, signer: &TokenSigner) -> Result<(), Error> {
        Ok(signer.save(&self.path(TOKEN))?)
    }

    /// How long ago the keys for session tokens were written; a clock that was set back makes them new.
    pub fn token_age(&self, now: Wall) -> Result<Duration, Error> {
        let written = files::written(&self.path(TOKEN))?.duration_since(UNIX_EPOCH);
        let now = Duration::from_millis(now.0);
        Ok(now.saturating_sub(written.unwrap_or_default()))
    }

    /// The key for heads.
    pub fn head_signer(&self) -> Result<HeadSigner, Error> {
        Ok(HeadSigner::load(&self.path(HEAD))?)
    }

    /// Secret files that others can read, for `bowline doctor`.
    pub fn exposed(&self) -> Vec<PathBuf> {
        exposed(&self.root, &[CA, CA_NEXT, SERVER, TOKEN, HEAD])
    }
}

fn still_good(pair: &Pair, set: &CaSet, sans: &[String], now: Wall) -> bool {
    let normal = |name: &String| name.parse::<IpAddr>().map_or(name.clone(), |ip| ip.to_string());
    let mut wanted: Vec<_> = sans.iter().map(normal).collect();
    wanted.sort();
    !pair.validity().due(now)
        && pair.chain().get(1) == Some(set.signing().cert_der())
        && host_names(pair.leaf()).is_ok_and(|names| names == wanted)
}
