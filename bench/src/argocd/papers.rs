//! Certificates for both sides, of one CA that the case makes itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use bowline_identity::{Ca, ClientTls, NodeKey, Pair, TrustBundle, Versions, ca};
use bowline_types::NodeId;
use tokio_rustls::rustls::ClientConfig;

use crate::{echo, seed};

/// A CA, with its certificate in the file `ca.crt`, and with its key too in `ca.pem`.
pub(crate) struct Papers {
    folder: PathBuf,
    ca: Ca,
    /// All agents of a crowd share it, each under a certificate of its own.
    key: NodeKey,
}

impl Papers {
    pub(crate) fn make(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let ca = Ca::create("bench", seed::now())?;
        std::fs::write(folder.join("ca.crt"), ca.cert_pem())?;
        std::fs::write(folder.join("ca.pem"), ca.to_pem())?;
        Ok(Self { folder: folder.to_owned(), ca, key: NodeKey::generate()? })
    }

    /// A file of the folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn sign(&self, name: &str) -> Result<String> {
        let name = NodeId::new(name)?;
        Ok(self.ca.sign_csr(&self.key.csr()?, &name, ca::NODE_LIFE, seed::now())?)
    }

    /// The files of an agent's certificate and key.
    pub(crate) fn agent(&self, name: &str) -> Result<(PathBuf, PathBuf)> {
        self.write(name, &self.sign(name)?, &self.key.to_pem())
    }

    /// The files of a certificate and key for whoever serves on this machine.
    pub(crate) fn server(&self) -> Result<(PathBuf, PathBuf)> {
        let hosts = ["127.0.0.1", "localhost"].map(str::to_owned);
        let issued = self.ca.issue_server(&hosts, ca::NODE_LIFE, seed::now())?;
        self.write("server", &issued.cert_pem, &issued.key_pem)
    }

    fn write(&self, name: &str, cert: &str, key: &str) -> Result<(PathBuf, PathBuf)> {
        let files = (self.file(&format!("{name}.crt")), self.file(&format!("{name}.key")));
        std::fs::write(&files.0, cert)?;
        std::fs::write(&files.1, key)?;
        Ok(files)
    }

    /// How an agent of this name connects by TLS.
    pub(crate) fn client(&self, name: &str) -> Result<Arc<ClientConfig>> {
        let pair = Pair::from_pems(&self.sign(name)?, &self.key.to_pem())?;
        let trust = TrustBundle::from_pem(&self.ca.cert_pem())?;
        Ok(echo::http2(&ClientTls::new(Some(&pair), &trust, Versions::Tls13)?))
    }
}
