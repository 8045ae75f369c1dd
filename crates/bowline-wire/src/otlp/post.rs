//! One request to a collector, on a connection of its own.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::Error;

/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most bytes of an answer that are read.
const ANSWER: usize = 64 * 1024;

/// Where requests go.
pub(super) struct Post {
    uri: Uri,
    host: String,
    port: u16,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl Post {
    pub(super) fn new(endpoint: &str, ca: Option<&Path>) -> Result<Self, Error> {
        let bad = |why: &str| Error::Setting(format!("telemetry endpoint {endpoint:?}: {why}"));
        let full = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
        let uri: Uri = full.parse().map_err(|_| bad("not a URL; write http://host:4318"))?;
        let host = uri.host().ok_or_else(|| bad("it has no host"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let (port, tls) = match uri.scheme_str() {
            Some("http") => (4318, None),
            Some("https") => {
                let ca = ca.ok_or_else(|| bad("https needs the authorities to trust (ca)"))?;
                let name = ServerName::try_from(host.clone()).map_err(|_| bad("a bad host"))?;
                (443, Some((connector(ca)?, name)))
            }
            _ => return Err(bad("it must begin with http:// or https://")),
        };
        let port = uri.port_u16().unwrap_or(port);
        Ok(Self { uri, host, port, tls })
    }

    pub(super) async fn send(&self, body: Bytes) -> Result<(), String> {
        let sent = tokio::time::timeout(PATIENCE, self.exchange(body)).await;
        sent.unwrap_or_else(|_| Err("no answer in time".into()))
    }

    async fn exchange(&self, body: Bytes) -> Result<(), String> {
        let tcp = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(text)?;
        match &self.tls {
            None => self.post(tcp, body).await,
            Some((connector, name)) => {
                let stream = connector.connect(name.clone(), tcp).await.map_err(text)?;
                self.post(stream, body).await
            }
        }
    }

    async fn post<S>(&self, stream: S, body: Bytes) -> Result<(), String>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(text)?;
        // Ends with the exchange: nothing else uses the connection.
        let connection = tokio::spawn(connection);
        let path = self.uri.path_and_query().map_or("/v1/traces", |p| p.as_str());
        let authority = self.uri.authority().map_or("", |a| a.as_str());
        let request = Request::post(path)
            .header(header::HOST, authority)
            .header(header::CONTENT_TYPE, "application/x-protobuf")
            .header(header::CONNECTION, "close")
            .body(Full::new(body))
            .map_err(text)?;
        let answer = sender.send_request(request).await.map_err(text)?;
        let status = answer.status();
        let _unread = Limited::new(answer.into_body(), ANSWER).collect().await;
        connection.abort();
        if status.is_success() { Ok(()) } else { Err(format!("it answers {status}")) }
    }
}

fn text(error: impl std::error::Error) -> String {
    crate::client::chain(&error)
}

fn connector(ca: &Path) -> Result<TlsConnector, Error> {
    let bad = |why: String| Error::Setting(format!("telemetry ca {}: {why}", ca.display()));
    let mut roots = rustls::RootCertStore::empty();
    for cert in CertificateDer::pem_file_iter(ca).map_err(|e| bad(e.to_string()))? {
        roots.add(cert.map_err(|e| bad(e.to_string()))?).map_err(|e| bad(e.to_string()))?;
    }
    if roots.is_empty() {
        return Err(bad("no certificate in it".into()));
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| bad(e.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn an_endpoint_that_cannot_work_is_refused_at_the_start() {
        for (endpoint, why) in [
            ("collector:4318", "http://"),
            ("ftp://collector", "http://"),
            ("http://", "not a URL"),
            ("https://collector", "ca"),
        ] {
            let Err(error) = Post::new(endpoint, None) else { panic!("{endpoint} is taken") };
            assert_eq!(error.code(), crate::Code::Setting);
            assert!(error.to_string().contains(why), "{error}");
        }
        let missing = Post::new("https://collector", Some(Path::new("/nowhere/ca.pem")));
        assert!(missing.is_err_and(|e| e.to_string().contains("/nowhere/ca.pem")));
        let post = Post::new("http://[::1]/otel/", None).unwrap();
        assert_eq!((post.host.as_str(), post.port), ("::1", 4318));
        assert_eq!(post.uri.path(), "/otel/v1/traces");
    }

    #[tokio::test]
    async fn only_a_good_answer_is_good() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let post = Post::new(&format!("http://{}", listener.local_addr().unwrap()), None).unwrap();
        let collector = async {
            for answer in ["200 OK", "503 Busy"] {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = vec![0; 4096];
                let _ = stream.read(&mut request).await.unwrap();
                let answer = format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        };
        let sends = async {
            assert_eq!(post.send(Bytes::new()).await, Ok(()));
            let busy = post.send(Bytes::new()).await.unwrap_err();
            assert!(busy.contains("503"), "{busy}");
        };
        tokio::join!(collector, sends);
        drop(listener);
        assert!(post.send(Bytes::new()).await.is_err(), "nobody is there any more");
    }
}
