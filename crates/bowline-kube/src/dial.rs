//! How connections to the API server are made. The library's own way leaves small writes waiting for
//! an acknowledgement, and takes the proxy of the environment for every server.

use std::time::Duration;

use http::{HeaderValue, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use tower::{BoxError, Service, ServiceBuilder};

use crate::Error;
use crate::refusal::chain;

/// So long a connection may take; what comes after it has the time of the request.
const CONNECT: Duration = Duration::from_secs(10);

/// Which proxy the process is told to use, and for which servers it must not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proxies {
    /// `HTTPS_PROXY`.
    pub(crate) https: String,
    /// `NO_PROXY`.
    pub(crate) none: String,
}

impl Proxies {
    pub(crate) fn of_this_process() -> Self {
        let first = |names: [&str; 2]| {
            names.iter().find_map(|n| std::env::var(n).ok().filter(|v| !v.is_empty()))
        };
        Self {
            https: first(["HTTPS_PROXY", "https_proxy"]).unwrap_or_default(),
            none: first(["NO_PROXY", "no_proxy"]).unwrap_or_default(),
        }
    }

    /// The proxy on the way to a server; none to one on this machine.
    fn on_the_way_to(&self, server: &Uri) -> Option<Intercept> {
        let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
        let address = host.parse::<std::net::IpAddr>();
        if host == "localhost" || address.is_ok_and(|a| a.is_loopback()) {
            return None;
        }
        Matcher::builder()
            .https(self.https.as_str())
            .no(self.none.as_str())
            .build()
            .intercept(server)
    }
}

/// How to come to the server.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    /// Straight, whatever the environment says.
    Straight,
    /// Through the proxy that the kubeconfig names.
    Named(String),
    /// Through the proxy of the environment, if it is for this server.
    Around(Proxies),
}

impl Way {
    fn proxy(&self, server: &Uri) -> Result<Option<(Uri, Option<HeaderValue>)>, Error> {
        let proxy = match self {
            Self::Straight => None,
            Self::Named(url) => {
                let all = Matcher::builder().all(url.as_str()).build();
                let proxy = all.intercept(server);
                let bad = || Error::Credentials(format!("proxy-url {url:?} is no URL"));
                Some(proxy.ok_or_else(bad)?)
            }
            Self::Around(proxies) => proxies.on_the_way_to(server),
        };
        let Some(proxy) = proxy else { return Ok(None) };
        let url = proxy.uri();
        if url.scheme_str() != Some("http") {
            let scheme = url.scheme_str().unwrap_or_default();
            return Err(Error::Credentials(format!(
                "the proxy on the way to {server} has the scheme {scheme}: only http:// proxies, \
                 by CONNECT, are spoken to; name one, or except the server by NO_PROXY"
            )));
        }
        Ok(Some((url.clone(), proxy.basic_auth().cloned())))
    }
}

/// A client of these credentials.
pub(crate) fn client(mut config: kube::Config, way: &Way) -> Result<kube::Client, Error> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    // A request's end must not wait until the server acknowledges its beginning, which a server that
    // has nothing to say does after 40 ms.
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT));
    let proxy = way.proxy(&config.cluster_url)?;
    config.proxy_url = None;
    match proxy {
        None => over(tcp, config),
        Some((url, None)) => over(Tunnel::new(url, tcp), config),
        Some((url, Some(word))) => over(Tunnel::new(url, tcp).with_auth(word), config),
    }
    .map_err(|e| Error::Credentials(chain(&e)))
}

fn over<C>(connector: C, config: kube::Config) -> Result<kube::Client, kube::Error>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Connection + hyper_util::rt::Read + hyper_util::rt::Write + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    let namespace = config.default_namespace.clone();
    let https = config.rustls_https_connector_with_connector(connector)?;
    let client: Client<_, Body> =
        Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(https);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(client);
    // What a credential plugin said of the end of its certificate is told to the library only.
    let until = match config.auth_info.exec {
        Some(_) => *kube::Client::try_from(config)?.valid_until(),
        None => None,
    };
    Ok(ClientBuilder::new(service, namespace).with_valid_until(until).build())
}

#[cfg(test)]
mod tests;
