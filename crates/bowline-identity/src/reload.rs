//! Certificates that change on disk: polled by their stamps, and read at once on `reload`.
//!
//! A reload takes everything or nothing. Files that do not fit together (a certificate that came
//! before its key, a half-written bundle) leave what is in use as it is, and are tried again as
//! soon as one of them changes.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::files::{self, Stamp};
use crate::tls::{self, ClientAuth, ClientTls, Pair, ServerTls, Versions};
use crate::{TrustBundle, trust};

/// Why files could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read.
    #[error("a certificate file cannot be read")]
    File(#[from] files::Error),
    /// A certificate and its key cannot be used.
    #[error("the certificate cannot be used")]
    Tls(#[from] tls::Error),
    /// The trust bundle cannot be used.
    #[error("the trust bundle cannot be used")]
    Trust(#[from] trust::Error),
}

/// Where a certificate and its key are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertFiles {
    /// Both in one file, as we write them.
    One(PathBuf),
    /// In two files, as others do.
    Two {
        /// The chain, leaf first.
        cert: PathBuf,
        /// The leaf's key.
        key: PathBuf,
    },
}

impl CertFiles {
    /// Reads them.
    pub fn load(&self) -> Result<Pair, Error> {
        let (cert, key) = match self {
            Self::One(path) => (files::read(path)?, None),
            Self::Two { cert, key } => (files::read(cert)?, Some(files::read(key)?)),
        };
        Ok(Pair::from_pems(&cert, key.as_ref().unwrap_or(&cert))?)
    }

    fn paths(&self) -> Vec<PathBuf> {
        match self {
            Self::One(path) => vec![path.clone()],
            Self::Two { cert, key } => vec![cert.clone(), key.clone()],
        }
    }
}

/// How files looked when somebody last asked.
#[derive(Debug, Default)]
struct Seen(Mutex<Vec<Stamp>>);

impl Seen {
    /// Whether one of these files has changed since this was last asked.
    fn changed(&self, paths: &[PathBuf]) -> bool {
        let now: Vec<_> = paths.iter().map(|path| Stamp::of(path)).collect();
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = *seen != now;
        *seen = now;
        changed
    }
}

/// A certificate and its key that others maintain.
#[derive(Debug)]
pub struct PairReload {
    files: CertFiles,
    seen: Seen,
}

impl PairReload {
    /// Follows these files; nothing is read yet.
    pub fn new(files: CertFiles) -> Self {
        Self { files, seen: Seen::default() }
    }

    /// Reads the files now.
    pub fn load(&self) -> Result<Pair, Error> {
        // The stamps first: what changes while we read is then seen as a change next time.
        self.seen.changed(&self.files.paths());
        self.files.load()
    }

    /// Reads the files if one has changed since they were last read.
    pub fn load_if_changed(&self) -> Result<Option<Pair>, Error> {
        if !self.seen.changed(&self.files.paths()) {
            return Ok(None);
        }
        self.load().map(Some)
    }
}

#[derive(Debug)]
struct Source {
    cert: CertFiles,
    trust: PathBuf,
    seen: Seen,
}

impl Source {
    fn new(cert: CertFiles, trust: PathBuf) -> Self {
        Self { cert, trust, seen: Seen::default() }
    }

    fn load(&self) -> Result<(Pair, TrustBundle), Error> {
        // The stamps first: what changes while we read is then seen as a change next time.
        self.changed();
        Ok((self.cert.load()?, TrustBundle::from_pem(&files::read(&self.trust)?)?))
    }

    /// Whether a file has changed since this was last asked.
    fn changed(&self) -> bool {
        let paths = self.cert.paths().into_iter().chain([self.trust.clone()]);
        self.seen.changed(&paths.collect::<Vec<_>>())
    }
}

/// A port's TLS that follows its files.
#[derive(Debug)]
pub struct ServerReload {
    source: Source,
    tls: ServerTls,
}

impl ServerReload {
    /// Loads the files.
    pub fn open(
        cert: CertFiles,
        trust: PathBuf,
        auth: ClientAuth,
        versions: Versions,
    ) -> Result<Self, Error> {
        let source = Source::new(cert, trust);
        let (pair, bundle) = source.load()?;
        Ok(Self { tls: ServerTls::new(&pair, &bundle, auth, versions)?, source })
    }

    /// The TLS settings.
    pub fn tls(&self) -> &ServerTls {
        &self.tls
    }

    /// Reads the files now, as on SIGHUP.
    pub fn reload(&self) -> Result<(), Error> {
        let (pair, bundle) = self.source.load()?;
        self.tls.set_trust(&bundle)?;
        self.tls.set_pair(&pair);
        Ok(())
    }

    /// Reads the files if one has changed; whether it has. Cheap enough for every few seconds.
    pub fn reload_if_changed(&self) -> Result<bool, Error> {
        if !self.source.changed() {
            return Ok(false);
        }
        self.reload().map(|()| true)
    }
}

/// An agent's TLS that follows its files.
#[derive(Debug)]
pub struct ClientReload {
    source: Source,
    tls: ClientTls,
}

impl ClientReload {
    /// Loads the files.
    pub fn open(cert: CertFiles, trust: PathBuf, versions: Versions) -> Result<Self, Error> {
        let source = Source::new(cert, trust);
        let (pair, bundle) = source.load()?;
        Ok(Self { tls: ClientTls::new(Some(&pair), &bundle, versions)?, source })
    }

    /// The TLS settings.
    pub fn tls(&self) -> &ClientTls {
        &self.tls
    }

    /// Reads the files now, as on SIGHUP.
    pub fn reload(&self) -> Result<(), Error> {
        let (pair, bundle) = self.source.load()?;
        self.tls.set_trust(&bundle)?;
        self.tls.set_pair(&pair);
        Ok(())
    }

    /// Reads the files if one has changed; whether it has.
    pub fn reload_if_changed(&self) -> Result<bool, Error> {
        if !self.source.changed() {
            return Ok(false);
        }
        self.reload().map(|()| true)
    }
}

#[cfg(test)]
mod tests;
