//! A turn ends, whatever is in the inbox.

use std::time::Duration;

use bowline_store::Memory;
use bowline_sync::{Open, Plan, Recovery};
use bowline_types::{Body, ShelfName, Signature};

use super::*;
use crate::fold::NoDecider;

struct Unsigned;

impl Sealer for Unsigned {
    fn sign(&self, _: &[u8]) -> Signature {
        Signature("signed".into())
    }
    fn verify(&self, _: &NodeId, _: &NodeId, _: &[u8], _: &Signature) -> bool {
        true
    }
}

fn node() -> Drive {
    let options = Options {
        id: NodeId::new("a1").unwrap(),
        limits: Limits::default(),
        gate: Box::new(Open),
        sealer: Box::new(Unsigned),
        folds: vec![],
        decider: Box::new(NoDecider),
        on_halt: Box::new(|why| panic!("{why}")),
    };
    start(options, Memory::new()).unwrap()
}

fn shelf(owner: &str) -> ShelfId {
    ShelfId::new(NodeId::new(owner).unwrap(), ShelfName::new("kv").unwrap())
}

/// A read that asks for the next one: the inbox is never empty again.
fn read_on(handle: &Handle) {
    let next = handle.clone();
    let _stopped = handle.send(Message::Read(Box::new(move |_| read_on(&next))));
}

#[tokio::test]
async fn an_inbox_full_of_reads_holds_up_neither_the_clock_nor_the_disk() {
    let drive = node();
    let handle = drive.handle();
    handle.open(shelf("a1"), Plan::new(Recovery::Ask));
    read_on(&handle);
    let limit = Duration::from_secs(60);
    // Only the clock ends it: there is no link to the hub.
    let (hub, patience) = (shelf("hub"), Duration::from_millis(1));
    let asked = handle.propose(&hub, vec![], vec![], None, patience);
    let verdict = tokio::time::timeout(limit, asked).await.expect("the clock is looked at");
    assert_eq!(verdict, Ok(Verdict::Expired));
    let item = Item::put(Key::new("a").unwrap(), Body::new("1"));
    let own = shelf("a1");
    let write = handle.write(&own, vec![], vec![item]);
    tokio::time::timeout(limit, write).await.expect("it is told of the disk").unwrap();
    drive.stop();
}
