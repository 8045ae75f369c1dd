//! Certificates for both sides, of one CA that the case makes itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// A CA, with its certificate in a file, and with its key in another.
pub(crate) struct Papers {
    folder: PathBuf,
    ca: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
    /// All agents of a fleet share it, each under a certificate of its own.
    key: KeyPair,
}

impl Papers {
    pub(crate) fn make(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(vec![])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, "bench-ca");
        let ca = params.self_signed(&key)?;
        std::fs::write(folder.join("ca.crt"), ca.pem())?;
        std::fs::write(folder.join("ca.pem"), ca.pem() + &key.serialize_pem())?;
        let (folder, der) = (folder.to_owned(), ca.der().clone());
        Ok(Self { folder, ca: der, issuer: Issuer::new(params, key), key: KeyPair::generate()? })
    }

    /// A file of the folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Signs for a name; `hosts` makes it a server's.
    fn sign(&self, name: &str, hosts: &[&str]) -> Result<rcgen::Certificate> {
        let names = if hosts.is_empty() { vec![name.to_owned()] } else { vec![] };
        let mut params = CertificateParams::new(names)?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        for host in hosts {
            let host = CertificateParams::new(vec![(*host).to_owned()])?;
            params.subject_alt_names.extend(host.subject_alt_names);
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        }
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        Ok(params.signed_by(&self.key, &self.issuer)?)
    }

    /// `NAME.crt` and `NAME.key` in the folder.
    pub(crate) fn write(&self, name: &str, hosts: &[&str]) -> Result<(PathBuf, PathBuf)> {
        let (crt, key) = (self.file(&format!("{name}.crt")), self.file(&format!("{name}.key")));
        std::fs::write(&crt, self.sign(name, hosts)?.pem())?;
        std::fs::write(&key, self.key.serialize_pem())?;
        Ok((crt, key))
    }

    /// How an agent of this name connects by TLS.
    pub(crate) fn client(&self, name: &str) -> Result<Arc<ClientConfig>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.ca.clone())?;
        let key = PrivateKeyDer::from_pem_slice(self.key.serialize_pem().as_bytes())?;
        let chain = vec![self.sign(name, &[])?.der().clone()];
        let mut config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Arc::new(config))
    }
}
