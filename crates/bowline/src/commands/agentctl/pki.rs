//! `agentctl pki`.

use bowline_argocd::auth::Certificate;
use bowline_identity::ca::outside::{PublicKey, addresses_and_names};
use bowline_identity::{Fingerprint, Validity, pem};
use bowline_types::Wall;
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::{Key, Places, Shape, confirmed, now, said};
use crate::dropin::authority::{self, Present, Server};
use crate::dropin::objects::{CA, CLIENT_TLS, PRINCIPAL_TLS, PROXY_TLS, Site};
use crate::failure::{Failure, Outcome};
use crate::print;

/// How long certificates last.
const LEAF_DAYS: u32 = 180;
const CA_DAYS: u32 = 3650;

#[derive(Args, Debug)]
pub(super) struct Pki {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Make a CA in the principal's namespace
    Init {
        /// Replace the one that is there: everything it signed must then be issued anew
        #[arg(long, short = 'f')]
        force: bool,
        /// How many days it lasts
        #[arg(long, default_value_t = CA_DAYS)]
        days: u32,
        #[command(flatten)]
        key: Key,
    },
    /// Bring the CA's certificate to the agent's cluster
    Propagate {
        /// Replace the one that is there
        #[arg(long, short = 'f')]
        force: bool,
    },
    /// Show the CA and what it signed for the principal
    Inspect {
        /// The certificates too, as PEM
        #[arg(long, short = 'f')]
        full: bool,
        /// How to print
        #[arg(long, short = 'o', value_enum, default_value_t)]
        output: Shape,
    },
    /// Delete the CA
    Delete,
    /// Print the CA as PEM
    Dump {
        /// Both
        #[arg(long)]
        all: bool,
        /// Its key
        #[arg(long)]
        key: bool,
        /// Its certificate
        #[arg(long, required_unless_present_any = ["all", "key"])]
        cert: bool,
    },
    /// Issue a certificate
    #[command(subcommand, alias = "new-cert")]
    Issue(Issue),
}

#[derive(Subcommand, Debug)]
enum Issue {
    /// For the agents' port
    Principal {
        /// Addresses that it is good for
        #[arg(long, value_name = "IP", value_delimiter = ',', default_value = "127.0.0.1")]
        ip: Vec<String>,
        /// Names that it is good for
        #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "localhost")]
        dns: Vec<String>,
        #[command(flatten)]
        how: How,
    },
    /// For the resource proxy
    ResourceProxy {
        /// Addresses that it is good for
        #[arg(long, value_name = "IP", value_delimiter = ',')]
        ip: Vec<String>,
        /// Names that it is good for
        #[arg(long, value_name = "NAME", value_delimiter = ',')]
        dns: Vec<String>,
        /// For no address and no name
        #[arg(long, required_unless_present_any = ["ip", "dns"])]
        no_san: bool,
        #[command(flatten)]
        how: How,
    },
    /// For an agent, into its cluster, together with the CA's certificate
    Agent {
        /// The agent's name
        name: String,
        /// Principal and agent are on one cluster
        #[arg(long)]
        same_context: bool,
        #[command(flatten)]
        how: How,
    },
}

#[derive(Args, Clone, Copy, Debug)]
struct How {
    /// Replace the one that is there
    #[arg(long, short = 'u')]
    upsert: bool,
    /// How many days it lasts
    #[arg(long, default_value_t = LEAF_DAYS)]
    days: u32,
    #[command(flatten)]
    key: Key,
}

impl Pki {
    pub(super) async fn run(&self, places: &Places) -> Outcome {
        let site = places.principal().await?;
        match &self.verb {
            Verb::Init { force, days, key } => {
                authority::create(&site, key.making(*days, *force)?, now()).await?;
                said(&format!("the CA is in the Secret {}/{CA}", site.namespace))
            }
            Verb::Propagate { force } => {
                if places.is_one() {
                    let what = "--principal-context and --agent-context must be two clusters";
                    return Err(Failure::usage(what));
                }
                let present = if *force { Present::Replaced } else { Present::Kept };
                let agent = places.agent().await?;
                authority::propagate(&site, &agent, present).await?;
                said(&format!("the CA's certificate is in the Secret {}/{CA}", agent.namespace))
            }
            Verb::Inspect { full, output } => output.print(&inspect(&site, *full).await?),
            Verb::Delete => delete(&site).await,
            Verb::Dump { all, key, cert } => {
                let ca = authority::load(&site).await?;
                if *cert || *all {
                    print::out(&ca.cert_pem())?;
                }
                if *key || *all { print::out(&ca.key_pem()) } else { Ok(()) }
            }
            Verb::Issue(issue) => issue.run(&site, places).await,
        }
    }
}

