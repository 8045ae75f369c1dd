//! The line to the hub: kept up, and what is known of it.

mod dialect;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bowline_drive::{Handle, LinkNews};
use bowline_identity::tls::{Reason, Whose};
use bowline_sync::FORBIDDEN;
use bowline_types::{LinkId, NodeId, Wall};
use bowline_wire::{
    Backoff, Counters, Dialer, Link, LinkEvent, LinkHandle, Outbound, Reconnector, Transport,
    TunnelRequest, tunnel,
};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::clock::{wall, wall_of};
use crate::identity::{Identity, is_about_certificates};
use crate::shelves::AgentGate;

pub(crate) use dialect::Dialect;

/// How the line stands. A local fact, never a record.
#[derive(Debug, Default)]
pub(crate) struct Line {
    now: Mutex<Standing>,
    /// Links that came up.
    ups: AtomicU64,
    /// Attempts that failed.
    failures: AtomicU64,
    /// What is counted where the other end is a principal.
    pub(crate) dialect: Dialect,
}

/// How the line stands at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    pub(crate) up: Option<Up>,
    /// Since when it is up, or down.
    pub(crate) since: Option<Wall>,
    /// When anything last came in.
    pub(crate) last_contact: Option<Wall>,
    /// What last went wrong.
    pub(crate) error: Option<String>,
    /// What to do about that.
    pub(crate) advice: &'static str,
}

/// A link that is up.
#[derive(Clone, Debug)]
pub(crate) struct Up {
    pub(crate) link: LinkId,
    pub(crate) address: String,
    pub(crate) transport: Transport,
    pub(crate) version: String,
    pub(crate) handle: LinkHandle,
    counters: Arc<Counters>,
    /// How many frames had come when somebody last looked, and when that was.
    seen: (u64, Wall),
}

impl Line {
    /// Takes note of a link that came or went.
    pub(crate) fn take(&self, news: &LinkNews, now: Wall) {
        let mut line = self.now.lock();
        match news {
            LinkNews::Up { link, remote, transport, version, opened, counters, handle, .. } => {
                self.ups.fetch_add(1, Ordering::Relaxed);
                let up = Up {
                    link: *link,
                    address: remote.to_string(),
                    transport: *transport,
                    version: version.clone(),
                    handle: handle.clone(),
                    counters: counters.clone(),
                    seen: (0, wall_of(*opened)),
                };
                (line.up, line.since) = (Some(up), Some(now));
            }
            LinkNews::Down { link, .. } => {
                let ours = line.up.take_if(|up| up.link == *link);
                if ours.is_some() {
                    (line.since, line.last_contact) = (Some(now), Some(now));
                }
            }
        }
    }

    pub(crate) fn failed(&self, why: String, advice: &'static str) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        let mut line = self.now.lock();
        (line.error, line.advice) = (Some(why), advice);
    }

    /// How it stands. When anything last came in is known as exactly as this is called.
    pub(crate) fn standing(&self) -> Standing {
        let mut line = self.now.lock();
        let heard = line.up.as_mut().map(|up| {
            let (frames, _) = up.counters.received();
            if frames != up.seen.0 {
                up.seen = (frames, wall());
            }
            up.seen.1
        });
        line.last_contact = heard.or(line.last_contact);
        line.clone()
    }

    /// Links that came up.
    pub(crate) fn ups(&self) -> u64 {
        self.ups.load(Ordering::Relaxed)
    }

    /// Links that came up after the first one.
    pub(crate) fn reconnects(&self) -> u64 {
        self.ups().saturating_sub(1)
    }

    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    pub(crate) fn is_up(&self) -> bool {
        self.now.lock().up.is_some()
    }

    /// Since when it is up; none while it is down.
    pub(crate) fn up_since(&self) -> Option<Wall> {
        let line = self.now.lock();
        line.since.filter(|_| line.up.is_some())
    }

    /// Ends the link that is up, in good order.
    pub(crate) fn close(&self) {
        if let Some(up) = &self.now.lock().up {
            up.handle.close();
        }
    }
}

/// What keeps the line up.
pub(crate) struct Keeper {
    pub(crate) dialer: Dialer,
    pub(crate) handle: Handle,
    pub(crate) world: Arc<crate::world::World>,
    pub(crate) identity: Arc<Identity>,
    /// Asked before a tunnel is opened.
    pub(crate) gate: AgentGate,
    /// Ends a wait.
    pub(crate) poke: Arc<Notify>,
}

impl Keeper {
    /// Keeps the line up until it is told to stop.
    pub(crate) async fn keep(self, stop: CancellationToken) {
        let mut reconnector = Reconnector::start(self.dialer.clone(), Backoff::default());
        let mut told = Told::default();
        loop {
            let event = tokio::select! {
                event = reconnector.next() => event,
                () = self.poke.notified() => {
                    reconnector.retry_now();
                    continue;
                }
                () = stop.cancelled() => return,
            };
            match event {
                Some(LinkEvent::Up(link)) => {
                    told = Told::default();
                    self.attach(link);
                }
                Some(LinkEvent::Down { end, retry_in }) => {
                    info!(?end, ?retry_in, "the line to the hub is down");
                }
                Some(LinkEvent::Failed { error, retry_in }) => {
                    let (code, why) = (error.code().as_str(), cause(&error));
                    let advice = advice(&error, &why);
                    match told.is_news(code, &why) {
                        true => warn!(code, error = why, advice, ?retry_in, "no line to the hub"),
                        false => debug!(code, error = why, ?retry_in, "still no line to the hub"),
                    }
                    self.world.line.failed(format!("{code}: {why}"), advice);
                    tokio::select! {
                        anew = self.rejoin(&error) => if anew { reconnector.retry_now() },
                        () = stop.cancelled() => return,
                    }
                }
                None => return,
            }
        }
    }

