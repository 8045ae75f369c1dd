//! What a later version may send, as recorded files, and what must come of each here.

use bowline_types::{Cursor, InterestId, Term};
use prost::Message;

use super::samples::{feed, recorded};
use super::*;
use crate::Code;
use crate::proto::sync;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/frames");

/// Fields that no message has yet: a varint, bytes, a fixed64, a fixed32.
const NEW: [u8; 27] = [
    0xc0, 0x0c, 0x07, // 200
    0xca, 0x0c, 0x02, 0xff, 0xff, // 201
    0xd1, 0x0c, 1, 2, 3, 4, 5, 6, 7, 8, // 202
    0xdd, 0x0c, 1, 2, 3, 4, // 203
    0xe0, 0x0c, 0x01, // 204
];

/// What must come of a frame.
enum Fate {
    /// It is read as this.
    Read(Box<Frame>),
    /// It is reported and passed over; the link goes on.
    Skipped,
    /// It ends the link, with W102 and this.
    Refused(&'static str),
}

fn read(frame: Frame) -> Fate {
    Fate::Read(Box::new(frame))
}

/// A message and new fields behind it.
fn with_new(message: &impl Message) -> Vec<u8> {
    [message.encode_to_vec(), NEW.to_vec()].concat()
}

/// A field that is a message.
fn field(number: u8, message: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    prost::encoding::encode_varint(message.len() as u64, &mut out);
    out.extend_from_slice(message);
    out
}

fn hub_kv() -> sync::Shelf {
    sync::Shelf { owner: "hub".into(), name: "kv".into() }
}

fn cursor() -> sync::Cursor {
    sync::Cursor { term: 7, rev: 9 }
}

/// A hello with new fields in every message that it is made of.
fn hello() -> Vec<u8> {
    let cursor = with_new(&cursor());
    let place = [field(1, &cursor), field(2, &cursor), NEW.to_vec()].concat();
    let have = [field(1, &place), NEW.to_vec()].concat();
    let interest = with_new(&sync::Interest { prefixes: vec!["a/".into()] });
    let shelf = with_new(&hub_kv());
    let row = [field(1, &shelf), field(2, &have), field(5, &interest), NEW.to_vec()].concat();
    let session = sync::Hello { session: 5, rows: vec![] };
    [session.encode_to_vec(), field(2, &row), NEW.to_vec()].concat()
}

fn hello_read() -> Frame {
    let at = Cursor { term: Term(7), rev: 9 };
    let main = bowline_types::Place { cursor: at, seen: at, part: None };
    let interest = [bowline_types::Prefix::new("a/").unwrap()].into_iter().collect();
    let row = bowline_sync::Row {
        shelf: "hub/kv".parse().unwrap(),
        have: bowline_types::Have { main: Some(main), aside: None },
        head: None,
        best: None,
        interest: bowline_sync::Said::Full(interest),
    };
    Frame::Hello { session: Term(5), rows: vec![row] }
}

/// A feed of two records, with new fields in its head, its place, its records and itself.
fn fed() -> Vec<u8> {
    let mut wire = sync::Feed::decode(&*to_wire::frame(&feed(2))).unwrap();
    let (head, to) = (wire.head.take().unwrap(), wire.to.take().unwrap());
    let records = std::mem::take(&mut wire.records);
    let records = records.iter().map(|r| field(9, &with_new(r)));
    let parts = [wire.encode_to_vec(), field(1, &with_new(&head)), field(6, &with_new(&to))];
    parts.into_iter().chain(records).chain([NEW.to_vec()]).collect::<Vec<_>>().concat()
}

fn one(name: &str) -> Frame {
    recorded().into_iter().find(|(n, _)| *n == name).unwrap().1
}

/// What a later version could say with the messages of this one.
fn stuffed(name: &str) -> (Vec<u8>, Fate) {
    let frame = one(name);
    ([to_wire::frame(&frame), NEW.to_vec()].concat(), read(frame))
}

/// Every file by its name: the event that it was made of, and its fate.
fn cases() -> Vec<(&'static str, CloudEvent, Fate)> {
    let event = |kind: &str, data: Vec<u8>| event_of(kind, data);
    let known = |kind: &'static str| {
        let (data, fate) = stuffed(kind);
        (kind, event(kind, data), fate)
    };
    let mut aside = event("which", to_wire::frame(&one("which")));
    aside.attributes.insert("priority".into(), trace::text("high"));
    let mut packed = event("feed", to_wire::frame(&feed(2)));
    packed.attributes.insert(PACKING.into(), trace::text("brotli"));
    let mut text = event("which", vec![]);
    text.data = Some(Data::TextData("{}".into()));
    let mut target = sync::Feed::decode(&*to_wire::frame(&feed(2))).unwrap();
    target.target = 3;
    let id = sync::ProposalId { node: "a1".into(), session: 1, number: 1 };
    let verdict = [field(1, &id.encode_to_vec()), field(6, &[])].concat();
    // A group, which protobuf has given up: field 200, begun and ended.
    let group = [to_wire::frame(&one("which")), vec![0xc3, 0x0c, 0xc4, 0x0c]].concat();
    let other = codec().event("io.bowline.sync.v2.feed".into(), to_wire::frame(&feed(2)).into());
    vec![
        ("hello", event("hello", hello()), read(hello_read())),
        ("feed", event("feed", fed()), read(feed(2))),
        known("want"),
        known("deny"),
        known("ack"),
        known("give"),
        known("propose"),
        known("verdict"),
        ("which-attribute", aside, read(one("which"))),
        ("gossip", event("gossip", NEW.to_vec()), Fate::Skipped),
        ("feed-of-version-2", other, Fate::Skipped),
        (
            "feed-target",
            event("feed", target.encode_to_vec()),
            Fate::Refused("malformed feed: an unknown target"),
        ),
        ("feed-packing", packed, Fate::Refused("malformed feed: unknown packing")),
        ("verdict-kind", event("verdict", verdict), Fate::Refused("malformed verdict: no verdict")),
        ("which-text", text, Fate::Refused("malformed which: no binary data")),
        ("which-group", event("which", group), Fate::Refused("malformed which: unknown wire type")),
    ]
}

