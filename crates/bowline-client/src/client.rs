//! One method for each endpoint; this file has what they share.

mod agents;
mod objects;
mod operator;

use std::sync::Arc;
use std::time::Duration;

use bowline_identity::{ClientTls, Versions};
use bytes::Bytes;
use http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH,
};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Error;
use crate::api::{BASE, Problem, paths};

pub use operator::Backup;

/// The largest answer that is read into memory.
const MAX_ANSWER: usize = 64 << 20;

/// How to reach a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// `https://HOST:PORT`, or `http://` on loopback.
    pub server: String,
    /// The authorities to trust, as PEM. Needed for `https`.
    pub ca: Option<Vec<u8>>,
    /// Sent as a bearer token.
    pub token: Option<String>,
    /// Allows `http://` to other machines, where anyone on the way can read the token.
    pub insecure: bool,
    /// How long an answer may take.
    pub timeout: Duration,
}

impl Config {
    /// With nothing but an address.
    pub fn new(server: impl Into<String>) -> Self {
        Self {
            server: server.into(),
            ca: None,
            token: None,
            insecure: false,
            timeout: Duration::from_secs(30),
        }
    }
}

/// What must be so for a write to be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expect {
    /// Nothing.
    #[default]
    Any,
    /// It is not there yet.
    Missing,
    /// It is at this rev.
    Rev(u64),
}

/// A write's answer, and whether it made something new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written<T> {
    /// The answer.
    pub value: T,
    /// It was not there before.
    pub created: bool,
}

/// A client of one server. Clones share their connections.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    http: hyper_util::client::legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    server: String,
    token: Option<HeaderValue>,
    timeout: Duration,
}

/// What is sent with a call.
#[derive(Default)]
pub(crate) struct Call {
    query: String,
    body: Bytes,
    content_type: Option<&'static str>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Call {
    /// With this query; `query` is a flat mapping.
    pub(crate) fn query(mut self, query: &impl Serialize) -> Self {
        let value = serde_json::to_value(query).expect("queries are flat, plain data");
        let Value::Object(map) = value else { return self };
        let pair = |(key, value): (&String, &Value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            format!("{}={}", paths::segment(key), paths::segment(&text))
        };
        self.query =
            map.iter().filter(|(_, v)| !v.is_null()).map(pair).collect::<Vec<_>>().join("&");
        self
    }

    fn json(mut self, body: &impl Serialize) -> Self {
        self.body = serde_json::to_vec(body).expect("plain data with text keys encodes").into();
        self.content_type = Some("application/json");
        self
    }

    fn bytes(mut self, body: Bytes, content_type: &'static str) -> Self {
        (self.body, self.content_type) = (body, Some(content_type));
        self
    }

    fn expect(mut self, expect: Expect) -> Self {
        match expect {
            Expect::Any => {}
            Expect::Missing => self.headers.push((IF_NONE_MATCH, HeaderValue::from_static("*"))),
            Expect::Rev(rev) => {
                let tag = HeaderValue::from_str(&format!("\"{rev}\"")).expect("digits in quotes");
                self.headers.push((IF_MATCH, tag));
            }
        }
        self
    }

    pub(crate) fn accept(mut self, kind: &'static str) -> Self {
        self.headers.push((ACCEPT, HeaderValue::from_static(kind)));
        self
    }
}

