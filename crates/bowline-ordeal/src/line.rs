//! A line between an agent and the hub that can be cut, held up and made to swallow bytes.

use std::net::SocketAddr;

use anyhow::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What happens to bytes in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// They pass.
    Pass,
    /// They wait, and pass later.
    Hold,
    /// They are gone, and nobody is told.
    Swallow,
}

/// The state of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weather {
    /// From the agent to the hub.
    pub(crate) up: Flow,
    /// From the hub to the agent.
    pub(crate) down: Flow,
    /// Whether new connections are let in.
    pub(crate) open: bool,
    /// Connections of an earlier age are broken.
    age: u64,
}

/// A proxy on a port of its own.
#[derive(Debug)]
pub(crate) struct Line {
    /// Where the agent connects.
    pub(crate) port: u16,
    weather: watch::Sender<Weather>,
}

impl Line {
    /// A whole line to a port.
    pub(crate) fn new(to: u16) -> Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let listener = TcpListener::from_std(listener)?;
        let fair = Weather { up: Flow::Pass, down: Flow::Pass, open: true, age: 0 };
        let (weather, seen) = watch::channel(fair);
        tokio::spawn(async move {
            while let Ok((from, _)) = listener.accept().await {
                if seen.borrow().open {
                    tokio::spawn(join(from, to, seen.clone()));
                }
            }
        });
        Ok(Self { port, weather })
    }

    /// Everything breaks, and nothing gets through.
    pub(crate) fn cut(&self) {
        self.weather.send_modify(|w| (w.open, w.age) = (false, w.age + 1));
    }

    /// What is under way is held or swallowed; new connections meet the same.
    pub(crate) fn stall(&self, up: Flow, down: Flow) {
        self.weather.send_modify(|w| (w.up, w.down) = (up, down));
    }

    /// The line is whole again; `anew`: for new connections only.
    pub(crate) fn heal(&self, anew: bool) {
        self.weather.send_modify(|w| {
            let age = w.age + u64::from(anew);
            *w = Weather { up: Flow::Pass, down: Flow::Pass, open: true, age };
        });
    }
}

async fn join(from: TcpStream, to: u16, weather: watch::Receiver<Weather>) {
    let age = weather.borrow().age;
    let Ok(onward) = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], to))).await else {
        return;
    };
    let ((from_read, from_write), (to_read, to_write)) = (from.into_split(), onward.into_split());
    // When one direction ends, so does the other: both streams are dropped.
    tokio::select! {
        () = pump(from_read, to_write, weather.clone(), age, |w| w.up) => {}
        () = pump(to_read, from_write, weather, age, |w| w.down) => {}
    }
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut weather: watch::Receiver<Weather>,
    age: u64,
    flow: impl Fn(&Weather) -> Flow,
) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let now = *weather.borrow_and_update();
        if now.age != age {
            return;
        }
        if flow(&now) == Flow::Hold {
            if weather.changed().await.is_err() {
                return;
            }
            continue;
        }
        let read = tokio::select! {
            read = from.read(&mut buffer) => read,
            changed = weather.changed() => if changed.is_ok() { continue } else { return },
        };
        let Ok(count @ 1..) = read else { return };
        if flow(&now) == Flow::Pass && to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
