//! `agentctl blocklist`.

use clap::{Args, Subcommand};

use super::{Places, said};
use crate::dropin::objects::BLOCKLIST;
use crate::failure::{Failure, Outcome};
use crate::print;

#[derive(Args, Debug)]
pub(super) struct Blocklist {
    #[command(subcommand)]
    verb: Of,
}

#[derive(Subcommand, Debug)]
enum Of {
    /// By the SHA-256 of the certificate, as `agent inspect` prints it
    #[command(subcommand)]
    Tls(Verb),
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Let a certificate count no longer
    Add {
        /// Its fingerprint
        fingerprint: String,
    },
    /// Let it count again
    Remove {
        /// Its fingerprint
        fingerprint: String,
    },
    /// List them
    List,
}

/// As the principal looks for it: 64 hex digits, upper case, nothing between them.
fn normal(fingerprint: &str) -> Outcome<String> {
    let plain = fingerprint.strip_prefix("sha256:").unwrap_or(fingerprint);
    let plain: String = plain.chars().filter(|c| *c != ':').collect();
    if plain.len() == 64 && plain.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(plain.to_ascii_uppercase());
    }
    let what = format!("{fingerprint:?} is not the SHA-256 of a certificate");
    Err(Failure::usage(what).hint("write 64 hex digits, with or without colons"))
}

impl Blocklist {
    pub(super) async fn run(&self, places: &Places) -> Outcome {
        let Of::Tls(verb) = &self.verb;
        let site = places.principal().await?;
        let listed = site.config_map(BLOCKLIST).await?.unwrap_or_default();
        match verb {
            Verb::Add { fingerprint } => {
                let fingerprint = normal(fingerprint)?;
                if listed.contains_key(&fingerprint) {
                    return said("it is on the list already");
                }
                site.set_entry(BLOCKLIST, &fingerprint, Some("")).await?;
                said(&format!("{fingerprint} no longer counts"))
            }
            Verb::Remove { fingerprint } => {
                let fingerprint = normal(fingerprint)?;
                if !listed.contains_key(&fingerprint) {
                    return said("it is not on the list");
                }
                site.set_entry(BLOCKLIST, &fingerprint, None).await?;
                said(&format!("{fingerprint} counts again"))
            }
            Verb::List if listed.is_empty() => said("the list is empty"),
            Verb::List => {
                let rows: String = listed.keys().map(|key| format!("{key}\n")).collect();
                print::out(&format!("FINGERPRINT\n{rows}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_taken_as_tools_write_them() {
        let plain = "AB".repeat(32);
        let colons = vec!["ab"; 32].join(":");
        for text in [plain.clone(), plain.to_lowercase(), colons, format!("sha256:{plain}")] {
            assert_eq!(normal(&text).unwrap(), plain);
        }
        assert!(normal("ab").is_err());
        assert!(normal(&"xy".repeat(32)).is_err());
    }
}
