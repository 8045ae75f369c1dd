//! Clients of the bare echo: as many connections as a fleet has agents, one stream on each.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bowline_load::Fleet;
use bowline_types::NodeId;
use bowline_wire::Backoff;
use bowline_wire::proto::cloudevents::CloudEvent;
use bowline_wire::proto::cloudevents::cloud_event::Data;
use bowline_wire::proto::eventstreamapi::Event;
use bowline_wire::proto::eventstreamapi::event_stream_client::EventStreamClient;
use bytes::Bytes;
use futures_util::stream;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsConnector;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::MetadataValue;
use tonic::transport::{Channel, Endpoint, Uri};
use tonic::{Request, Streaming};

use crate::echo;

/// A message of `bytes` bytes of payload in the envelope that every frame has.
pub(crate) fn message(bytes: usize) -> Event {
    let event = CloudEvent {
        id: "1".into(),
        source: "bench".into(),
        spec_version: "1.0".into(),
        r#type: "bench".into(),
        attributes: Default::default(),
        data: Some(Data::BinaryData(Bytes::from(vec![b'x'; bytes]))),
    };
    Event { event: Some(event) }
}

/// Opens a connection as an agent would.
async fn connect(fleet: &Fleet, name: &NodeId, addr: &str) -> Result<Channel> {
    let config = echo::http2(&fleet.tls(name)?);
    let addr = addr.to_owned();
    let dial = tower::service_fn(move |_: Uri| {
        let (config, addr) = (config.clone(), addr.clone());
        async move {
            let tcp = TcpStream::connect(&addr).await?;
            tcp.set_nodelay(true)?;
            let host = tokio_rustls::rustls::pki_types::ServerName::try_from("127.0.0.1");
            let host = host.map_err(std::io::Error::other)?;
            TlsConnector::from(config).connect(host, tcp).await.map(TokioIo::new)
        }
    });
    Ok(Endpoint::from_static("http://bare").connect_with_connector(dial).await?)
}

/// Streams that are open and say nothing.
pub(crate) struct Idle {
    open: Arc<AtomicU64>,
    opened: Arc<AtomicU64>,
    count: u64,
    stop: watch::Sender<()>,
}

impl Idle {
    /// Opens one stream for each agent of the fleet and keeps it open, as a reconnector would.
    pub(crate) fn start(fleet: &Fleet, addr: &str) -> Self {
        let (open, opened) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let (stop, stopped) = watch::channel(());
        let count = fleet.len() as u64;
        let (fleet, addr) = (fleet.clone(), addr.to_owned());
        let (gauge, counter) = (open.clone(), opened.clone());
        tokio::spawn(async move {
            for (started, name) in fleet.names().iter().enumerate() {
                while started as u64 >= counter.load(Ordering::Relaxed) + 256 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                let (fleet, name, addr) = (fleet.clone(), name.clone(), addr.clone());
                let (gauge, counter, mut stopped) =
                    (gauge.clone(), counter.clone(), stopped.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        () = keep(&fleet, &name, &addr, &gauge, &counter) => {}
                        _ = stopped.changed() => {}
                    }
                });
            }
        });
        Self { open, opened, count, stop }
    }

    /// How many streams have been opened so far.
    pub(crate) fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// Waits until every stream is open, on a connection that came after `before` others.
    pub(crate) async fn ready(&self, before: u64) -> Result<Duration> {
        let began = Instant::now();
        loop {
            let open = self.open.load(Ordering::Relaxed);
            if open == self.count && self.opened() >= before + self.count {
                return Ok(began.elapsed());
            }
            if began.elapsed() > Duration::from_secs(180) {
                bail!("only {open} of {} bare streams are open", self.count);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) fn stop(self) {
        drop(self.stop);
    }
}

async fn keep(fleet: &Fleet, name: &NodeId, addr: &str, open: &AtomicU64, opened: &AtomicU64) {
    let mut backoff = Backoff::default();
    loop {
        if let Ok((mut streams, sender)) = subscribe(fleet, name, addr).await {
            open.fetch_add(1, Ordering::Relaxed);
            opened.fetch_add(1, Ordering::Relaxed);
            while let Ok(Some(_)) = streams.message().await {}
            drop(sender);
            open.fetch_sub(1, Ordering::Relaxed);
        }
        tokio::time::sleep(backoff.next_wait()).await;
    }
}

/// Opens a stream, and has one message come back.
async fn subscribe(
    fleet: &Fleet,
    name: &NodeId,
    addr: &str,
) -> Result<(Streaming<Event>, mpsc::Sender<Event>)> {
    let channel = connect(fleet, name, addr).await?;
    let (sender, receiver) = mpsc::channel(1);
    let mut client = EventStreamClient::new(channel);
    let mut answers = client.subscribe(ReceiverStream::new(receiver)).await?.into_inner();
    sender.send(message(64)).await?;
    answers.message().await?;
    Ok((answers, sender))
}

/// Messages a second, one way, over as many connections as the fleet has agents.
pub(crate) async fn one_way(
    fleet: &Fleet,
    addr: &str,
    bytes: usize,
    lasting: Duration,
) -> Result<f64> {
    const EVERY: u64 = 500;
    let counted = Arc::new(AtomicU64::new(0));
    let mut tasks = vec![];
    for name in fleet.names() {
        let channel = connect(fleet, name, addr).await?;
        let message = message(bytes);
        let flood = stream::repeat_with(move || message.clone());
        let mut request = Request::new(flood);
        request.metadata_mut().insert(echo::EVERY, MetadataValue::from(EVERY));
        let counted = counted.clone();
        tasks.push(tokio::spawn(async move {
            let mut client = EventStreamClient::new(channel);
            let Ok(answers) = client.subscribe(request).await else { return };
            let mut answers = answers.into_inner();
            while let Ok(Some(_)) = answers.message().await {
                counted.fetch_add(EVERY, Ordering::Relaxed);
            }
        }));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (before, began) = (counted.load(Ordering::Relaxed), Instant::now());
    tokio::time::sleep(lasting).await;
    let messages = counted.load(Ordering::Relaxed) - before;
    let rate = messages as f64 / began.elapsed().as_secs_f64();
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    Ok(rate)
}

/// How long single messages take there and back, one after the other.
pub(crate) async fn ping_pong(
    fleet: &Fleet,
    addr: &str,
    bytes: usize,
    count: usize,
) -> Result<Vec<Duration>> {
    let Some(name) = fleet.names().first() else { bail!("an empty fleet") };
    let (mut answers, sender) = subscribe(fleet, name, addr).await?;
    let mut took = Vec::with_capacity(count);
    for _ in 0..count {
        let began = Instant::now();
        sender.send(message(bytes)).await?;
        answers.message().await?;
        took.push(began.elapsed());
    }
    Ok(took)
}
