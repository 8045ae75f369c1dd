//! A request's body that says so when it was not whole. The HTTP library takes some ends of a
//! connection, a peer that stopped answering among them, for the end of the body.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::BoxError;

pub(super) struct Whole {
    body: Incoming,
    over: bool,
}

impl Whole {
    pub(super) fn new(body: Incoming) -> Self {
        Self { body, over: false }
    }
}

impl Body for Whole {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.over {
            return Poll::Ready(None);
        }
        let next = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
            Some(Ok(frame)) => return Poll::Ready(Some(Ok(frame))),
            // As text: what lies below must not be taken for the peer's word.
            Some(Err(error)) => Some(Err(crate::client::chain(&error).into())),
            None if self.body.is_end_stream() => None,
            None => Some(Err("the peer is gone".into())),
        };
        self.over = true;
        Poll::Ready(next)
    }

    fn is_end_stream(&self) -> bool {
        self.over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
