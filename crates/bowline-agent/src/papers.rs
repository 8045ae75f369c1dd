//! Who this agent is to its control plane, and by what it shows that.

use std::path::PathBuf;
use std::sync::Arc;

use bowline_identity::{HeadSigner, Validity};
use bowline_types::NodeId;

use crate::error::Error;
use crate::identity::Identity;
use crate::options::AgentOptions;
use crate::principal::Guest;

/// Whose agent this is.
#[derive(Clone)]
pub(crate) enum Papers {
    /// A hub's, which has let it in.
    Joined(Arc<Identity>),
    /// A principal's, which has a name for it.
    Guest(Arc<Guest>),
}

impl Papers {
    /// Finds out who this agent is, as the options say.
    pub(crate) async fn open(options: &AgentOptions) -> Result<Self, Error> {
        match &options.principal {
            None => Ok(Self::Joined(Arc::new(Identity::open(options).await?))),
            Some(principal) => Ok(Self::Guest(Arc::new(Guest::open(options, principal).await?))),
        }
    }

    pub(crate) fn name(&self) -> &NodeId {
        match self {
            Self::Joined(identity) => &identity.name,
            Self::Guest(guest) => &guest.name,
        }
    }

    /// Where the control plane is.
    pub(crate) fn addresses(&self) -> &[String] {
        match self {
            Self::Joined(identity) => &identity.hubs,
            Self::Guest(guest) => &guest.address,
        }
    }

    /// When the certificate holds, if one is shown.
    pub(crate) fn validity(&self) -> Option<Validity> {
        match self {
            Self::Joined(identity) => Some(identity.validity()),
            Self::Guest(guest) => guest.validity(),
        }
    }

    /// Secret files that others can read.
    pub(crate) fn exposed(&self) -> Vec<PathBuf> {
        match self {
            Self::Joined(identity) => identity.exposed(),
            Self::Guest(guest) => guest.exposed(),
        }
    }

    /// Reads certificates again; whether they had changed. A guest reads them for each connection.
    pub(crate) fn reload(&self) -> Result<bool, Error> {
        match self {
            Self::Joined(identity) => identity.reload(),
            Self::Guest(_) => Ok(false),
        }
    }

    /// The key that signs the heads of this agent's shelves.
    pub(crate) fn head_signer(&self, options: &AgentOptions) -> Result<HeadSigner, Error> {
        match self {
            Self::Joined(identity) => identity.head_signer(options),
            Self::Guest(guest) => guest.head_signer(),
        }
    }
}