#[test]
fn what_was_recorded_of_a_later_version_is_read_skipped_or_refused_with_a_code() {
    let mut files = 0;
    for (name, _, fate) in cases() {
        let bytes = std::fs::read(format!("{FOLDER}/later-{name}.bin")).unwrap();
        let got = codec().decode(CloudEvent::decode(Bytes::from(bytes)).unwrap());
        match (fate, got) {
            (Fate::Read(frame), Ok((got, _))) => assert_eq!(got, *frame, "{name}"),
            (Fate::Skipped, Err(e)) => {
                assert!(e.is_skippable() && e.code() == Code::UnknownFrame, "{name}: {e}");
            }
            (Fate::Refused(why), Err(e)) => {
                assert!(!e.is_skippable() && e.code() == Code::Malformed, "{name}: {e}");
                assert_eq!(e.to_string(), why, "{name}");
            }
            (_, got) => panic!("{name}: {got:?}"),
        }
        files += 1;
    }
    let there = std::fs::read_dir(FOLDER).unwrap().map(|e| e.unwrap().file_name());
    let there = there.filter(|name| name.to_string_lossy().starts_with("later-")).count();
    assert_eq!(there, files, "a file that nobody looks at");
}

/// An interest of which only the id is known is not taken for another one by a new way to say it.
#[test]
fn a_row_whose_interest_is_said_in_a_new_way_wants_nothing() {
    let row = [field(1, &hub_kv().encode_to_vec()), field(7, &NEW)].concat();
    let data = [sync::Hello { session: 5, rows: vec![] }.encode_to_vec(), field(2, &row)].concat();
    let Ok((Frame::Hello { rows, .. }, _)) = codec().decode(event_of("hello", data)) else {
        panic!("no hello")
    };
    let nothing = bowline_sync::Said::Full(bowline_types::Interest::none());
    assert_eq!(rows[0].interest, nothing);
    assert_ne!(rows[0].interest, bowline_sync::Said::Id(InterestId(0)));
}

/// Run by hand when a case is added, never to make the test above pass.
#[test]
#[ignore = "writes tests/frames"]
fn record_later_frames() {
    for (name, event, _) in cases() {
        std::fs::write(format!("{FOLDER}/later-{name}.bin"), event.encode_to_vec()).unwrap();
    }
}
