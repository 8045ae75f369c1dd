//! Agents that speak argocd-agent's dialect and have nothing to do: they connect, ack what they are
//! sent, and come back when they are cut off. As tasks, so that a thousand of them cost little.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use bowline_argocd::{End, Event};
use bowline_wire::proto::authapi::AuthRequest;
use bowline_wire::proto::authapi::authentication_client::AuthenticationClient;
use bowline_wire::proto::eventstreamapi;
use bowline_wire::proto::eventstreamapi::event_stream_client::EventStreamClient;
use bowline_wire::proto::versionapi::VersionRequest;
use bowline_wire::proto::versionapi::version_client::VersionClient;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Request;
use tonic::transport::{Channel, Endpoint, Uri};

use super::papers::Papers;

/// How long an agent waits before it comes back, as argocd-agent's does at first.
const AGAIN: Duration = Duration::from_secs(1);

/// How far the agents are.
#[derive(Debug, Default)]
struct Counts {
    subscribed: AtomicU64,
    served: AtomicU64,
    failed: AtomicU64,
}

/// Agents. Gone when dropped.
pub(crate) struct Crowd {
    counts: Arc<Counts>,
    began: Instant,
    of: u64,
    _agents: JoinSet<()>,
}

/// When all of them had come so far.
pub(crate) struct Came {
    /// Their subscriptions were answered.
    pub(crate) subscribed: Duration,
    /// They had their first event.
    pub(crate) served: Duration,
    /// Attempts that failed.
    pub(crate) failed: u64,
}

impl Crowd {
    /// Connects all of them at once.
    pub(crate) fn start(papers: &Papers, names: &[String], port: u16) -> Result<Self> {
        let configs = names.iter().map(|name| papers.client(name)).collect::<Result<Vec<_>>>()?;
        let (counts, mut agents) = (Arc::<Counts>::default(), JoinSet::new());
        let began = Instant::now();
        for config in configs {
            agents.spawn(stay(config, port, counts.clone()));
        }
        Ok(Self { counts, began, of: names.len() as u64, _agents: agents })
    }

    /// Waits until each has had an event.
    pub(crate) async fn served(&self, most: Duration) -> Result<Came> {
        let mut subscribed = None;
        loop {
            let took = self.began.elapsed();
            if self.counts.subscribed.load(Ordering::Relaxed) >= self.of {
                subscribed.get_or_insert(took);
            }
            let served = self.counts.served.load(Ordering::Relaxed);
            let failed = self.counts.failed.load(Ordering::Relaxed);
            if served >= self.of {
                let subscribed = subscribed.unwrap_or(took);
                return Ok(Came { subscribed, served: took, failed });
            }
            if took > most {
                bail!("only {served} of {} agents were served within {most:?}", self.of);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn stay(config: Arc<ClientConfig>, port: u16, counts: Arc<Counts>) {
    let mut new = true;
    loop {
        if let Err(error) = session(&config, port, &counts, &mut new).await {
            tracing::debug!(%error, "an agent was cut off");
            counts.failed.fetch_add(1, Ordering::Relaxed);
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn session(
    config: &Arc<ClientConfig>,
    port: u16,
    counts: &Counts,
    new: &mut bool,
) -> Result<()> {
    let channel = connect(config.clone(), port).await?;
    let version = VersionClient::new(channel.clone()).version(VersionRequest {}).await?;
    let version = version.into_inner().version;
    let request = AuthRequest {
        method: "mtls".into(),
        mode: "managed".into(),
        // A principal lets in only agents of its own version.
        version: version.strip_prefix("argocd-agent-").unwrap_or(&version).to_owned(),
        agent_namespace: "argocd".into(),
        ..AuthRequest::default()
    };
    let granted = AuthenticationClient::new(channel.clone()).authenticate(request).await?;
    let (acks, sent) = mpsc::channel(4);
    let mut request = Request::new(ReceiverStream::new(sent));
    let token = granted.into_inner().access_token.parse()?;
    request.metadata_mut().insert("authorization", token);
    let mut events = EventStreamClient::new(channel).subscribe(request).await?.into_inner();
    if *new {
        counts.subscribed.fetch_add(1, Ordering::Relaxed);
    }
    while let Some(event) = events.message().await? {
        if std::mem::take(new) {
            counts.served.fetch_add(1, Ordering::Relaxed);
        }
        let event = Event::from_wire(event.event.context("an event without content")?)?;
        if event.is_tracked() {
            let ack = eventstreamapi::Event { event: Some(event.ack().to_wire(End::Agent)) };
            acks.send(ack).await?;
        }
    }
    Ok(())
}

async fn connect(config: Arc<ClientConfig>, port: u16) -> Result<Channel> {
    let dial = tower::service_fn(move |_: Uri| {
        let config = config.clone();
        async move {
            let tcp = TcpStream::connect(("127.0.0.1", port)).await?;
            tcp.set_nodelay(true)?;
            let host = tokio_rustls::rustls::pki_types::ServerName::try_from("127.0.0.1");
            let host = host.map_err(std::io::Error::other)?;
            TlsConnector::from(config).connect(host, tcp).await.map(TokioIo::new)
        }
    });
    Ok(Endpoint::from_static("http://hub").connect_with_connector(dial).await?)
}
