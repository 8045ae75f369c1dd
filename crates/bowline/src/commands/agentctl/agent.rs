//! `agentctl agent`.

use bowline_argocd::auth::Certificate;
use bowline_identity::{Pair, Validity};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::{Key, Places, Shape, now, said};
use crate::commands::pair;
use crate::dropin::authority;
use crate::dropin::cluster_secret::{self, ClusterSecret, Credentials};
use crate::dropin::objects::Site;
use crate::failure::{Code, Failure, Outcome};
use crate::print;

#[derive(Args, Debug)]
pub(super) struct Agent {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Make an agent known to Argo CD
    Create {
        /// The agent's name
        name: String,
        /// Where Argo CD reaches the resource proxy
        #[arg(long, value_name = "HOST:PORT", default_value = "argocd-agent-resource-proxy:9090")]
        resource_proxy_server: String,
        /// A label of the Secret; may be repeated
        #[arg(long, short = 'l', value_name = "KEY=VALUE", value_parser = pair, value_delimiter = ',')]
        label: Vec<(String, String)>,
        /// Take certificate and key from this Secret, [NAMESPACE/]NAME
        #[arg(long, value_name = "SECRET", requires = "ca_from_secret")]
        tls_from_secret: Option<String>,
        /// Take the CA (`ca.crt`) from this Secret, [NAMESPACE/]NAME
        #[arg(long, value_name = "SECRET", requires = "tls_from_secret")]
        ca_from_secret: Option<String>,
        /// How many days the certificate lasts
        #[arg(long, default_value_t = 180)]
        days: u32,
        #[command(flatten)]
        key: Key,
    },
    /// List agents
    List {
        /// Only those with these labels; may be repeated
        #[arg(long, short = 'l', value_name = "SELECTOR")]
        label: Vec<String>,
    },
    /// Show an agent
    #[command(alias = "show")]
    Inspect {
        /// The agent's name
        name: String,
        /// How to print
        #[arg(long, short = 'o', value_enum, default_value_t)]
        output: Shape,
    },
    /// Print a part of what Argo CD shows at the resource proxy, as PEM
    #[command(alias = "dump-tls")]
    PrintTls {
        /// The agent's name
        name: String,
        /// Which part
        #[arg(long = "type", short = 't', value_enum, default_value_t)]
        part: PemPart,
    },
    /// Change an agent
    Reconfigure {
        /// The agent's name
        name: String,
        #[command(flatten)]
        change: Change,
    },
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum PemPart {
    #[default]
    Cert,
    Key,
    Ca,
}

#[derive(Args, Debug)]
struct Change {
    /// Where Argo CD reaches the resource proxy
    #[arg(long, value_name = "HOST:PORT")]
    resource_proxy_server: Option<String>,
    /// Who Argo CD is at the resource proxy
    #[arg(long, value_name = "NAME")]
    resource_proxy_username: Option<String>,
    /// And its password
    #[arg(long, value_name = "SECRET")]
    resource_proxy_password: Option<String>,
    /// Issue its certificate anew
    #[arg(long)]
    reissue_client_cert: bool,
    /// How many days the certificate lasts
    #[arg(long, default_value_t = 180)]
    days: u32,
    #[command(flatten)]
    key: Key,
}

/// An agent's name is a DNS label, and not the principal's namespace.
pub(super) fn check_name(name: &str, places: &Places) -> Outcome {
    bowline_argocd::auth::check_name(name, &places.principal_namespace, None)
        .map_err(|e| Failure::usage(e.to_string()))
}

impl Agent {
    pub(super) async fn run(&self, places: &Places) -> Outcome {
        let site = places.principal().await?;
        match &self.verb {
            Verb::Create { name, resource_proxy_server, label, .. } => {
                check_name(name, places)?;
                let server = cluster_secret::server(resource_proxy_server, name)?;
                let credentials = self.credentials(&site, name).await?;
                let mut cluster = ClusterSecret::new(name, server, &credentials);
                cluster.labels.extend(label.iter().cloned());
                if !site.create(&cluster.secret()).await? {
                    let failure = Failure::new(format!("there is an agent {name} already"));
                    return Err(Failure { code: Code::Conflict, ..failure });
                }
                said(&format!("the agent {name} is known to Argo CD"))
            }
            Verb::List { label } => list(&site, label).await,
            Verb::Inspect { name, output } => output.print(&inspect(&site, name).await?),
            Verb::PrintTls { name, part } => {
                let field = match part {
                    PemPart::Cert => "certData",
                    PemPart::Key => "keyData",
                    PemPart::Ca => "caData",
                };
                print::out(&read(&site, name).await?.pem(field)?)
            }
            Verb::Reconfigure { name, change } => change.apply(&site, name).await,
        }
    }

