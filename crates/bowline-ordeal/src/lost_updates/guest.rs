//! Our agent at a Go principal.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::role::Role;
use crate::stage::Stage;

/// The agent; killed when dropped.
pub(crate) struct Guest {
    binary: PathBuf,
    args: Vec<String>,
    log: PathBuf,
    role: Option<Role>,
}

impl Guest {
    /// A managed agent that finds its principal at a port; its certificate is in the stage's folder.
    pub(crate) fn start(stage: &Stage, config: &Path, home: &str, port: u16) -> Result<Self> {
        let at = |path: PathBuf| path.display().to_string();
        let file = |name: &str| at(stage.path("certificates").join(name));
        let port = port.to_string();
        let flags = [
            ("--data", at(stage.path("guest"))),
            ("--kubeconfig", at(config.to_owned())),
            ("--namespace", home.to_owned()),
            ("--agent-mode", "managed".into()),
            ("--creds", "mtls:any".into()),
            ("--server-address", "127.0.0.1".into()),
            ("--server-port", port),
            ("--root-ca-path", file("ca.crt")),
            ("--tls-client-cert", file("agent.crt")),
            ("--tls-client-key", file("agent.key")),
            ("--api", "127.0.0.1:0".into()),
            ("--metrics", "off".into()),
            ("--health", "off".into()),
        ];
        let pairs = flags.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]);
        let args = ["agent".to_owned(), "--compat".to_owned()].into_iter().chain(pairs).collect();
        let (binary, log) = (stage.binary.clone(), stage.path("guest.log"));
        let mut guest = Self { binary, args, log, role: None };
        guest.restart()?;
        Ok(guest)
    }

    /// Starts it and waits until it is ready.
    pub(crate) fn restart(&mut self) -> Result<()> {
        let role = self.role.insert(Role::spawn(&self.binary, &self.args, &self.log)?);
        role.ready().map(drop)
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.role = None;
    }
}
