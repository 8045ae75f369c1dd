//! A peer that is not native: CloudEvents of another dialect, as they are, both ways.

use std::fmt;
use std::sync::Arc;

use bowline_types::NodeId;
use futures_util::{Stream, stream};
use tokio::sync::{mpsc, oneshot};
use tonic::Streaming;

use crate::Error;
use crate::link::{Closed, Core, End, LinkFacts, LinkHandle, error_of};
use crate::proto::cloudevents::CloudEvent;
use crate::proto::eventstreamapi::Event;

/// Events on their way to the transport.
const ROOM: usize = 64;

/// Where to put events, and what the transport takes of them until the link ends. `keep` lives as
/// long as that.
pub(crate) fn outbound<K: Send + 'static>(
    core: &Arc<Core>,
    keep: K,
) -> (mpsc::Sender<CloudEvent>, impl Stream<Item = Event> + Send + use<K>) {
    let (outbound, events) = mpsc::channel(ROOM);
    let sent =
        stream::unfold((events, core.clone(), keep), |(mut events, core, keep)| async move {
            let event: CloudEvent = tokio::select! {
                biased;
                event = events.recv() => event?,
                // A Go agent comes back after a stream that ends well, and after few others.
                () = core.until_ended() => return None,
            };
            core.counters.count_out(prost::Message::encoded_len(&event));
            Some((Event { event: Some(event) }, (events, core, keep)))
        });
    (outbound, sent)
}

/// A live connection to a peer that speaks another dialect, and whose name is proven.
pub struct ForeignLink {
    /// Who it is.
    pub peer: NodeId,
    /// What is known of the connection.
    pub facts: LinkFacts,
    /// To watch and to cut it.
    pub handle: LinkHandle,
    outbound: mpsc::Sender<CloudEvent>,
    inbound: Inbound,
    core: Arc<Core>,
}

/// Where events come from.
pub(crate) enum Inbound {
    /// A call that has not been answered yet: a Go server answers with its first event, which may be
    /// an answer to one of ours.
    Coming(oneshot::Receiver<Result<Streaming<Event>, Error>>),
    /// A stream.
    Open(Box<Streaming<Event>>),
}

impl Inbound {
    /// The next message; may be dropped at any point and called again.
    async fn message(&mut self) -> Result<Option<Event>, Error> {
        if let Self::Coming(answer) = self {
            let gone = |_| Error::Broken("the call was given up".into());
            *self = Self::Open(Box::new(answer.await.map_err(gone)??));
        }
        match self {
            Self::Open(stream) => stream.message().await.map_err(error_of),
            Self::Coming(_) => Ok(None),
        }
    }
}

impl fmt::Debug for ForeignLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForeignLink").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl ForeignLink {
    /// A link whose events go where [`outbound`] leads.
    pub(crate) fn new(
        facts: LinkFacts,
        core: &Arc<Core>,
        outbound: mpsc::Sender<CloudEvent>,
        inbound: Inbound,
    ) -> Self {
        let (peer, handle) = (core.peer.clone(), LinkHandle::of(core));
        Self { peer, facts, handle, outbound, inbound, core: core.clone() }
    }

    /// The next event; none after the end.
    pub async fn next(&mut self) -> Option<CloudEvent> {
        loop {
            let event = tokio::select! {
                event = self.inbound.message() => event,
                () = self.core.until_ended() => return None,
            };
            match event {
                Ok(Some(Event { event: Some(event) })) => {
                    self.core.counters.count_in(prost::Message::encoded_len(&event));
                    return Some(event);
                }
                Ok(Some(Event { event: None })) => {}
                Ok(None) => {
                    self.core.end(End::Clean);
                    return None;
                }
                Err(error) => {
                    self.core.end(End::Failed(error.code(), error.chain()));
                    return None;
                }
            }
        }
    }

    /// How many events may be sent now.
    pub fn room(&self) -> usize {
        self.outbound.capacity()
    }

    /// Waits until an event may be sent.
    pub fn until_room(&self) -> impl Future<Output = ()> + Send + use<> {
        let outbound = self.outbound.clone();
        async move { drop(outbound.reserve().await) }
    }

    /// Sends an event; waits if there is no room.
    pub async fn send(&self, event: CloudEvent) -> Result<(), Closed> {
        self.outbound.send(event).await.map_err(|_| Closed)
    }
}
