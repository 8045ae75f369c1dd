//! A line between an agent and its hub that counts what passes: the same for us and for others, with
//! all that TLS and HTTP/2 add.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A line to a port of this machine. Cut when dropped.
pub(crate) struct Line {
    pub(crate) port: u16,
    bytes: Arc<AtomicU64>,
    listening: JoinHandle<()>,
}

impl Line {
    /// Listens on `port`, and leads to `to`.
    pub(super) async fn new(port: u16, to: u16) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let bytes = Arc::<AtomicU64>::default();
        let counter = bytes.clone();
        let listening = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(pass(near, to, counter.clone()));
            }
        });
        Ok(Self { port, bytes, listening })
    }

    /// Bytes that have passed, both ways.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn pass(near: TcpStream, to: u16, bytes: Arc<AtomicU64>) {
    // A hub that is down refuses its agent by this line's end.
    let Ok(far) = TcpStream::connect(("127.0.0.1", to)).await else { return };
    let _slower = (near.set_nodelay(true), far.set_nodelay(true));
    let (from_near, to_near) = near.into_split();
    let (from_far, to_far) = far.into_split();
    tokio::select! {
        () = copy(from_near, to_far, &bytes) => {}
        () = copy(from_far, to_near, &bytes) => {}
    }
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    bytes: &AtomicU64,
) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count) = from.read(&mut buffer).await {
        if count == 0 || to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
        bytes.fetch_add(count as u64, Ordering::Relaxed);
    }
}
