//! What an agent keeps: its key and certificate, whom it trusts, and the key for its heads.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bowline_types::Wall;
use rustls::pki_types::UnixTime;

use super::hub::CA;
use super::{Error, exposed, not_of};
use crate::files::{self, Access};
use crate::tls::verify_node;
use crate::{HeadSigner, NodeKey, Pair, PeerCert, TrustBundle};

pub(super) const NODE: &str = "node.pem";
const TRUST: &str = "ca.crt";
const HEAD: &str = "head.key";
const JOIN: &str = "join.key";

/// An agent's identity folder: `node.pem`, `ca.crt`, `head.key`; `join.key` until it has joined.
#[derive(Clone, Debug)]
pub struct AgentDir {
    root: PathBuf,
}

/// Who an agent is, once it has joined.
#[derive(Clone, Debug)]
pub struct AgentIdentity {
    /// What it shows.
    pub pair: Pair,
    /// What its certificate says.
    pub me: PeerCert,
    /// Whom it trusts.
    pub trust: TrustBundle,
}

/// The keys that an agent makes for itself before it joins.
#[derive(Debug)]
pub struct JoinKeys {
    /// For its certificate.
    pub node: NodeKey,
    /// For its heads; the public half goes into the roster.
    pub head: HeadSigner,
}

impl AgentDir {
    /// Opens the folder, and makes it if need be.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self, Error> {
        let root = root.into();
        files::make_dir(&root)?;
        not_of(&root, CA, "a hub")?;
        Ok(Self { root })
    }

    /// Where certificate and key are.
    pub fn node_file(&self) -> PathBuf {
        self.root.join(NODE)
    }

    /// Where the trust bundle is.
    pub fn trust_file(&self) -> PathBuf {
        self.root.join(TRUST)
    }

    /// Who this agent is; nothing before it has joined.
    pub fn identity(&self) -> Result<Option<AgentIdentity>, Error> {
        let Some(text) = files::read_if_there(&self.node_file())? else { return Ok(None) };
        let pair = Pair::from_pems(&text, &text)?;
        let trust = TrustBundle::from_pem(&files::read(&self.trust_file())?)?;
        Ok(Some(AgentIdentity { me: pair.peer()?, pair, trust }))
    }

    /// The keys to join with. They are kept until the join is done, since a hub whose answer was
    /// lost lets the same key in again, but no other.
    pub fn begin_join(&self) -> Result<JoinKeys, Error> {
        let path = self.root.join(JOIN);
        let node = match files::read_if_there(&path)? {
            Some(text) => NodeKey::from_pem(&text)?,
            None => {
                let key = NodeKey::generate()?;
                key.save(&path)?;
                key
            }
        };
        Ok(JoinKeys { node, head: head_signer_or_new(&self.root.join(HEAD))? })
    }

    /// Takes a certificate that the hub has signed for `key`, after a join or a renewal, together
    /// with the bundle that came with it. Nothing is kept unless everything fits.
    pub fn accept(
        &self,
        key: &NodeKey,
        cert_pem: &str,
        trust: &TrustBundle,
        now: Wall,
    ) -> Result<AgentIdentity, Error> {
        let pair = Pair::from_pems(cert_pem, &key.to_pem())?;
        let me = pair.peer()?;
        let moment = UnixTime::since_unix_epoch(Duration::from_millis(now.0));
        verify_node(pair.chain(), trust, moment)?.map_err(Error::Untrusted)?;
        // The bundle first: a crash in between leaves a certificate that it still covers.
        self.set_trust(trust)?;
        let both = cert_pem.trim_end().to_owned() + "\n" + &key.to_pem();
        files::write(&self.node_file(), both.as_bytes(), Access::Private)?;
        files::remove(&self.root.join(JOIN))?;
        Ok(AgentIdentity { pair, me, trust: trust.clone() })
    }

    /// Keeps a new trust bundle.
    pub fn set_trust(&self, trust: &TrustBundle) -> Result<(), Error> {
        Ok(files::write(&self.trust_file(), trust.to_pem().as_bytes(), Access::Public)?)
    }

    /// The key for heads. It is made by joining only: a new one would sign heads that nobody takes.
    pub fn head_signer(&self) -> Result<HeadSigner, Error> {
        Ok(HeadSigner::load(&self.root.join(HEAD))?)
    }

    /// The key for heads of an agent that joins no fleet, and whose heads nobody but itself reads; it
    /// is made if it is not there.
    pub fn own_head_signer(&self) -> Result<HeadSigner, Error> {
        head_signer_or_new(&self.root.join(HEAD))
    }

    /// Secret files that others can read, for `bowline doctor`.
    pub fn exposed(&self) -> Vec<PathBuf> {
        exposed(&self.root, &[NODE, HEAD, JOIN])
    }
}

pub(super) fn head_signer_or_new(path: &Path) -> Result<HeadSigner, Error> {
    if let Some(text) = files::read_if_there(path)? {
        return Ok(HeadSigner::from_pem(&text)?);
    }
    let signer = HeadSigner::generate()?;
    signer.save(path)?;
    Ok(signer)
}
