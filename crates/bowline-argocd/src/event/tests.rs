//! Events against the facts of the wire, and against noise.

use prost::Message as _;

use super::*;
use crate::rng::Rng;

fn full() -> Event {
    let mut event = Event::new(
        Kind::SpecUpdate,
        Target::Application,
        "web_u1",
        "web_u1_7",
        &b"{\"metadata\":{\"name\":\"web\"}}"[..],
    );
    event.subject = Some("a1/web".into());
    event.principal_uid = Some("p1".into());
    event.trace.parent = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into());
    event.rest.insert("tomorrow".into(), "x".into());
    event.stamp(Wall(1_794_787_200_123));
    event
}

fn text(wire: &CloudEvent, name: &str) -> Option<String> {
    match wire.attributes.get(name)?.attr.as_ref()? {
        Attr::CeString(text) => Some(text.clone()),
        other => panic!("{name} is {other:?}"),
    }
}

#[test]
fn the_envelope_is_filled_as_go_fills_it() {
    let wire = full().to_wire(End::Principal);
    assert_eq!((wire.id.as_str(), wire.source.as_str()), ("", ""));
    assert_eq!(wire.spec_version, "1.0");
    assert_eq!(wire.r#type, "io.argoproj.argocd-agent.event.spec-update");
    let schema = wire.attributes["dataschema"].attr.clone();
    assert_eq!(schema, Some(Attr::CeUri("application".into())), "only a URI is read as target");
    assert_eq!(text(&wire, "datacontenttype").as_deref(), Some("application/json"));
    assert_eq!(text(&wire, "subject").as_deref(), Some("a1/web"));
    assert_eq!(text(&wire, "resourceid").as_deref(), Some("web_u1"));
    assert_eq!(text(&wire, "eventid").as_deref(), Some("web_u1_7"));
    assert_eq!(text(&wire, "sentat").as_deref(), Some("2026-11-16T00:00:00.123Z"));
    assert_eq!(text(&wire, "principaluid").as_deref(), Some("p1"));
    assert!(!wire.attributes.contains_key("tracestate") && !wire.attributes.contains_key("time"));
    assert_eq!(full().to_wire(End::Agent).source, "agent://agent-managed");
}

#[test]
fn an_event_survives_the_wire() {
    for event in [full(), full().ack(), Event::heartbeat("h")] {
        let bytes = event.to_wire(End::Agent).encode_to_vec();
        let wire = CloudEvent::decode(&bytes[..]).unwrap();
        assert_eq!(Event::from_wire(wire), Ok(event));
    }
}

#[test]
fn without_payload_the_data_is_there_and_empty() {
    for event in [full().ack(), Event::heartbeat("h")] {
        let wire = event.to_wire(End::Principal);
        assert_eq!(wire.data, Some(Data::BinaryData(Bytes::new())));
        assert!(!wire.attributes.contains_key("datacontenttype"));
        // Field 6 of length 0, last: an absent field would not be on the wire at all.
        assert!(wire.encode_to_vec().ends_with(&[0x32, 0x00]));
    }
}

#[test]
fn an_ack_brings_back_every_extension_and_nothing_else() {
    let (event, ack) = (full(), full().ack());
    assert_eq!((&ack.kind, &ack.target), (&Kind::Processed, &Target::EventProcessed));
    assert_eq!((&ack.resource_id, &ack.event_id), (&event.resource_id, &event.event_id));
    assert_eq!((&ack.sent_at, &ack.rest), (&event.sent_at, &event.rest));
    assert_eq!((&ack.principal_uid, &ack.trace), (&event.principal_uid, &event.trace));
    assert_eq!((ack.subject.as_ref(), ack.payload.len()), (None, 0));
    assert!(event.is_tracked() && !ack.is_tracked() && !Event::heartbeat("h").is_tracked());
}

#[test]
fn a_target_that_is_no_uri_is_no_target() {
    let uri_ref = Attr::CeUriRef("application".into());
    for attr in [Attr::CeString("application".into()), uri_ref, Attr::CeBoolean(true)] {
        let mut wire = full().to_wire(End::Principal);
        let value = CloudEventAttributeValue { attr: Some(attr) };
        wire.attributes.insert("dataschema".into(), value);
        assert_eq!(Event::from_wire(wire).unwrap().target, Target::Other(String::new()));
    }
}

#[test]
fn data_may_come_as_text_or_not_at_all() {
    let mut wire = full().to_wire(End::Principal);
    wire.data = Some(Data::TextData("{}".into()));
    assert_eq!(Event::from_wire(wire.clone()).unwrap().payload, "{}");
    wire.data = None;
    assert_eq!(Event::from_wire(wire).unwrap().payload, "");
}

#[test]
fn the_time_of_sending_is_read_as_go_writes_it() {
    let mut event = full();
    for (text, wall) in [
        ("2026-11-16T00:00:00Z", Some(1_794_787_200_000)),
        ("2026-11-16T00:00:00.123456789Z", Some(1_794_787_200_123)),
        ("2026-11-16T00:00:00.1Z", Some(1_794_787_200_100)),
        ("yesterday", None),
    ] {
        event.sent_at = Some(text.into());
        assert_eq!(event.sent(), wall.map(Wall), "{text}");
        assert_eq!(event.ack().sent_at.as_deref(), Some(text), "brought back as it came");
    }
}

#[test]
fn no_bytes_are_too_strange() {
    let mut rng = Rng(7);
    let (mut read, base) = (0, full().to_wire(End::Principal).encode_to_vec());
    for round in 0..20_000 {
        let bytes = if round % 2 == 0 {
            let count = rng.below(80);
            rng.bytes(count)
        } else {
            damaged(&base, &mut rng)
        };
        let Ok(wire) = CloudEvent::decode(&bytes[..]) else { continue };
        let Ok(event) = Event::from_wire(wire) else { continue };
        read += 1;
        // What was read is written and read back the same: nothing hides in an event.
        let again = CloudEvent::decode(&event.to_wire(End::Agent).encode_to_vec()[..]).unwrap();
        assert_eq!(Event::from_wire(again), Ok(event.clone()));
        let _ = (event.sent(), event.ack().to_wire(End::Agent));
    }
    assert!(read > 2000, "only {read} events were legible: the noise is too loud");
}

fn damaged(base: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = base.to_vec();
    for _ in 0..=rng.below(3) {
        let at = rng.below(bytes.len() as u64) as usize;
        match rng.below(3) {
            0 => bytes[at] ^= 1 << rng.below(8),
            1 => bytes[at] = rng.next() as u8,
            _ => bytes.truncate(at.max(1)),
        }
    }
    bytes
}
