//! The CA in the Secret `argocd-agent-ca`, and what it signs into other Secrets.

use bowline_identity::Ca;
use bowline_identity::ca::outside::{Algorithm, Use, Wish};
use bowline_types::Wall;

use super::objects::{CA, CLIENT_TLS, PRINCIPAL_TLS, PROXY_TLS, Secret, Site, TLS};
use crate::failure::{Code, Failure, Outcome};

/// What becomes of a Secret that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Present {
    /// It stays, and nothing is done.
    Kept,
    /// It gets the new contents.
    Replaced,
}

/// How a key and a certificate are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Making {
    pub(crate) days: u32,
    pub(crate) algorithm: Algorithm,
    pub(crate) present: Present,
}

fn wrong(error: &bowline_identity::ca::Error) -> Failure {
    Failure::of(error)
}

/// Writes a Secret, new or in the place of another.
pub(crate) async fn put(site: &Site, secret: &Secret, present: Present, flag: &str) -> Outcome {
    if site.create(secret).await? {
        return Ok(());
    }
    if present == Present::Kept {
        let what = format!("the Secret {} is there already", secret.name);
        let failure = Failure::new(what).hint(format!("give {flag} to replace what it holds"));
        return Err(Failure { code: Code::Conflict, ..failure });
    }
    let before = site.needed(&secret.name, "it was deleted meanwhile: try again").await?;
    if before.kind != secret.kind {
        let (name, is, should) = (&secret.name, &before.kind, &secret.kind);
        let what = format!("the Secret {name} is of the type {is}, not {should}");
        return Err(Failure::new(what).hint("delete it first: the type of a Secret is fixed"));
    }
    site.replace(&before, secret).await
}

/// Makes a CA.
pub(crate) async fn create(site: &Site, making: Making, now: Wall) -> Outcome {
    let made = Ca::named(CA, making.days, making.algorithm, now).map_err(|e| wrong(&e))?;
    let data = [("tls.crt", made.cert_pem.as_str()), ("tls.key", made.key_pem.as_str())];
    put(site, &Secret::new(CA, TLS, &data), making.present, "--force").await
}

/// The CA, with its key.
pub(crate) async fn load(site: &Site) -> Outcome<Ca> {
    let secret = site.needed(CA, "make one with `pki init`").await?;
    Ca::load(&secret.text("tls.crt")?, &secret.text("tls.key")?).map_err(|e| wrong(&e))
}

/// A certificate for an agent, and its key, as PEM.
pub(crate) fn client(ca: &Ca, agent: &str, making: Making, now: Wall) -> Outcome<(String, String)> {
    let wish = wish(agent, Use::Client, making);
    let issued = ca.issue(&wish, now).map_err(|e| wrong(&e))?;
    Ok((issued.cert_pem, issued.key_pem))
}

fn wish(name: &str, purpose: Use, making: Making) -> Wish<'_> {
    Wish { name, purpose, days: making.days, algorithm: making.algorithm }
}

/// What a server's certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Server {
    /// Agents' port.
    Principal,
    /// Argo CD's way to live resources.
    ResourceProxy,
}

impl Server {
    /// The Secret that it is in.
    pub(crate) fn secret(self) -> &'static str {
        match self {
            Self::Principal => PRINCIPAL_TLS,
            Self::ResourceProxy => PROXY_TLS,
        }
    }

    fn common_name(self) -> &'static str {
        match self {
            Self::Principal => "argocd-agent-principal",
            Self::ResourceProxy => "argocd-agent-resource-proxy",
        }
    }
}

/// Issues a server's certificate into its Secret.
pub(crate) async fn issue_server(
    site: &Site,
    server: Server,
    hosts: Vec<String>,
    making: Making,
    now: Wall,
) -> Outcome {
    let ca = load(site).await?;
    let wish = wish(server.common_name(), Use::Server(hosts), making);
    let issued = ca.issue(&wish, now).map_err(|e| wrong(&e))?;
    put_pair(site, server.secret(), &issued.cert_pem, &issued.key_pem, making.present).await
}

async fn put_pair(site: &Site, name: &str, cert: &str, key: &str, present: Present) -> Outcome {
    let data = [("tls.crt", cert), ("tls.key", key)];
    put(site, &Secret::new(name, TLS, &data), present, "--upsert").await
}

/// Issues an agent's certificate into the agent's own cluster, and the CA with it.
pub(crate) async fn issue_agent(
    principal: &Site,
    agent: &Site,
    name: &str,
    making: Making,
    now: Wall,
) -> Outcome {
    let (cert, key) = client(&load(principal).await?, name, making, now)?;
    put_pair(agent, CLIENT_TLS, &cert, &key, making.present).await?;
    propagate(principal, agent, Present::Replaced).await
}

/// Brings the CA's certificate to an agent's cluster. Where principal and agent share a namespace the
/// Secret is there already, and stays.
pub(crate) async fn propagate(principal: &Site, agent: &Site, present: Present) -> Outcome {
    let same = principal.cluster.server() == agent.cluster.server();
    if same && principal.namespace == agent.namespace {
        return Ok(());
    }
    let ca = principal.needed(CA, "make one with `pki init`").await?;
    let data = [("ca.crt", ca.text("tls.crt")?)];
    let data: Vec<_> = data.iter().map(|(k, v)| (*k, v.as_str())).collect();
    put(agent, &Secret::new(CA, "Opaque", &data), present, "--force").await
}
