//! Who this agent is to a principal.

use std::path::{Path, PathBuf};

use bowline_identity::{AgentDir, HeadSigner, Validity, files};
use bowline_types::NodeId;
use bowline_wire::Backoff;
use tracing::{info, warn};

use super::dial::Dial;
use super::options::{PrincipalCredentials, PrincipalOptions};
use crate::error::Error;
use crate::options::AgentOptions;

/// Where the name is kept that the principal gave.
const NAME: &str = "name";

/// An agent whose name is a principal's word.
#[derive(Debug)]
pub(crate) struct Guest {
    pub(crate) name: NodeId,
    pub(crate) dial: Dial,
    /// Where the principal is.
    pub(crate) address: [String; 1],
    dir: AgentDir,
    root: PathBuf,
}

impl Guest {
    /// Finds out who this agent is. Only the first time the principal is needed for that, and then
    /// it is waited for.
    pub(crate) async fn open(
        options: &AgentOptions,
        principal: &PrincipalOptions,
    ) -> Result<Self, Error> {
        let root = options.data.join("pki");
        let dir = AgentDir::open(&root)
            .map_err(|source| Error::Identity { path: root.clone(), source })?;
        let namespace = options.kubernetes.as_ref().ok_or(Error::NoCluster)?.namespace.clone();
        let dial = Dial { options: principal.clone(), proxy: options.proxy.clone(), namespace };
        let name = match known(&root, principal) {
            Some(name) => name,
            None => told(&dial).await,
        };
        if let Some(wanted) = options.name.clone().filter(|wanted| *wanted != name) {
            return Err(Error::OtherName { wanted, found: name });
        }
        let kept = files::write(&root.join(NAME), name.as_str().as_bytes(), files::Access::Public);
        if let Err(error) = kept {
            warn!(%error, "the name could not be kept: the next start needs the principal");
        }
        Ok(Self { name, dial, address: [principal.address.clone()], dir, root })
    }

    /// The key that signs the heads of this agent's shelves.
    pub(crate) fn head_signer(&self) -> Result<HeadSigner, Error> {
        let failed = |source| Error::Identity { path: self.root.clone(), source };
        self.dir.own_head_signer().map_err(failed)
    }

    /// When the certificate holds.
    pub(crate) fn validity(&self) -> Option<Validity> {
        self.dial.validity()
    }

    /// Secret files that others can read.
    pub(crate) fn exposed(&self) -> Vec<PathBuf> {
        self.dir.exposed()
    }
}

/// The name, where it needs no asking.
fn known(root: &Path, principal: &PrincipalOptions) -> Option<NodeId> {
    let kept = std::fs::read_to_string(root.join(NAME)).ok();
    let kept = kept.and_then(|text| NodeId::new(text.trim()).ok());
    let PrincipalCredentials::UserPass { name, .. } = &principal.credentials else { return kept };
    kept.or_else(|| NodeId::new(name).ok())
}

/// Asks the principal until it says.
async fn told(dial: &Dial) -> NodeId {
    let mut backoff = Backoff::default();
    loop {
        match dial.ask().await {
            Ok(admitted) => {
                info!(name = %admitted.name, mode = %admitted.mode, "the principal knows this agent");
                return admitted.name;
            }
            Err(error) => {
                let (why, advice) = (error.chain(), error.advice());
                warn!(error = why, advice, "waiting for the principal to say who this agent is");
            }
        }
        tokio::time::sleep(backoff.next_wait()).await;
    }
}