impl Client {
    /// A client; nothing is sent yet.
    pub fn new(config: Config) -> Result<Self, Error> {
        let server = config.server.trim_end_matches('/').to_owned();
        let bad = |why: &str| Error::Server { server: config.server.clone(), why: why.into() };
        let uri: Uri = server.parse().map_err(|_| bad("it is not a URL"))?;
        let host = uri.host().ok_or_else(|| bad("it names no host"))?;
        match uri.scheme_str() {
            Some("https") if config.ca.is_none() => {
                return Err(Error::Authority("none is given".into()));
            }
            Some("https") => {}
            Some("http") if config.insecure || is_loopback(host) => {}
            Some("http") => return Err(bad("plain http is only for loopback, or with --insecure")),
            _ => return Err(bad("it begins with neither https:// nor http://")),
        }
        let token = config.token.map(|t| HeaderValue::from_str(&format!("Bearer {t}")));
        let mut token = token.transpose().map_err(|_| Error::Token)?;
        if let Some(value) = &mut token {
            value.set_sensitive(true);
        }
        let tls = tls(config.ca.as_deref().unwrap_or_default())?;
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .build();
        let http =
            hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { inner: Arc::new(Inner { http, server, token, timeout: config.timeout }) })
    }

    /// The server that it talks to.
    pub fn server(&self) -> &str {
        &self.inner.server
    }

    async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &impl Serialize,
    ) -> Result<T, Error> {
        self.call(Method::GET, path, Call::default().query(query)).await.map(|w| w.value)
    }

    async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Error> {
        self.call(Method::POST, path, Call::default().json(body)).await.map(|w| w.value)
    }

    async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.call(Method::DELETE, path, Call::default()).await.map(|w| w.value)
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        call: Call,
    ) -> Result<Written<T>, Error> {
        let work = async {
            let response = self.open(method, path, call).await?;
            let created = response.status() == StatusCode::CREATED;
            let bytes = self.read(response).await?;
            // An empty answer reads as an empty mapping, which is what `Done` is.
            let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
            let value = serde_json::from_slice(text).map_err(|e| self.odd(e))?;
            Ok(Written { value, created })
        };
        tokio::time::timeout(self.inner.timeout, work).await.unwrap_or_else(|_| Err(self.late()))
    }

    /// Sends a call and gives the answer's body to be read; an answer that says no is an error.
    pub(crate) async fn open(
        &self,
        method: Method,
        path: &str,
        call: Call,
    ) -> Result<Response<Incoming>, Error> {
        let mark = if call.query.is_empty() { "" } else { "?" };
        let uri = format!("{}{BASE}{path}{mark}{}", self.inner.server, call.query);
        let mut request = Request::builder().method(method).uri(uri);
        if let Some(token) = &self.inner.token {
            request = request.header(AUTHORIZATION, token);
        }
        if let Some(kind) = call.content_type {
            request = request.header(CONTENT_TYPE, kind);
        }
        for (name, value) in call.headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(call.body)).map_err(|e| self.odd(e))?;
        let response = self.inner.http.request(request).await.map_err(|e| self.cut(e))?;
        // Agents' port answers every path with 200 and an empty body.
        let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        if kind.is_some_and(|kind| kind.starts_with(b"application/grpc")) {
            return Err(Error::AgentsPort { server: self.inner.server.clone() });
        }
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let bytes = self.read(response).await?;
        Err(Error::Refused(Box::new(problem(status, &bytes))))
    }

    async fn read(&self, response: Response<Incoming>) -> Result<Bytes, Error> {
        let body = Limited::new(response.into_body(), MAX_ANSWER);
        body.collect().await.map(http_body_util::Collected::to_bytes).map_err(|e| self.cut(e))
    }

    pub(crate) fn cut(&self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Unreachable { server: self.inner.server.clone(), source: source.into() }
    }

    pub(crate) fn odd(&self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Answer { server: self.inner.server.clone(), source: source.into() }
    }

    pub(crate) fn late(&self) -> Error {
        let seconds = self.inner.timeout.as_secs();
        Error::Timeout { server: self.inner.server.clone(), seconds }
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.inner.timeout
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "client of {}", self.inner.server)
    }
}

/// What a refusal says; whatever stands between may answer without our words.
fn problem(status: StatusCode, bytes: &[u8]) -> Problem {
    let ours: Option<Problem> = serde_json::from_slice(bytes).ok();
    let mut problem = ours.filter(|p| !p.title.is_empty()).unwrap_or_else(|| {
        let title = status.canonical_reason().unwrap_or("refused").to_lowercase();
        let detail: String = String::from_utf8_lossy(bytes).chars().take(200).collect();
        Problem { title, detail: detail.trim().to_owned(), ..Problem::default() }
    });
    problem.status = status.as_u16();
    problem
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn tls(ca: &[u8]) -> Result<rustls::ClientConfig, Error> {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca) {
        let certificate = certificate.map_err(|e| Error::Authority(e.to_string()))?;
        roots.add(certificate).map_err(|e| Error::Authority(e.to_string()))?;
    }
    if !ca.is_empty() && roots.is_empty() {
        return Err(Error::Authority("there is no certificate in it".into()));
    }
    if roots.is_empty() {
        // Nobody is trusted: without an authority only loopback is spoken with, and without TLS.
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has the default protocol versions");
        return Ok(config.with_root_certificates(roots).with_no_client_auth());
    }
    let tls = ClientTls::anchored(roots, Versions::Tls12And13);
    let tls = tls.map_err(|e| Error::Authority(e.to_string()))?;
    Ok(Arc::unwrap_or_clone(tls.config_for(&[])))
}

#[cfg(test)]
mod tests;
