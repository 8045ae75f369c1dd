//! `agentctl jwt`.

use bowline_argocd::claims::Signer;
use bowline_identity::ca::outside::PublicKey;
use clap::{Args, Subcommand};
use serde_json::json;

use super::pki::{hex, rfc1123};
use super::{Places, Shape, confirmed, said};
use crate::dropin::authority::{self, Present};
use crate::dropin::objects::{JWT, JWT_FIELD, Secret};
use crate::failure::{Failure, Outcome};

#[derive(Args, Debug)]
pub(super) struct Jwt {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Make a key (RSA, 2048 bits: argocd-agent signs with no other sort)
    #[command(name = "create-key")]
    Create {
        /// Replace the one that is there: agents must then authenticate anew
        #[arg(long, short = 'u')]
        upsert: bool,
    },
    /// Show what is public of it
    #[command(name = "inspect-key")]
    Inspect {
        /// How to print
        #[arg(long, short = 'o', value_enum, default_value_t)]
        output: Shape,
    },
    /// Delete it
    #[command(name = "delete-key")]
    Delete {
        /// Do not ask
        #[arg(long, short = 'f')]
        force: bool,
    },
}

impl Jwt {
    pub(super) async fn run(&self, places: &Places) -> Outcome {
        let site = places.principal().await?;
        match &self.verb {
            Verb::Create { upsert } => {
                let pem = Signer::generate_pem().map_err(|e| Failure::of(&e))?;
                let secret = Secret::new(JWT, "Opaque", &[(JWT_FIELD, &pem)]);
                let present = if *upsert { Present::Replaced } else { Present::Kept };
                authority::put(&site, &secret, present, "--upsert").await?;
                said(&format!("the key is in the Secret {}/{JWT}", site.namespace))
            }
            Verb::Inspect { output } => {
                let secret = site.needed(JWT, "make one with `jwt create-key`").await?;
                let key = PublicKey::of_private(&secret.text(JWT_FIELD)?);
                let key = key.map_err(|e| Failure::of(&e))?;
                let made = secret.created.as_deref().and_then(bowline_resources::parse_rfc3339);
                output.print(&json!({
                    "keyType": key.kind, "keyLength": key.bits,
                    "created": made.map(rfc1123), "sha256": hex(&key.fingerprint),
                }))
            }
            Verb::Delete { force } => {
                let question = "Tokens of agents end their use. Delete the key? [y/N]: ";
                if !force && !confirmed(question, "y") {
                    return Err(Failure::new("nothing was deleted"));
                }
                match site.delete(JWT).await? {
                    true => said(&format!("the Secret {}/{JWT} is deleted", site.namespace)),
                    false => said(&format!("there is no Secret {}/{JWT}", site.namespace)),
                }
            }
        }
    }
}
