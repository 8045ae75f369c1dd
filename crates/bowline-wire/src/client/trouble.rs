//! What a connection met below the RPCs. An RPC that fails learns from its library only that the
//! connection is gone; why is noted here, before the library hears of it.
//!
//! In TLS 1.3 a client's handshake is over before the hub has looked at its certificate: the hub's
//! no comes later, as an alert, and may be overtaken by a failed write.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::Mutex;
use rustls::AlertDescription;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::Error;

/// The first thing that went wrong with a connection, for whoever asks first.
#[derive(Clone, Debug, Default)]
pub(super) struct Trouble(Arc<Mutex<Option<Error>>>);

impl Trouble {
    pub(super) fn note(&self, error: Error) {
        self.0.lock().get_or_insert(error);
    }

    pub(super) fn take(&self) -> Option<Error> {
        self.0.lock().take()
    }
}

/// A stream that notes the alert by which the hub ends it.
pub(super) struct Heard<S> {
    stream: S,
    addr: String,
    trouble: Trouble,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Heard<S> {
    pub(super) fn new(stream: S, addr: &str, trouble: Trouble) -> Self {
        Self { stream, addr: addr.into(), trouble }
    }

    fn note(&self, error: &io::Error) {
        if let Some(alert) = alert_in(error) {
            let source = io::Error::new(error.kind(), Alert(alert));
            self.trouble.note(Error::Tls { addr: self.addr.clone(), source });
        }
    }

    /// Writing fails when the hub has hung up; its alert may still lie there unread.
    fn read_on(&mut self, cx: &mut Context<'_>) {
        let mut block = [0; 512];
        loop {
            let mut buf = ReadBuf::new(&mut block);
            match Pin::new(&mut self.stream).poll_read(cx, &mut buf) {
                Poll::Ready(Ok(())) if !buf.filled().is_empty() => {}
                Poll::Ready(Err(error)) => return self.note(&error),
                Poll::Ready(Ok(())) | Poll::Pending => return,
            }
        }
    }

    fn written<T>(
        &mut self,
        cx: &mut Context<'_>,
        result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if matches!(result, Poll::Ready(Err(_))) {
            self.read_on(cx);
        }
        result
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Heard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_read(cx, buf);
        if let Poll::Ready(Err(error)) = &result {
            self.note(error);
        }
        result
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Heard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.written(cx, result)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_flush(cx);
        self.written(cx, result)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.written(cx, result)
    }
}

/// The alert that an error is about.
pub(super) fn alert_in(error: &io::Error) -> Option<AlertDescription> {
    match error.get_ref()?.downcast_ref::<rustls::Error>()? {
        rustls::Error::AlertReceived(alert) => Some(*alert),
        _ => None,
    }
}

/// A hub's alert, in words that say what to do.
#[derive(Debug)]
struct Alert(AlertDescription);

impl std::error::Error for Alert {}

impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, advice) = match self.0 {
            AlertDescription::CertificateExpired => (
                "the hub says that this agent's certificate has expired",
                "check the clocks, then join anew with a token of `bowline join-token`",
            ),
            AlertDescription::CertificateRevoked => (
                "the hub says that this agent's certificate is revoked",
                "join anew with a token of `bowline join-token`, if that is what you want",
            ),
            AlertDescription::UnknownCA | AlertDescription::DecryptError => (
                "this agent's certificate is of an authority that the hub does not know",
                "check that this is the right hub, else join with a token of this one",
            ),
            AlertDescription::CertificateRequired | AlertDescription::NoCertificate => (
                "the hub wants a certificate and this agent has none",
                "join with a token of `bowline join-token`",
            ),
            AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::AccessDenied => (
                "the hub does not take this agent's certificate",
                "check the clocks, then join anew with a token of `bowline join-token`",
            ),
            _ => ("the hub ended TLS", "see the hub's log at debug"),
        };
        write!(f, "{what} (alert {:?}); {advice}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection that the other end has closed after an alert.
    struct HungUp;

    impl AsyncRead for HungUp {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let alert = rustls::Error::AlertReceived(AlertDescription::CertificateExpired);
            Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, alert)))
        }
    }

    impl AsyncWrite for HungUp {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.poll_flush(cx)
        }
    }

    #[tokio::test]
    async fn a_write_that_fails_first_does_not_hide_the_alert() {
        use tokio::io::AsyncWriteExt;
        let trouble = Trouble::default();
        let mut stream = Heard::new(HungUp, "hub:1", trouble.clone());
        let error = stream.write_all(b"x").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        let noted = trouble.take().expect("the alert was there to be read");
        assert_eq!(noted.code(), crate::Code::Tls);
        assert!(noted.chain().contains("has expired"), "{}", noted.chain());
    }
}
