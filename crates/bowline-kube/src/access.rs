//! Where the cluster is and who we are there: kubeconfig or the pod that we run in.

use std::path::PathBuf;

use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;

use crate::Error;
use crate::dial::{self, Proxies, Way};
use crate::refusal::chain;

/// Where credentials come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// A kubeconfig if `KUBECONFIG` is set or the home folder has one, else the pod we run in.
    #[default]
    Infer,
    /// The service account of the pod that we run in.
    InCluster,
    /// A kubeconfig.
    Kubeconfig {
        /// Its file; `KUBECONFIG` or the one in the home folder if none is given.
        path: Option<PathBuf>,
        /// Which of its contexts; its current one if none is given.
        context: Option<String>,
    },
}

/// How a cluster is talked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where credentials come from.
    pub access: Access,
    /// The name under which our fields are owned.
    pub manager: String,
    /// At most so many requests at a time; open watches do not count.
    pub connections: usize,
    /// How we call ourselves in the server's logs.
    pub agent: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            access: Access::Infer,
            manager: "bowline".into(),
            connections: 16,
            agent: concat!("bowline/", env!("CARGO_PKG_VERSION")).into(),
        }
    }
}

/// What the process finds around itself; a parameter, so that tests can have their own.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    /// Whether there is a kubeconfig at one of the usual places.
    pub(crate) kubeconfig: bool,
    /// Host and port of the API server, as pods are told.
    pub(crate) service: Option<(String, String)>,
    /// The folder with the service account's token, authority and namespace.
    pub(crate) mount: PathBuf,
    pub(crate) proxies: Proxies,
}

impl Surroundings {
    pub(crate) fn of_this_process() -> Self {
        let set = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        let home = std::env::home_dir().map(|h| h.join(".kube/config"));
        Self {
            kubeconfig: set("KUBECONFIG").is_some() || home.is_some_and(|f| f.exists()),
            service: set("KUBERNETES_SERVICE_HOST").zip(set("KUBERNETES_SERVICE_PORT")),
            mount: "/var/run/secrets/kubernetes.io/serviceaccount".into(),
            proxies: Proxies::of_this_process(),
        }
    }
}

/// A client with credentials, and where it goes.
pub(crate) struct Opened {
    pub(crate) client: kube::Client,
    pub(crate) server: String,
}

/// Reads credentials and makes a client of them. Sends nothing, but may run a credential plugin.
pub(crate) async fn open(access: &Access, around: &Surroundings) -> Result<Opened, Error> {
    let (mut config, way) = config(access, around).await?;
    trim_token(&mut config)?;
    let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
    // A credential plugin is run, and waited for, in there.
    let made = tokio::task::spawn_blocking(move || dial::client(config, &way)).await;
    let client = made.map_err(|e| Error::Credentials(e.to_string()))??;
    Ok(Opened { client, server })
}

/// The library sends a token file as it is, and fails on the line break at its end. Such a token is
/// read here, and again when the server refuses it.
fn trim_token(config: &mut kube::Config) -> Result<(), Error> {
    let user = &mut config.auth_info;
    let Some(file) = user.token_file.as_ref().filter(|_| user.token.is_none()) else {
        return Ok(());
    };
    let text = std::fs::read_to_string(file)
        .map_err(|e| Error::Credentials(format!("reading the token in {file}: {e}")))?;
    if text.trim() != text {
        (user.token, user.token_file) = (Some(text.trim().to_owned().into()), None);
    }
    Ok(())
}

async fn config(access: &Access, around: &Surroundings) -> Result<(kube::Config, Way), Error> {
    let from_file = |path, context| from_file(path, context, around);
    match access {
        Access::Kubeconfig { path, context } => from_file(path.clone(), context.clone()).await,
        Access::Infer if around.kubeconfig => from_file(None, None).await,
        Access::Infer if around.service.is_none() => Err(Error::Credentials(
            "there is no kubeconfig, and this is no pod; set KUBECONFIG or name a file".into(),
        )),
        // The API server of one's own cluster is never behind a proxy.
        Access::InCluster | Access::Infer => Ok((in_cluster(around).await?, Way::Straight)),
    }
}

async fn from_file(
    path: Option<PathBuf>,
    context: Option<String>,
    around: &Surroundings,
) -> Result<(kube::Config, Way), Error> {
    let named = path.as_ref().map_or_else(|| "kubeconfig".into(), |p| p.display().to_string());
    let failed = |e| Error::Credentials(format!("{named}: {}", chain(&e)));
    let file = match path {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let file = file.map_err(failed)?;
    let way = match proxy_url(&file, context.as_deref()) {
        Some(url) => Way::Named(url),
        None => Way::Around(around.proxies.clone()),
    };
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    let config = kube::Config::from_custom_kubeconfig(file, &options).await.map_err(failed)?;
    Ok((config, way))
}

/// The proxy that a kubeconfig names for the cluster of a context.
fn proxy_url(file: &Kubeconfig, context: Option<&str>) -> Option<String> {
    let context = context.or(file.current_context.as_deref())?;
    let context = file.contexts.iter().find(|c| c.name == context)?.context.as_ref()?;
    let cluster = file.clusters.iter().find(|c| c.name == context.cluster)?.cluster.as_ref()?;
    cluster.proxy_url.clone().filter(|url| !url.is_empty())
}

/// A pod's credentials, put as the kubeconfig that says the same.
async fn in_cluster(around: &Surroundings) -> Result<kube::Config, Error> {
    let Some((host, port)) = &around.service else {
        return Err(Error::Credentials(
            "this is no pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"
                .into(),
        ));
    };
    let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    let authority = around.mount.join("ca.crt");
    let namespace = std::fs::read_to_string(around.mount.join("namespace")).ok();
    let file = json!({
        "current-context": "pod",
        "contexts": [{"name": "pod", "context": {"cluster": "pod", "user": "pod", "namespace": namespace}}],
        "clusters": [{"name": "pod", "cluster": {
            "server": format!("https://{host}:{port}"), "certificate-authority": authority,
        }}],
        "users": [{"name": "pod", "user": {"tokenFile": around.mount.join("token")}}],
    });
    let failed = |why: String| Error::Credentials(format!("service account of this pod: {why}"));
    let file: Kubeconfig = serde_json::from_value(file).map_err(|e| failed(e.to_string()))?;
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(file, &options).await;
    let mut config = config.map_err(|e| failed(chain(&e)))?;
    // Read again now and then: the cluster's authority may change under a running pod.
    config.root_cert_file = Some(authority);
    Ok(config)
}

#[cfg(test)]
mod tests;
