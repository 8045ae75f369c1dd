//! Frames as the messages of `proto/sync.proto`.

use bowline_sync::{Feed, Frame, Row, Said, Target};
use bowline_types::{
    Body, Cursor, Have, Head, Interest, Over, Place, Proposal, ProposalId, Record, ShelfId, Verdict,
};

use super::writer::Writer;

/// The message of a frame; which one it is, the event's type says.
pub(super) fn frame(frame: &Frame) -> Vec<u8> {
    let mut w = Writer::with_capacity(frame.weight() + 64);
    match frame {
        Frame::Hello { session, rows } => {
            w.fixed(1, session.0);
            rows.iter().for_each(|r| w.message(2, |w| row(w, r)));
        }
        Frame::Which { shelf } => put_shelf(&mut w, 1, shelf),
        Frame::Want { shelf, add, drop, full, have } => {
            put_shelf(&mut w, 1, shelf);
            put_interest(&mut w, 2, add);
            put_interest(&mut w, 3, drop);
            w.flag(4, *full);
            put_have(&mut w, 5, have);
        }
        Frame::Deny { shelf, allowed } => {
            put_shelf(&mut w, 1, shelf);
            put_interest(&mut w, 2, allowed);
        }
        Frame::Feed(feed) => put_feed(&mut w, feed),
        Frame::Ack { shelf, number, taken, have } => {
            put_shelf(&mut w, 1, shelf);
            w.number(2, *number);
            w.flag(3, *taken);
            put_have(&mut w, 4, have);
        }
        Frame::Give { shelf, have } => {
            put_shelf(&mut w, 1, shelf);
            put_have(&mut w, 2, have);
        }
        Frame::Propose(proposal) => put_proposal(&mut w, proposal),
        Frame::Verdict { id, verdict } => {
            put_id(&mut w, 1, id);
            put_verdict(&mut w, verdict);
        }
    }
    w.out
}

fn row(w: &mut Writer, row: &Row) {
    put_shelf(w, 1, &row.shelf);
    put_have(w, 2, &row.have);
    if let Some(head) = &row.head {
        w.message(3, |w| put_head(w, head));
    }
    if let Some(head) = &row.best {
        w.message(4, |w| put_head(w, head));
    }
    match &row.interest {
        Said::Full(interest) => w.message(5, |w| prefixes(w, interest)),
        Said::Id(id) => w.present_fixed(6, id.0),
    }
}

fn put_feed(w: &mut Writer, feed: &Feed) {
    w.message(1, |w| put_head(w, &feed.head));
    w.number(2, feed.number);
    w.number(
        3,
        match feed.target {
            Target::Main => 0,
            Target::Aside => 1,
            Target::Fresh => 2,
        },
    );
    put_have(w, 4, &feed.was);
    w.fixed(5, feed.interest.0);
    w.message(6, |w| put_place(w, &feed.to));
    w.number(7, feed.floor);
    put_cursor(w, 8, feed.base);
    feed.records.iter().for_each(|r| w.message(9, |w| put_record(w, r)));
}

fn put_record(w: &mut Writer, record: &Record) {
    w.bytes(1, record.key.as_str().as_bytes());
    w.number(2, record.born);
    w.number(3, record.rev);
    put_body(w, 4, record.body.as_ref());
}

/// The body, and in the field after it whether it is secret.
fn put_body(w: &mut Writer, field: u32, body: Option<&Body>) {
    let Some(body) = body else { return };
    w.bytes(field, &body.bytes);
    w.flag(field + 1, body.secret);
}

fn put_proposal(w: &mut Writer, p: &Proposal) {
    put_id(w, 1, &p.id);
    put_shelf(w, 2, &p.shelf);
    w.fixed(3, p.session.0);
    for guard in &p.guards {
        w.message(4, |w| {
            w.bytes(1, guard.key.as_str().as_bytes());
            if let Some(at) = guard.at {
                w.present(2, at);
            }
        });
    }
    for item in &p.items {
        w.message(5, |w| {
            w.bytes(1, item.key.as_str().as_bytes());
            put_body(w, 2, item.body.as_ref());
        });
    }
    if let Some(ask) = &p.ask {
        w.bytes(6, ask);
    }
    w.number(7, p.settled);
}

fn put_verdict(w: &mut Writer, verdict: &Verdict) {
    match verdict {
        Verdict::Taken { at, answer } => w.message(2, |w| {
            put_cursor(w, 1, *at);
            w.some_bytes(2, answer);
        }),
        Verdict::Refused { at, why } => w.message(3, |w| {
            put_cursor(w, 1, *at);
            w.some_bytes(2, why.as_bytes());
        }),
        Verdict::Unknown => w.bytes(4, b""),
        Verdict::Expired => w.bytes(5, b""),
    }
}

fn put_id(w: &mut Writer, field: u32, id: &ProposalId) {
    w.message(field, |w| {
        w.bytes(1, id.node.as_str().as_bytes());
        w.fixed(2, id.session.0);
        w.number(3, id.number);
    });
}

fn put_shelf(w: &mut Writer, field: u32, shelf: &ShelfId) {
    w.message(field, |w| {
        w.bytes(1, shelf.owner.as_str().as_bytes());
        w.bytes(2, shelf.name.as_str().as_bytes());
    });
}

fn put_cursor(w: &mut Writer, field: u32, cursor: Cursor) {
    if cursor == Cursor::default() {
        return;
    }
    w.message(field, |w| {
        w.fixed(1, cursor.term.0);
        w.number(2, cursor.rev);
    });
}

fn put_interest(w: &mut Writer, field: u32, interest: &Interest) {
    if !interest.is_empty() {
        w.message(field, |w| prefixes(w, interest));
    }
}

fn prefixes(w: &mut Writer, interest: &Interest) {
    interest.iter().for_each(|p| w.bytes(1, p.as_str().as_bytes()));
}

fn put_have(w: &mut Writer, field: u32, have: &Have) {
    if *have == Have::default() {
        return;
    }
    w.message(field, |w| {
        if let Some(place) = &have.main {
            w.message(1, |w| put_place(w, place));
        }
        if let Some(place) = &have.aside {
            w.message(2, |w| put_place(w, place));
        }
    });
}

fn put_place(w: &mut Writer, place: &Place) {
    put_cursor(w, 1, place.cursor);
    put_cursor(w, 2, place.seen);
    if let Some(part) = &place.part {
        w.message(3, |w| {
            put_interest(w, 1, &part.adding);
            w.some_bytes(2, part.after.as_bytes());
        });
    }
}

fn put_head(w: &mut Writer, head: &Head) {
    put_shelf(w, 1, &head.shelf);
    let terms = head.lineage.terms();
    w.packed_fixed(2, terms.iter().map(|t| t.0.0));
    w.packed(3, terms.iter().map(|t| t.1));
    match &head.over {
        Over::All => w.flag(4, true),
        Over::Upto(list) => {
            w.packed_fixed(5, list.iter().map(|c| c.term.0));
            w.packed(6, list.iter().map(|c| c.rev));
        }
    }
    w.number(7, head.floor);
    if let Some(sealed) = head.sealed {
        w.present(8, sealed);
    }
    w.bytes(9, &head.digest.to_bytes());
    w.some_bytes(10, &head.signature.0);
}
