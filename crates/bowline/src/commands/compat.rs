//! `bowline agent --compat`: the agent of an unmodified principal of argocd-agent. The flags bear the
//! names that they have there.

use std::path::PathBuf;

use bowline_agent::{
    ClientCertificate, Pem, PrincipalCredentials, PrincipalLine, PrincipalMapping,
    PrincipalOptions, PrincipalRoots, PrincipalTransport, Versions,
};
use bowline_resources::Mode;
use clap::Args;

use crate::config::GoPrincipal;
use crate::failure::{Failure, Outcome};
use crate::quantity::Span;

/// Flags of an agent at a principal of argocd-agent.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "At a principal of argocd-agent")]
pub(super) struct Compat {
    /// Work for a principal of argocd-agent in a hub's place
    #[arg(long, requires = "server_address")]
    compat: bool,
    /// The principal's host
    #[arg(long, value_name = "HOST", requires = "compat")]
    server_address: Option<String>,
    /// The principal's port
    #[arg(long, value_name = "PORT", default_value_t = 443)]
    server_port: u16,
    /// How to say who this is: mtls:, userpass:FILE (with NAME:SECRET) or header:
    #[arg(long, value_name = "HOW", default_value = "mtls:")]
    creds: String,
    /// Whose word counts: managed or autonomous
    #[arg(long, value_name = "MODE", default_value = "autonomous")]
    agent_mode: Mode,
    /// The CA of the principal's certificate
    #[arg(long, value_name = "FILE")]
    root_ca_path: Option<PathBuf>,
    /// This agent's certificate
    #[arg(long, value_name = "FILE", requires = "tls_client_key")]
    tls_client_cert: Option<PathBuf>,
    /// Its key
    #[arg(long, value_name = "FILE", requires = "tls_client_cert")]
    tls_client_key: Option<PathBuf>,
    /// Go by WebSocket in place of HTTP/2
    #[arg(long)]
    enable_websocket: bool,
    /// Compress what is sent
    #[arg(long)]
    enable_compression: bool,
    /// Applications keep the namespaces that they have at the principal; it must be told the same
    #[arg(long)]
    destination_based_mapping: bool,
    /// How often to say that this is there; 0s: never
    #[arg(long, value_name = "TIME", default_value = "0s")]
    heartbeat_interval: Span,
    /// Do without TLS
    #[arg(long, conflicts_with_all = ["root_ca_path", "tls_client_cert", "insecure_tls"])]
    insecure_plaintext: bool,
    /// Believe any certificate
    #[arg(long, conflicts_with = "root_ca_path")]
    insecure_tls: bool,
}

impl Compat {
    /// The principal that was asked for, if one was.
    pub(super) fn principal(&self, settings: &GoPrincipal) -> Outcome<Option<PrincipalOptions>> {
        let Some(host) = self.server_address.as_ref().filter(|_| self.compat) else {
            return Ok(None);
        };
        let mut options = PrincipalOptions::new(address(host, self.server_port), self.line()?);
        options.credentials = credentials(&self.creds)?;
        options.mode = self.agent_mode;
        if self.enable_websocket {
            options.transport = PrincipalTransport::WebSocket;
        }
        options.compression = self.enable_compression;
        options.mapping = mapping(self.destination_based_mapping, self.agent_mode)?;
        options.heartbeat = Some(self.heartbeat_interval.0).filter(|every| !every.is_zero());
        options.proof = settings.proof.0;
        Ok(Some(options))
    }

    fn line(&self) -> Outcome<PrincipalLine> {
        if self.insecure_plaintext {
            return Ok(PrincipalLine::Plaintext);
        }
        let roots = match &self.root_ca_path {
            Some(path) => PrincipalRoots::Pem(Pem::File(path.clone())),
            None if self.insecure_tls => PrincipalRoots::Insecure,
            None => {
                let what = "whom to believe that it is the principal is not known";
                return Err(Failure::usage(what).hint("give the CA's file with --root-ca-path"));
            }
        };
        let client = self.tls_client_cert.as_ref().zip(self.tls_client_key.as_ref());
        let client = client.map(|(certificate, key)| ClientCertificate {
            certificate: Pem::File(certificate.clone()),
            key: Pem::File(key.clone()),
        });
        Ok(PrincipalLine::Tls { roots, client, versions: Versions::Tls12And13 })
    }
}

/// A host and a port as one text; an address with colons gets its brackets.
pub(super) fn address(host: &str, port: u16) -> String {
    match host.contains(':') && !host.starts_with('[') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

/// What `--destination-based-mapping` says.
pub(super) fn mapping(by_destination: bool, mode: Mode) -> Outcome<PrincipalMapping> {
    match (by_destination, mode) {
        (false, _) => Ok(PrincipalMapping::Namespace),
        (true, Mode::Managed) => Ok(PrincipalMapping::Destination),
        (true, Mode::Autonomous) => {
            let what = "--destination-based-mapping is for managed agents";
            Err(Failure::usage(what).hint("leave it out, or say --agent-mode managed"))
        }
    }
}

/// What `--creds` says, as argocd-agent reads it.
pub(super) fn credentials(text: &str) -> Outcome<PrincipalCredentials> {
    let (method, rest) = text.split_once(':').unwrap_or((text, ""));
    match method {
        "mtls" => Ok(PrincipalCredentials::Mtls),
        "header" => Ok(PrincipalCredentials::Header),
        "userpass" => {
            let read = std::fs::read_to_string(rest);
            let read = read.map_err(|e| Failure::new(format!("reading {rest}: {e}")))?;
            let pair = read.trim().split_once(':');
            let (name, secret) =
                pair.filter(|(n, s)| !n.is_empty() && !s.is_empty()).ok_or_else(|| {
                    Failure::usage(format!("{rest} does not hold one line NAME:SECRET"))
                })?;
            Ok(PrincipalCredentials::UserPass { name: name.into(), secret: secret.into() })
        }
        _ => {
            let what = format!("{text:?} is no way to say who this is");
            Err(Failure::usage(what).hint("use mtls:, userpass:FILE or header:"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port() {
        assert_eq!(address("principal.example.com", 443), "principal.example.com:443");
        assert_eq!(address("::1", 8443), "[::1]:8443");
        assert_eq!(address("[::1]", 8443), "[::1]:8443");
    }

    #[test]
    fn credentials_are_read_as_argocd_agent_reads_them() {
        assert!(matches!(credentials("mtls:CN=(.*)"), Ok(PrincipalCredentials::Mtls)));
        assert!(matches!(credentials("header:"), Ok(PrincipalCredentials::Header)));
        assert!(credentials("magic").is_err());
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("creds");
        std::fs::write(&file, "a1:se:cret\n").expect("written");
        let read = credentials(&format!("userpass:{}", file.display())).expect("read");
        let PrincipalCredentials::UserPass { name, secret } = read else { panic!("not userpass") };
        assert_eq!((name.as_str(), secret.as_str()), ("a1", "se:cret"));
        std::fs::write(&file, "nothing").expect("written");
        assert!(credentials(&format!("userpass:{}", file.display())).is_err());
    }
}