    fn attach(&self, mut link: Link) {
        if let Some(requests) = link.tunnels.take() {
            let tunnels = Tunnels {
                peer: link.peer.clone(),
                gate: self.gate.clone(),
                outbound: link.outbound.clone(),
                dialer: self.dialer.clone(),
            };
            tokio::spawn(tunnels.open(requests));
        }
        let handle = self.handle.clone();
        tokio::spawn(async move { handle.attach(link).await });
    }

    async fn rejoin(&self, error: &bowline_wire::Error) -> bool {
        is_about_certificates(error) && self.identity.rejoin().await
    }
}

/// Why there was no line when that was last logged: a hub that is away for a day is no news each minute.
#[derive(Debug, Default)]
struct Told(Option<(&'static str, String)>);

impl Told {
    /// Whether this has not been logged since the line was last up, or since something else was.
    fn is_news(&mut self, code: &'static str, why: &str) -> bool {
        let same = self.0.as_ref().is_some_and(|(c, w)| *c == code && w == why);
        if !same {
            self.0 = Some((code, why.to_owned()));
        }
        !same
    }
}

/// What went wrong. About certificates, the TLS library speaks to programmers.
fn cause(error: &bowline_wire::Error) -> String {
    match Reason::find(error) {
        Some(reason) if reason.whose == Whose::Theirs => format!("{error}: {reason}"),
        _ => error.chain(),
    }
}

/// What a person can do about a line that does not come up.
fn advice(error: &bowline_wire::Error, why: &str) -> &'static str {
    if is_about_certificates(error) || why.contains("BL-0302") {
        return "see that the address is that of this agent's hub; if it is, start the agent with \
                a new token (`bowline join-token` at the hub, --join here): its data stays";
    }
    if why.contains("a newer link of the same node") {
        return "another process runs with this agent's identity: end one of the two, and join the other \
                anew with a token and a folder of its own";
    }
    // What an RPC library makes of an answer in JSON: its first byte is `{`.
    if why.contains("compression flag") {
        return "this is not the port for agents, maybe the one of the hub's API: give the hub's \
                --listen address with --hub";
    }
    "this agent goes on by itself; see that the address, the proxy and the firewall fit"
}

/// What a link's peer wants opened.
struct Tunnels {
    peer: NodeId,
    gate: AgentGate,
    outbound: Outbound,
    dialer: Dialer,
}

impl Tunnels {
    /// Opens what is asked for, each on a stream of its own, until the link is gone.
    async fn open(self, mut requests: mpsc::Receiver<TunnelRequest>) {
        while let Some(request) = requests.recv().await {
            if let Some(why) = refusal(&self.gate, &self.peer, &request) {
                warn!(peer = %self.peer, why, "a tunnel was refused");
                let _gone = self.outbound.refuse_tunnel(&request, &why);
                continue;
            }
            let (dialer, outbound) = (self.dialer.clone(), self.outbound.clone());
            tokio::spawn(async move {
                match dialer.open_tunnel(&request).await {
                    Ok(open) => {
                        let echoed = tunnel::echo(open).await;
                        debug!(id = request.id, ?echoed, "echo done");
                    }
                    Err(error) => {
                        warn!(error = error.chain(), "a tunnel could not be opened");
                        let _gone = outbound.refuse_tunnel(&request, &error.to_string());
                    }
                }
            });
        }
    }
}

/// Why a tunnel is not opened, if it is not.
fn refusal(gate: &AgentGate, peer: &NodeId, request: &TunnelRequest) -> Option<String> {
    if !gate.streams(peer) {
        return Some(FORBIDDEN.into());
    }
    let known = request.purpose == "echo";
    (!known).then(|| format!("this agent knows no {:?}", request.purpose))
}

#[cfg(test)]
mod tests {
    use bowline_wire::{Error, Refusal};

    use super::*;
    use crate::shelves::Shelves;

    #[test]
    fn the_gate_is_asked_on_streaming() {
        let node = |name| NodeId::new(name).unwrap();
        let gate = AgentGate(Shelves::of(&node("a1")));
        let asked = |purpose: &str| TunnelRequest {
            id: "1".into(),
            purpose: purpose.into(),
            parameters: Default::default(),
        };
        assert_eq!(refusal(&gate, &NodeId::hub(), &asked("echo")), None);
        let odd = refusal(&gate, &NodeId::hub(), &asked("shell"));
        assert!(odd.is_some_and(|why| why.contains("shell")));
        let other = refusal(&gate, &node("a2"), &asked("echo"));
        assert!(other.is_some_and(|why| why.starts_with("BL-0204")));
    }

    #[test]
    fn the_same_trouble_is_logged_once_until_it_changes() {
        let mut told = Told::default();
        assert!(told.is_news("W302", "not trusted"));
        assert!(!told.is_news("W302", "not trusted"));
        assert!(told.is_news("W302", "expired") && told.is_news("W301", "expired"));
        assert!(!told.is_news("W301", "expired"));
        assert!(told.is_news("W302", "not trusted"), "it is back");
    }

    #[test]
    fn advice_is_about_what_went_wrong() {
        let said = |error: Error| advice(&error, &cause(&error));
        let revoked = Error::Refused(Refusal::denied("BL-0302: revoked"));
        assert!(said(revoked).contains("bowline join-token"));
        let api = "protocol error: received message with invalid compression flag: 123";
        let api = Error::Refused(Refusal::denied(api));
        assert!(said(api).contains("not the port for agents"));
        assert!(said(Error::Timeout("an answer")).contains("firewall"));
    }
}
