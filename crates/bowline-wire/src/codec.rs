//! Frames as CloudEvents, and back. Whatever comes from a peer is bounded and checked here.

mod from_wire;
mod pack;
mod reader;
mod to_wire;
mod writer;

#[cfg(test)]
mod tests;

use bowline_sync::Frame;
use bowline_types::NodeId;
use bytes::Bytes;
use prost::Message;

use crate::proto::cloudevents::CloudEvent;
use crate::proto::cloudevents::cloud_event::Data;
use crate::trace::{self, TraceContext};
use crate::{Error, Limits};

/// What every native frame's event type begins with.
pub const PREFIX: &str = "io.bowline.sync.v1.";
/// The attribute that names how the data is packed.
const PACKING: &str = "packing";

/// Which frame an event carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Hello,
    Which,
    Want,
    Deny,
    Feed,
    Ack,
    Give,
    Propose,
    Verdict,
}

impl Kind {
    const ALL: [Self; 9] = [
        Self::Hello,
        Self::Which,
        Self::Want,
        Self::Deny,
        Self::Feed,
        Self::Ack,
        Self::Give,
        Self::Propose,
        Self::Verdict,
    ];

    fn of(frame: &Frame) -> Self {
        match frame {
            Frame::Hello { .. } => Self::Hello,
            Frame::Which { .. } => Self::Which,
            Frame::Want { .. } => Self::Want,
            Frame::Deny { .. } => Self::Deny,
            Frame::Feed(_) => Self::Feed,
            Frame::Ack { .. } => Self::Ack,
            Frame::Give { .. } => Self::Give,
            Frame::Propose(_) => Self::Propose,
            Frame::Verdict { .. } => Self::Verdict,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Hello => "hello",
            Self::Which => "which",
            Self::Want => "want",
            Self::Deny => "deny",
            Self::Feed => "feed",
            Self::Ack => "ack",
            Self::Give => "give",
            Self::Propose => "propose",
            Self::Verdict => "verdict",
        }
    }
}

/// One end's view of a link's events: who sends them, and what may come back.
#[derive(Clone, Debug)]
pub struct Codec {
    source: NodeId,
    limits: Limits,
    sent: u64,
}

impl Codec {
    /// A codec whose events come from `source`.
    pub fn new(source: NodeId, limits: Limits) -> Self {
        Self { source, limits, sent: 0 }
    }

    /// The event of a frame.
    pub fn encode(&mut self, frame: &Frame, trace: Option<&TraceContext>) -> CloudEvent {
        let kind = format!("{PREFIX}{}", Kind::of(frame).name());
        let (data, packing) = pack::pack(to_wire::frame(frame));
        let mut event = self.event(kind, data);
        if let Some(packing) = packing {
            event.attributes.insert(PACKING.into(), trace::text(packing));
        }
        if let Some(trace) = trace {
            trace.put(&mut event);
        }
        event
    }

    /// Any event of this source.
    pub(crate) fn event(&mut self, kind: String, data: Bytes) -> CloudEvent {
        self.sent += 1;
        CloudEvent {
            id: self.sent.to_string(),
            source: self.source.to_string(),
            spec_version: "1.0".into(),
            r#type: kind,
            attributes: Default::default(),
            data: Some(Data::BinaryData(data)),
        }
    }

    /// The frame of an event. Unknown fields are skipped; an unknown type is an error that the
    /// caller may pass over.
    pub fn decode(&self, event: CloudEvent) -> Result<(Frame, Option<TraceContext>), Error> {
        decode(event, &self.limits)
    }
}

fn decode(event: CloudEvent, limits: &Limits) -> Result<(Frame, Option<TraceContext>), Error> {
    let name = event.r#type.strip_prefix(PREFIX);
    let kind = name.and_then(|name| Kind::ALL.into_iter().find(|k| k.name() == name));
    let Some(kind) = kind else { return Err(Error::UnknownFrame(shown(&event.r#type))) };
    let trace = TraceContext::of(&event);
    let packing = trace::attribute(&event, PACKING).map(ToOwned::to_owned);
    let Some(Data::BinaryData(data)) = event.data else {
        return Err(Error::Malformed { frame: kind.name(), what: "no binary data" });
    };
    let bad = |bad| match bad {
        reader::Bad::Shape(what) => Error::Malformed { frame: kind.name(), what },
        reader::Bad::Limit(what, limit) => Error::TooLarge { what, limit },
    };
    let data = pack::unpack(data, packing.as_deref(), limits.inflated).map_err(bad)?;
    let frame = from_wire::frame(kind, &data, limits).map_err(bad)?;
    Ok((frame, trace))
}

/// A peer's text, short enough for an error.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}

/// Takes any bytes as an encoded event and tries to make a frame of them: what fuzzers call. A
/// frame that comes out must survive the way back.
pub fn fuzz_decode(bytes: &[u8]) {
    let Ok(event) = CloudEvent::decode(bytes) else { return };
    let Ok((frame, trace)) = decode(event, &Limits::default()) else { return };
    let mut codec = Codec::new(NodeId::hub(), Limits::default());
    let again = codec.encode(&frame, trace.as_ref());
    let back = codec.decode(again).expect("what was read can be written and read again");
    assert_eq!(back, (frame, trace), "the way there and back changes nothing");
}
