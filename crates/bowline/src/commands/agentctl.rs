//! `bowline agentctl`, and `argocd-agentctl`: keys, certificates and agents of an installation of
//! argocd-agent, on the same objects as its own tool.

mod agent;
mod blocklist;
mod jwt;
mod names;
mod pki;

use std::path::PathBuf;

use bowline_identity::ca::outside::Algorithm;
use bowline_types::Wall;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use crate::dropin::authority::{Making, Present};
use crate::dropin::objects::{Site, access};
use crate::failure::{Failure, Outcome};
use crate::print;

/// Manage keys, certificates and agents of argocd-agent
#[derive(Args, Debug)]
pub(crate) struct Agentctl {
    #[command(flatten)]
    places: Places,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// The CA and what it signs
    Pki(pki::Pki),
    /// The key that signs agents' tokens
    Jwt(jwt::Jwt),
    /// Agents as Argo CD knows them
    #[command(alias = "agents")]
    Agent(agent::Agent),
    /// Certificates that no longer count
    Blocklist(blocklist::Blocklist),
    /// Print versions
    Version {
        /// Over several lines
        #[arg(long, short = 'i')]
        indent: bool,
    },
}

/// Where the two sides are.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Clusters")]
struct Places {
    /// The context of the control plane in the kubeconfig
    #[arg(long, global = true, value_name = "NAME", env = "ARGOCD_AGENT_PRINCIPAL_CONTEXT")]
    principal_context: Option<String>,
    /// The namespace of the principal
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        env = "ARGOCD_AGENT_PRINCIPAL_NAMESPACE",
        default_value = "argocd"
    )]
    principal_namespace: String,
    /// The context of the agent's cluster in the kubeconfig
    #[arg(long, global = true, value_name = "NAME", env = "ARGOCD_AGENT_AGENT_CONTEXT")]
    agent_context: Option<String>,
    /// The namespace of the agent
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        env = "ARGOCD_AGENT_AGENT_NAMESPACE",
        default_value = "argocd"
    )]
    agent_namespace: String,
    /// A principal by its name in the configuration
    #[arg(long = "principal", id = "named_principal", global = true, value_name = "NAME")]
    principal: Option<String>,
    /// An agent by its name in the configuration
    #[arg(long = "agent", id = "named_agent", global = true, value_name = "NAME")]
    agent: Option<String>,
    /// The configuration of argocd-agentctl, instead of ~/.config/argocd-agent/ctl.conf
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Places {
    async fn principal(&self) -> Outcome<Site> {
        let context = self.principal_context.clone().filter(|c| !c.is_empty());
        Site::open(access(None, context), &self.principal_namespace).await
    }

    async fn agent(&self) -> Outcome<Site> {
        let context = self.agent_context.clone().filter(|c| !c.is_empty());
        Site::open(access(None, context), &self.agent_namespace).await
    }

    /// Whether both sides are one cluster, as far as the contexts say.
    fn is_one(&self) -> bool {
        self.principal_context == self.agent_context
    }
}

/// The kinds of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum KeyKind {
    Rsa,
    #[default]
    EcdsaP256,
    EcdsaP384,
    EcdsaP521,
    Ed25519,
}

/// How a key is made.
#[derive(Args, Clone, Copy, Debug)]
struct Key {
    /// The kind of key
    #[arg(long, value_enum, default_value_t)]
    key_algorithm: KeyKind,
    /// The bits of an RSA key: 2048, 3072 or 4096
    #[arg(long, value_name = "BITS", default_value_t = 4096)]
    key_size: u32,
}

impl Key {
    fn algorithm(self) -> Outcome<Algorithm> {
        Ok(match (self.key_algorithm, self.key_size) {
            (KeyKind::Rsa, 2048) => Algorithm::Rsa2048,
            (KeyKind::Rsa, 3072) => Algorithm::Rsa3072,
            (KeyKind::Rsa, 4096) => Algorithm::Rsa4096,
            (KeyKind::Rsa, other) => {
                let what = format!("an RSA key of {other} bits is not made");
                return Err(Failure::usage(what).hint("use 2048, 3072 or 4096"));
            }
            (KeyKind::EcdsaP256, _) => Algorithm::EcdsaP256,
            (KeyKind::EcdsaP384, _) => Algorithm::EcdsaP384,
            (KeyKind::EcdsaP521, _) => Algorithm::EcdsaP521,
            (KeyKind::Ed25519, _) => Algorithm::Ed25519,
        })
    }

    fn making(self, days: u32, replace: bool) -> Outcome<Making> {
        let present = if replace { Present::Replaced } else { Present::Kept };
        if days == 0 {
            return Err(Failure::usage("--days must be at least 1"));
        }
        Ok(Making { days, algorithm: self.algorithm()?, present })
    }
}

/// How facts are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Shape {
    #[default]
    Json,
    Yaml,
    Text,
}

impl Shape {
    fn print(self, value: &Value) -> Outcome {
        match self {
            Self::Json => {
                let text = serde_json::to_string_pretty(value).unwrap_or_default();
                print::out(&format!("{text}\n"))
            }
            Self::Yaml => print::out(&bowline_resources::yaml(value)),
            Self::Text => print::out(&plain(value, "")),
        }
    }
}

/// `name: value`, a line each.
fn plain(value: &Value, indent: &str) -> String {
    let Value::Object(fields) = value else { return String::new() };
    let mut out = String::new();
    for (name, value) in fields {
        let line = match value {
            Value::Object(_) => format!("\n{}", plain(value, "  ")),
            Value::String(text) => format!(" {text}\n"),
            Value::Array(items) => {
                let items: Vec<_> = items.iter().filter_map(Value::as_str).collect();
                format!(" {}\n", items.join(", "))
            }
            other => format!(" {other}\n"),
        };
        out.push_str(&format!("{indent}{name}:{line}"));
    }
    out
}

fn now() -> Wall {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Wall(since.ok().and_then(|d| u64::try_from(d.as_millis()).ok()).unwrap_or(0))
}

fn said(text: &str) -> Outcome {
    print::out(&format!("{text}\n"))
}

/// Asks on stderr; whether the answer on stdin is this word.
fn confirmed(question: &str, word: &str) -> bool {
    print::note(question);
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).is_ok() && line.trim() == word
}

impl Agentctl {
    pub(crate) async fn run(&self) -> Outcome {
        if let Verb::Version { indent } = &self.verb {
            let value = json!({"name": "bowline", "version": env!("CARGO_PKG_VERSION")});
            return if *indent { Shape::Json.print(&value) } else { said(&value.to_string()) };
        }
        let places = &self.places.found()?;
        match &self.verb {
            Verb::Pki(pki) => pki.run(places).await,
            Verb::Jwt(jwt) => jwt.run(places).await,
            Verb::Agent(agent) => agent.run(places).await,
            Verb::Blocklist(list) => list.run(places).await,
            Verb::Version { .. } => Ok(()),
        }
    }
}