    /// From Secrets that are there, or issued by the CA.
    async fn credentials(&self, site: &Site, name: &str) -> Outcome<Credentials> {
        let Verb::Create { tls_from_secret, ca_from_secret, days, key, .. } = &self.verb else {
            return Err(Failure::new("only a new agent gets credentials"));
        };
        let (Some(tls), Some(ca)) = (tls_from_secret, ca_from_secret) else {
            return issued(site, name, *days, *key).await;
        };
        let (tls, ca) = (other(site, tls).await?, other(site, ca).await?);
        let (cert, key) = (tls.text("tls.crt")?, tls.text("tls.key")?);
        Pair::from_pems(&cert, &key).map_err(|e| Failure::of(&e))?;
        Ok(Credentials { cert, key, ca: ca.text("ca.crt")? })
    }
}

async fn issued(site: &Site, name: &str, days: u32, key: Key) -> Outcome<Credentials> {
    let ca = authority::load(site).await?;
    let (cert, key) = authority::client(&ca, name, key.making(days, true)?, now())?;
    Ok(Credentials { cert, key, ca: ca.cert_pem() })
}

/// A Secret by `[NAMESPACE/]NAME`.
async fn other(site: &Site, at: &str) -> Outcome<crate::dropin::objects::Secret> {
    let (namespace, name) = at.split_once('/').unwrap_or(("", at));
    let namespace = if namespace.is_empty() { &site.namespace } else { namespace };
    let site = Site { cluster: site.cluster.clone(), namespace: namespace.to_owned() };
    site.needed(name, "name a Secret that is there, as [NAMESPACE/]NAME").await
}

async fn list(site: &Site, labels: &[String]) -> Outcome {
    let mut selector = labels.to_vec();
    selector.push(cluster_secret::AGENT.to_owned());
    let found = site.secrets(&selector.join(",")).await?;
    if found.is_empty() {
        let what = format!("no agents in the namespace {}", site.namespace);
        return Err(Failure::new(what).hint("make one with `agent create NAME`"));
    }
    let names = found.iter().map(|s| s.name.strip_prefix("cluster-").unwrap_or(&s.name));
    print::out(&names.map(|name| format!("{name}\n")).collect::<String>())
}

async fn read(site: &Site, name: &str) -> Outcome<ClusterSecret> {
    let hint = "`agent list` names those that are there";
    ClusterSecret::of(&site.needed(&cluster_secret::name(name), hint).await?)
}

async fn inspect(site: &Site, name: &str) -> Outcome<serde_json::Value> {
    let cluster = read(site, name).await?;
    let wrong = |e: &dyn std::error::Error| Failure::new(format!("its certificate: {e}"));
    let chain = bowline_identity::pem::certificates(&cluster.pem("certData")?);
    let der = chain.map_err(|e| wrong(&e))?.swap_remove(0);
    let validity = Validity::of(&der).map_err(|e| wrong(&e))?;
    let certificate = Certificate::from_der(&der).map_err(|e| wrong(&e))?;
    let moment = |at: bowline_types::Wall| bowline_resources::rfc3339(at);
    Ok(json!({
        "server": cluster.server, "name": cluster.agent,
        "notValidBefore": moment(validity.not_before),
        "notValidAfter": moment(validity.not_after),
        "fingerprint": certificate.fingerprint,
    }))
}

impl Change {
    async fn apply(&self, site: &Site, name: &str) -> Outcome {
        let hint = "`agent list` names those that are there";
        let before = site.needed(&cluster_secret::name(name), hint).await?;
        let mut cluster = ClusterSecret::of(&before)?;
        let unchanged = cluster.clone();
        if let Some(proxy) = &self.resource_proxy_server {
            cluster.server = cluster_secret::server(proxy, name)?;
        }
        let logins = [
            ("username", &self.resource_proxy_username),
            ("password", &self.resource_proxy_password),
        ];
        for (field, value) in logins {
            if let Some(value) = value {
                cluster.config[field] = json!(value);
            }
        }
        if self.reissue_client_cert {
            cluster.set_credentials(&issued(site, name, self.days, self.key).await?);
        }
        if cluster == unchanged {
            return said("nothing to change");
        }
        let mut after = cluster.secret();
        // Fields of Argo CD's that are nobody's business here stay.
        for (field, value) in &before.data {
            after.data.entry(field.clone()).or_insert_with(|| value.clone());
        }
        site.replace(&before, &after).await?;
        said(&format!("the agent {name} is changed"))
    }
}
