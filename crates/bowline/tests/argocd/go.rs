//! What the suites with argocd-agent's own programs share: processes, certificates, ports.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};

use crate::stage::ports;

/// argocd-agent in one of its roles. Killed when dropped.
pub(crate) struct Process {
    pub(crate) args: Vec<String>,
    pub(crate) log: PathBuf,
    child: Option<Child>,
}

impl Process {
    /// A process that does not run yet.
    pub(crate) fn new(args: Vec<String>, log: PathBuf) -> Self {
        Self { args, log, child: None }
    }

    /// A process that runs.
    pub(crate) fn started(args: &[&str], log: PathBuf) -> Self {
        let mut process = Self::new(args.iter().map(|arg| (*arg).to_owned()).collect(), log);
        process.start();
        process
    }

    pub(crate) fn start(&mut self) {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(&self.log).unwrap();
        let program = bowline_testbed::provide("argocd-agent").join("argocd-agent");
        let mut command = Command::new(program);
        command.args(&self.args).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.child = Some(command.spawn().unwrap());
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _gone = (child.kill(), child.wait());
        }
    }

    /// Gives it another value for a flag, from its next start on.
    pub(crate) fn swap_flag(&mut self, from: &str, to: &str) {
        let flag = self.args.iter_mut().find(|flag| *flag == from).unwrap();
        to.clone_into(flag);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A CA in a folder, that issues certificates there.
pub(crate) struct Authority {
    dir: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Makes `ca.crt`, and `ca.pem` with the key.
    pub(crate) fn new(dir: &Path) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![rcgen::KeyUsagePurpose::KeyCertSign, rcgen::KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, "argocd-agent-ca");
        let ca = params.self_signed(&key).unwrap();
        std::fs::write(dir.join("ca.crt"), ca.pem()).unwrap();
        std::fs::write(dir.join("ca.pem"), ca.pem() + &key.serialize_pem()).unwrap();
        Self { dir: dir.to_owned(), issuer: Issuer::new(params, key) }
    }

    /// Makes `FILE.crt` and `FILE.key` for an agent of this name, unless they are there.
    pub(crate) fn agent(&self, file: &str, name: &str) {
        if self.dir.join(format!("{file}.crt")).exists() {
            return;
        }
        self.issue(file, name, vec![name.to_owned()], ExtendedKeyUsagePurpose::ClientAuth);
    }

    /// Makes `FILE.crt` and `FILE.key` for a server on loopback.
    pub(crate) fn server(&self, file: &str) {
        let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
        self.issue(file, file, names, ExtendedKeyUsagePurpose::ServerAuth);
    }

    fn issue(&self, file: &str, name: &str, names: Vec<String>, usage: ExtendedKeyUsagePurpose) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages = vec![usage];
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        let leaf = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.dir.join(format!("{file}.crt")), leaf.pem()).unwrap();
        std::fs::write(self.dir.join(format!("{file}.key")), key.serialize_pem()).unwrap();
    }
}

/// A port of this process's own, as an argument.
pub(crate) fn free_port() -> String {
    ports::free_port().to_string()
}
