//! HTTP/2 and WebSocket behind one face, so that every RPC is written once.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use hyper::client::conn::http2::SendRequest;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tower::Service;

use super::DialerOptions;
use super::connect::{Io, timed_open};
use super::trouble::Trouble;
use crate::error::BoxError;
use crate::link::LAST_WORD;
use crate::{Error, Transport, websocket};

/// What carries RPCs.
#[derive(Clone, Debug)]
pub(super) enum Carrier {
    Http2(Http2),
    WebSocket(Arc<WebSockets>),
}

/// One connection for all RPCs.
#[derive(Clone, Debug)]
pub(super) struct Http2 {
    pub(super) sender: SendRequest<Body>,
    /// Cancelled when the connection has ended.
    pub(super) ended: CancellationToken,
    pub(super) trouble: Trouble,
}

impl Http2 {
    /// The library can lose a request that is handed over in the moment in which the connection
    /// ends; nothing would ever answer it.
    async fn call(mut self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let answer = self.sender.send_request(request);
        let lost = async {
            self.ended.cancelled().await;
            tokio::time::sleep(LAST_WORD).await;
        };
        tokio::select! {
            biased;
            answer = answer => Ok(answer?.map(Body::new)),
            () = lost => {
                let what = "the connection ended before the request was sent";
                self.trouble.note(Error::Broken(what.into()));
                Err(what.into())
            }
        }
    }
}

/// A WebSocket for each RPC.
pub(super) struct WebSockets {
    pub(super) options: DialerOptions,
    pub(super) hub: String,
    /// Opened ahead, so that whether the hub can be reached is known before the first RPC.
    pub(super) first: Mutex<Option<Box<dyn Io>>>,
    pub(super) settings: websocket::Settings,
    pub(super) trouble: Trouble,
}

impl std::fmt::Debug for WebSockets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebSockets").field("hub", &self.hub).finish_non_exhaustive()
    }
}

impl WebSockets {
    async fn call(&self, request: Request<Body>) -> Result<Response<Body>, Error> {
        let first = self.first.lock().take();
        let io = match first {
            Some(io) => io,
            None => {
                let (options, way) = (&self.options, Transport::WebSocket);
                timed_open(options, &self.hub, way, &self.trouble).await?.io
            }
        };
        websocket::call(io, &self.hub, request, self.settings.clone()).await
    }
}

impl Service<Request<Body>> for Carrier {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self {
            // What the library makes of this error does not show that the connection is gone.
            Self::Http2(http2) => http2.sender.poll_ready(cx).map_err(|e| {
                http2.trouble.note(Error::Broken(super::chain(&e).into()));
                e.into()
            }),
            Self::WebSocket(_) => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        match self {
            Self::Http2(http2) => Box::pin(http2.clone().call(request)),
            Self::WebSocket(websockets) => {
                let websockets = websockets.clone();
                Box::pin(async move {
                    let answer = websockets.call(request).await;
                    answer.map_err(|error| {
                        let told = error.chain().into();
                        websockets.trouble.note(error);
                        told
                    })
                })
            }
        }
    }
}
