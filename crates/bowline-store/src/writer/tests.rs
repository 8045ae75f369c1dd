//! Groups, order, and what is reported.

use std::sync::mpsc::{Receiver, Sender, channel};

use bowline_types::{Cursor, Slot, Term};

use super::*;
use crate::conformance::{of, write};
use crate::{Loaded, Memory};

/// A store that waits for a word before each commit and says what it was given.
struct Slow {
    store: Memory,
    go: Receiver<()>,
    groups: Sender<Vec<u64>>,
}

impl Store for Slow {
    fn commit(&mut self, batches: &[Batch]) -> Result<(), Error> {
        self.groups.send(batches.iter().map(|b| b.ticket.0).collect()).unwrap();
        self.go.recv().unwrap();
        self.store.commit(batches)
    }

    fn load(&mut self, visit: &mut dyn FnMut(Loaded)) -> Result<(), Error> {
        self.store.load(visit)
    }
}

struct Scene {
    writer: Writer,
    go: Sender<()>,
    groups: Receiver<Vec<u64>>,
    heard: Receiver<Outcome>,
    measured: Receiver<Group>,
}

fn scene() -> Scene {
    let (go, going) = channel();
    let (said_groups, groups) = channel();
    let (said, heard) = channel();
    let (measure, measured) = channel();
    let store = Slow { store: Memory::new(), go: going, groups: said_groups };
    let writer = Writer::start_measured(
        store,
        Box::new(move |outcome| said.send(outcome).unwrap()),
        Box::new(move |group| measure.send(group).unwrap()),
    );
    Scene { writer, go, groups, heard, measured }
}

fn put(ticket: u64, bytes: usize) -> Batch {
    let body = "v".repeat(bytes);
    of(ticket, vec![write("hub/kv", Slot::Own, ticket, &[("k", &body)])])
}

fn persisted(outcome: &Outcome) -> u64 {
    let Outcome::Persisted(ticket) = outcome else { panic!("{outcome:?}") };
    ticket.0
}

#[test]
fn what_waits_during_a_commit_is_committed_together() {
    let s = scene();
    s.writer.submit(put(1, 10));
    assert_eq!(s.groups.recv().unwrap(), [1]);
    (2..=5).for_each(|n| s.writer.submit(put(n, 10)));
    assert!(s.writer.backlog() >= 50);
    s.go.send(()).unwrap();
    assert_eq!(s.groups.recv().unwrap(), [2, 3, 4, 5]);
    s.go.send(()).unwrap();
    assert_eq!(persisted(&s.heard.recv().unwrap()), 1);
    assert_eq!(persisted(&s.heard.recv().unwrap()), 5);
    assert_eq!(s.writer.backlog(), 0);
    let sizes: Vec<_> = s.measured.try_iter().map(|g| (g.batches, g.records)).collect();
    assert_eq!(sizes, [(1, 1), (4, 4)]);
}

#[test]
fn a_group_ends_at_its_bound() {
    let s = scene();
    s.writer.submit(put(1, 1));
    s.groups.recv().unwrap();
    (2..=5).for_each(|n| s.writer.submit(put(n, GROUP_BYTES / 2)));
    (0..3).for_each(|_| s.go.send(()).unwrap());
    assert_eq!(s.groups.recv().unwrap(), [2, 3]);
    assert_eq!(s.groups.recv().unwrap(), [4, 5]);
}

#[test]
fn closing_writes_what_waits() {
    let s = scene();
    s.writer.submit(put(1, 1));
    s.groups.recv().unwrap();
    (2..=9).for_each(|n| s.writer.submit(put(n, 1)));
    (0..2).for_each(|_| s.go.send(()).unwrap());
    s.writer.close();
    assert_eq!(persisted(&s.heard.iter().last().unwrap()), 9);
}

#[test]
fn a_fenced_batch_fails_alone_and_ends_the_writing() {
    let s = scene();
    s.writer.submit(put(1, 1));
    s.groups.recv().unwrap();
    s.writer.submit(put(2, 1));
    let mut stale = put(3, 1);
    stale.writes[0].fence = Some(Cursor { term: Term(1), rev: 1 });
    s.writer.submit(stale);
    s.writer.submit(put(4, 1));
    (0..2).for_each(|_| s.go.send(()).unwrap());
    assert_eq!(persisted(&s.heard.recv().unwrap()), 1);
    assert_eq!(persisted(&s.heard.recv().unwrap()), 2);
    let failed = s.heard.recv().unwrap();
    assert!(matches!(failed, Outcome::Failed(Ticket(3), Error::Fenced { .. })), "{failed:?}");
    s.writer.submit(put(5, 1));
    s.writer.close();
    assert!(s.heard.recv().is_err());
}

#[test]
fn own_writes_do_not_wait_for_the_copies_behind_them() {
    let scene = scene();
    let copy = |ticket| of(ticket, vec![write("a/service", Slot::Main, ticket, &[("k", "v")])]);
    for batch in [put(1, 1), put(2, 1), copy(3), put(4, 1), put(5, 1)] {
        scene.writer.submit(batch);
    }
    // The first was taken before or after the second came; copies go alone either way.
    let mut groups: Vec<Vec<u64>> = vec![];
    while groups.concat().len() < 5 {
        groups.push(scene.groups.recv().unwrap());
        scene.go.send(()).unwrap();
    }
    assert!(groups.contains(&vec![3]), "{groups:?}");
    scene.writer.close();
}

/// A store without room until there is; it says when it is tried.
struct Small {
    store: Memory,
    room: Receiver<bool>,
}

impl Store for Small {
    fn commit(&mut self, batches: &[Batch]) -> Result<(), Error> {
        match self.room.recv().unwrap() {
            true => self.store.commit(batches),
            false => Err(Error::Full { path: "x".into() }),
        }
    }

    fn load(&mut self, visit: &mut dyn FnMut(Loaded)) -> Result<(), Error> {
        self.store.load(visit)
    }
}

fn small() -> (Writer, Sender<bool>, Receiver<Outcome>) {
    let ((give, room), (said, heard)) = (channel(), channel());
    let store = Small { store: Memory::new(), room };
    (Writer::start(store, Box::new(move |outcome| said.send(outcome).unwrap())), give, heard)
}

#[test]
fn without_room_what_was_submitted_waits_and_is_written_in_order_once_there_is() {
    let (writer, room, heard) = small();
    writer.submit(put(1, 10));
    (0..3).for_each(|_| room.send(false).unwrap());
    assert!(matches!(heard.recv().unwrap(), Outcome::Waiting(Ticket(1), _)));
    writer.submit(put(2, 10));
    (0..2).for_each(|_| room.send(true).unwrap());
    assert_eq!(persisted(&heard.recv().unwrap()), 1);
    assert_eq!(persisted(&heard.recv().unwrap()), 2);
    writer.close();
}

#[test]
fn closing_a_store_without_room_fails_what_waits() {
    let (writer, room, heard) = small();
    writer.submit(put(1, 10));
    room.send(false).unwrap();
    assert!(matches!(heard.recv().unwrap(), Outcome::Waiting(Ticket(1), _)));
    room.send(false).unwrap();
    writer.close();
    assert!(matches!(heard.recv().unwrap(), Outcome::Failed(Ticket(1), Error::Full { .. })));
}
