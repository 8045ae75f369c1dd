//! The bare transport: a tonic server over the same TLS that knows nothing of shelves. What it does
//! is the most that any hub on this transport could do.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use anyhow::{Context as _, Result};
use bowline_identity::{ClientAuth, HubDir, ServerTls, Versions};
use bowline_wire::proto::eventstreamapi as api;
use bowline_wire::proto::eventstreamapi::event_stream_server::{EventStream, EventStreamServer};
use futures_util::{Stream, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;
use tonic::{Request, Response, Status, Streaming};

use crate::child::ready;
use crate::flag;

/// The metadata that asks for one answer to so many messages.
pub(crate) const EVERY: &str = "answer-every";

/// `echo --identity DIR --port PORT`: serves until it is killed.
pub(crate) async fn serve(args: &[String]) -> Result<()> {
    let dir = HubDir::open(Path::new(flag(args, "--identity")?))?;
    let ca = dir.ca()?.context("no CA")?;
    let names = ["127.0.0.1".to_owned()];
    let now = crate::seed::now();
    let pair = dir.ensure_server(&ca, &names, bowline_identity::ca::SERVER_LIFE, now)?;
    let tls = ServerTls::new(&pair, &ca.bundle(), ClientAuth::Required, Versions::Tls13)?;
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(format!("127.0.0.1:{}", flag(args, "--port")?).parse()?)?;
    let listener = socket.listen(8192)?;
    ready(&[("addr", listener.local_addr()?.to_string())]);
    let acceptor = TlsAcceptor::from(tls.config());
    tonic::transport::Server::builder()
        .add_service(EventStreamServer::new(Echo))
        .serve_with_incoming(accepted(listener, acceptor))
        .await?;
    Ok(())
}

fn accepted(
    listener: TcpListener,
    acceptor: TlsAcceptor,
) -> impl Stream<Item = io::Result<Line>> + Send {
    let (sender, receiver) = tokio::sync::mpsc::channel(64);
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let (acceptor, sender) = (acceptor.clone(), sender.clone());
            tokio::spawn(async move {
                let _ = tcp.set_nodelay(true);
                if let Ok(tls) = acceptor.accept(tcp).await {
                    let _ = sender.send(Ok(Line(tls))).await;
                }
            });
        }
    });
    ReceiverStream::new(receiver)
}

/// A TLS connection as tonic wants it.
struct Line(TlsStream<TcpStream>);

impl Connected for Line {
    type ConnectInfo = ();
    fn connect_info(&self) {}
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

struct Echo;

type Events = Pin<Box<dyn Stream<Item = Result<api::Event, Status>> + Send>>;

#[tonic::async_trait]
impl EventStream for Echo {
    type SubscribeStream = Events;

    async fn subscribe(
        &self,
        request: Request<Streaming<api::Event>>,
    ) -> Result<Response<Events>, Status> {
        let every = request.metadata().get(EVERY).and_then(|v| v.to_str().ok()?.parse().ok());
        let (every, mut count) = (every.unwrap_or(1u64), 0u64);
        let answers = request.into_inner().filter_map(move |message| {
            count += 1;
            let told = count.is_multiple_of(every) || message.is_err();
            std::future::ready(told.then_some(message))
        });
        Ok(Response::new(Box::pin(answers)))
    }

    async fn push(
        &self,
        _: Request<Streaming<api::Event>>,
    ) -> Result<Response<api::PushSummary>, Status> {
        Err(Status::unimplemented("only Subscribe"))
    }

    async fn ping(&self, _: Request<api::PingRequest>) -> Result<Response<api::PongReply>, Status> {
        Ok(Response::new(api::PongReply {}))
    }
}

/// TLS settings for HTTP/2 only.
pub(crate) fn http2(tls: &bowline_identity::ClientTls) -> Arc<tokio_rustls::rustls::ClientConfig> {
    tls.config_for(&["h2"])
}