impl Issue {
    async fn run(&self, site: &Site, places: &Places) -> Outcome {
        let (server, hosts, how) = match self {
            Self::Principal { ip, dns, how } => (Server::Principal, [&ip[..], dns].concat(), how),
            Self::ResourceProxy { ip, dns, how, .. } => {
                (Server::ResourceProxy, [&ip[..], dns].concat(), how)
            }
            Self::Agent { name, same_context, how } => {
                return for_agent(site, places, name, *same_context, *how).await;
            }
        };
        let making = how.key.making(how.days, how.upsert)?;
        authority::issue_server(site, server, hosts, making, now()).await?;
        said(&format!("the certificate is in the Secret {}/{}", site.namespace, server.secret()))
    }
}

async fn for_agent(
    site: &Site,
    places: &Places,
    name: &str,
    same_context: bool,
    how: How,
) -> Outcome {
    if places.is_one() && !same_context {
        let what = "the agent's cluster is not named, or is the principal's";
        let hint = "give --principal-context and --agent-context, or --same-context if it is one";
        return Err(Failure::usage(what).hint(hint));
    }
    super::agent::check_name(name, places)?;
    let agent = places.agent().await?;
    let making = how.key.making(how.days, how.upsert)?;
    authority::issue_agent(site, &agent, name, making, now()).await?;
    let namespace = &agent.namespace;
    said(&format!("the certificate is in the Secret {namespace}/{CLIENT_TLS}, its CA in {CA}"))
}

async fn delete(site: &Site) -> Outcome {
    site.needed(CA, "there is nothing to delete").await?;
    let question = "Every certificate of this CA ends its use. Delete it? Write YES: ";
    if !confirmed(question, "YES") {
        return Err(Failure::new("nothing was deleted"));
    }
    site.delete(CA).await?;
    said(&format!("the Secret {}/{CA} is deleted", site.namespace))
}

async fn inspect(site: &Site, full: bool) -> Outcome<Value> {
    let mut all = Map::new();
    site.needed(CA, "make one with `pki init`").await?;
    for (part, name) in [("ca", CA), ("principal", PRINCIPAL_TLS), ("resourceProxy", PROXY_TLS)] {
        if let Some(secret) = site.secret(name).await? {
            all.insert(part.to_owned(), summary(&secret.text("tls.crt")?, full, part == "ca")?);
        }
    }
    Ok(Value::Object(all))
}

/// What a certificate says, under the names that argocd-agentctl gives it.
fn summary(text: &str, full: bool, is_ca: bool) -> Outcome<Value> {
    let wrong = |e: &dyn std::error::Error| Failure::new(format!("a certificate: {e}"));
    let der = pem::certificates(text).map_err(|e| wrong(&e))?.swap_remove(0);
    let names = Certificate::from_der(&der).map_err(|e| wrong(&e))?;
    let key = PublicKey::of_certificate(&der).map_err(|e| wrong(&e))?;
    let validity = Validity::of(&der).map_err(|e| wrong(&e))?;
    let (ips, dns) = addresses_and_names(&der).map_err(|e| wrong(&e))?;
    let mut out = json!({
        "subject": names.subject, "keyType": key.kind, "keyLength": key.bits,
        "notBefore": rfc1123(validity.not_before), "notAfter": rfc1123(validity.not_after),
        "sha256": hex(&Fingerprint::of(&der)),
    });
    for (field, list) in [("ips", ips), ("dns", dns)] {
        if !list.is_empty() {
            out[field] = json!(list);
        }
    }
    let signs = bowline_identity::TrustBundle::from_pem(text).is_ok();
    if is_ca && !signs {
        out["warnings"] = json!(["it is not the certificate of a CA"]);
    }
    if full {
        out["pem"] = json!(text);
    }
    Ok(out)
}

pub(super) fn hex(fingerprint: &Fingerprint) -> String {
    fingerprint.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `Mon, 16 Nov 2026 09:52:03 +0000`.
pub(super) fn rfc1123(at: Wall) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let text = bowline_resources::rfc3339(Wall(at.0 / 1000 * 1000));
    let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default();
    let month = part(5..7).parse::<usize>().unwrap_or(1).clamp(1, 12);
    // The first day of all was a Thursday.
    let weekday = DAYS[usize::try_from(at.0 / 86_400_000 % 7).unwrap_or(0)];
    let (day, year, time) = (part(8..10), part(0..4), part(11..19));
    format!("{weekday}, {day} {} {year} {time} +0000", MONTHS[month - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_go_writes_them() {
        assert_eq!(rfc1123(Wall(0)), "Thu, 01 Jan 1970 00:00:00 +0000");
        let at = bowline_resources::parse_rfc3339("2026-11-16T09:52:03Z").unwrap();
        assert_eq!(rfc1123(at), "Mon, 16 Nov 2026 09:52:03 +0000");
    }
}
