//! Law 8: one gate, signed heads, digests.

use bowline_sim::{World, all, interest, item, node, shelf};
use bowline_sync::{Event, FORBIDDEN, Feed, Frame, Reason, Recovery, Row, Said, Target, Verb};
use bowline_types::{Body, Cursor, Have, Interest, Lineage, Place, Signature, Slot, Term, Verdict};

use super::{deliver_all, disk, down, event, roll_back, same, tamper, up, world};

#[test]
fn law_8_the_gate_is_asked_on_feeding() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    w.put(&s, "a/x", "1");
    w.put(&s, "b/x", "1");
    w.rights.narrow(&node(1), &s, interest(&["a/"]));
    w.rights.narrow(&node(2), &s, Interest::none());
    up(&mut w, 0, 1);
    up(&mut w, 0, 2);
    w.settle(&mut r);
    assert_eq!(w.live(&node(1), &s).into_keys().collect::<Vec<_>>(), ["a/x"]);
    assert!(w.live(&node(2), &s).is_empty());
    w.put(&s, "b/y", "1");
    w.settle(&mut r);
    // Asking again, in other words, gives no more.
    w.want(&node(1), &s, interest(&["a/", "b/"]));
    w.want(&node(2), &s, interest(&["a/x"]));
    w.settle(&mut r);
    assert_eq!(w.live(&node(1), &s).into_keys().collect::<Vec<_>>(), ["a/x"]);
    assert!(w.live(&node(2), &s).is_empty());
}

#[test]
fn law_8_a_long_interest_passes_the_gate_too() {
    // Interests of more than one prefix go by their id here, and the owner has forgotten it.
    let (mut w, s, mut r) = world(Recovery::Ask);
    w.put(&s, "a/x", "1");
    w.put(&s, "b/x", "1");
    w.want(&node(1), &s, interest(&["a/", "b/"]));
    up(&mut w, 0, 1);
    w.settle(&mut r);
    assert_eq!(w.live(&node(1), &s).len(), 2);
    w.rights.narrow(&node(1), &s, interest(&["a/"]));
    w.restart(&node(0), |disk| disk);
    up(&mut w, 0, 1);
    w.settle(&mut r);
    assert_eq!(w.live(&node(1), &s).into_keys().collect::<Vec<_>>(), ["a/x"]);
    // And when rights are narrowed while the id is not resolved.
    w.rights.widen(&node(1), &s);
    w.want(&node(1), &s, interest(&["a/", "b/"]));
    w.settle(&mut r);
    w.restart(&node(0), |disk| disk);
    up(&mut w, 0, 1);
    w.settle(&mut r);
    w.rights.narrow(&node(1), &s, interest(&["b/"]));
    event(&mut w, 0, Event::Regate);
    w.settle(&mut r);
    assert_eq!(w.live(&node(1), &s).into_keys().collect::<Vec<_>>(), ["b/x"]);
}

#[test]
fn law_8_the_gate_is_asked_on_taking() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    w.put(&s, "x", "1");
    up(&mut w, 0, 2);
    w.settle(&mut r);
    w.rights.limit(&node(2), Verb::Feed, &s, Interest::none());
    let link = up(&mut w, 1, 2);
    w.settle(&mut r);
    assert!(w.live(&node(1), &s).is_empty(), "n2 may not relay to n1");
    // And if it does so unasked, the link is closed.
    let head = w.at(&node(2)).read(&s).unwrap().head.clone();
    let place = w.at(&node(2)).read(&s).unwrap().place.clone();
    let records = w.at(&node(2)).read(&s).unwrap().map.iter().cloned().collect();
    let feed = Feed {
        head,
        number: 1,
        target: Target::Fresh,
        was: Have::default(),
        interest: all().id(),
        to: place,
        floor: 0,
        base: Cursor::default(),
        records,
    };
    w.closed.clear();
    event(&mut w, 1, Event::Frame(link, Frame::Feed(Box::new(feed))));
    assert_eq!(w.closed, [Reason::Forbidden]);
    assert!(w.live(&node(1), &s).is_empty());
}

#[test]
fn law_8_the_gate_is_asked_on_proposing() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    w.rights.limit(&node(1), Verb::Propose, &s, interest(&["a/"]));
    w.rights.limit(&node(2), Verb::Propose, &s, Interest::none());
    up(&mut w, 0, 1);
    up(&mut w, 0, 2);
    w.settle(&mut r);
    let good = w.propose(&node(1), &s, "a/x", "1", false);
    let beyond = w.propose(&node(1), &s, "b/x", "1", false);
    let guard = bowline_types::Guard { key: bowline_sim::key("b/x"), at: None };
    let items = vec![item("a/y", Some("1"))];
    let wish = bowline_sim::Wish { guards: vec![guard], items, ..Default::default() };
    let peeps = w.wish(&node(1), &s, wish);
    let denied = w.propose(&node(2), &s, "a/x", "2", true);
    // Nor is told what is there.
    let secret = shelf(0, "none");
    w.rights.limit(&node(2), Verb::Propose, &secret, Interest::none());
    let probes = w.propose(&node(2), &secret, "a/x", "2", false);
    w.settle(&mut r);
    assert!(matches!(w.judged[&good], Verdict::Taken { .. }));
    for tag in [beyond, peeps, denied, probes] {
        let Verdict::Refused { why, .. } = &w.judged[&tag] else { panic!("{:?}", w.judged) };
        assert_eq!(why, FORBIDDEN);
    }
    assert_eq!(w.live(&node(0), &s).into_keys().collect::<Vec<_>>(), ["a/x"]);
}

#[test]
fn law_8_narrowed_rights_take_data_back() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    for k in ["a/x", "b/x", "b/y"] {
        w.put(&s, k, "1");
    }
    up(&mut w, 0, 1);
    w.settle(&mut r);
    w.rights.narrow(&node(1), &s, interest(&["a/"]));
    event(&mut w, 0, Event::Regate);
    w.settle(&mut r);
    assert_eq!(w.live(&node(1), &s).into_keys().collect::<Vec<_>>(), ["a/x"]);
    let stored = &disk(&w, 1).shelves[&s].slots[&Slot::Main].records;
    assert_eq!(stored.len(), 1, "on disk too");
    w.rights.narrow(&node(1), &s, Interest::none());
    event(&mut w, 0, Event::Regate);
    w.settle(&mut r);
    assert!(w.live(&node(1), &s).is_empty());
    assert!(disk(&w, 1).shelves.get(&s).is_none_or(|s| s.slots.is_empty()), "nothing is left");
}

/// n2 hands on what `how` makes of the owner's records; then n1 meets honest feeders.
fn lied_to(how: impl FnMut(&mut Feed)) -> (World, bowline_types::ShelfId, bowline_sim::Random) {
    let (mut w, s, mut r) = world(Recovery::Ask);
    w.every_feed = false; // the lie is not in the owner's history
    w.put(&s, "x", "true");
    w.put(&s, "y", "true");
    up(&mut w, 0, 2);
    w.settle(&mut r);
    down(&mut w, 0, 2);
    let link = w.up(&node(1), &node(2)).unwrap();
    w.deliver(link, 1);
    w.deliver(link, 0);
    tamper(&mut w, link, 0, how);
    w.closed.clear();
    deliver_all(&mut w, &mut r);
    (w, s, r)
}

#[test]
fn law_8_a_relayed_lie_is_found_by_the_owners_digest_and_filled_anew() {
    let (mut w, s, mut r) = lied_to(|feed| feed.records[0].body = Some(Body::new("false")));
    assert_eq!(w.closed, [Reason::Again], "what came is not what was signed");
    assert_eq!(w.at(&node(1)).taken()[&s].have().main, None, "so it is not shown to feeders");
    // Nor is it handed on, nor trusted after a restart.
    w.restart(&node(1), |disk| disk);
    assert_eq!(w.at(&node(1)).taken()[&s].have().main, None);
    w.restart(&node(2), |_| bowline_types::Image::default());
    w.want(&node(2), &s, all());
    up(&mut w, 1, 2);
    w.settle(&mut r);
    assert!(w.live(&node(2), &s).is_empty());
    up(&mut w, 0, 1);
    w.settle(&mut r);
    same(&w, &s, &[1, 2]);
}

#[test]
fn law_8_a_relayed_omission_is_found_too() {
    let (mut w, s, mut r) = lied_to(|feed| feed.records.truncate(1));
    assert_eq!(w.closed, [Reason::Again]);
    up(&mut w, 0, 1);
    w.settle(&mut r);
    same(&w, &s, &[1]);
}

#[test]
fn law_8_a_forged_head_closes_the_link() {
    let forge = |feed: &mut Feed| {
        let mut terms = feed.head.lineage.terms().to_vec();
        terms.push((Term(u64::MAX >> 1), 99));
        feed.head.lineage = Lineage::new(terms).unwrap();
    };
    let (w, s, _) = lied_to(forge);
    assert_eq!(w.closed, [Reason::Forged]);
    assert!(w.live(&node(1), &s).is_empty());
    // A digest that fits the lie is forged too.
    let (w, s, _) = lied_to(|feed| feed.head.digest = Default::default());
    assert_eq!(w.closed, [Reason::Forged]);
    assert!(w.live(&node(1), &s).is_empty());
}

#[test]
fn law_8_a_claim_needs_a_head_signed_by_the_owner() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    up(&mut w, 0, 1);
    w.put(&s, "x", "1");
    w.settle(&mut r);
    let far = Cursor { term: Term(u64::MAX >> 1), rev: 9 };
    let mut forged = w.at(&node(0)).own()[&s].durable.head.clone();
    let mut terms = forged.lineage.terms().to_vec();
    terms.push((far.term, far.rev));
    forged.lineage = Lineage::new(terms).unwrap();
    forged.signature = Signature("n0:0".into());
    let place = Place { cursor: far, seen: far, part: None };
    let claim = Have { main: Some(place), aside: None };
    let cases = [
        (claim.clone(), None, None, Reason::BareClaim),
        (claim, Some(forged.clone()), None, Reason::Forged),
        (Have::default(), None, Some(forged), Reason::Forged),
    ];
    for (have, head, best, reason) in cases {
        w.closed.clear();
        let link = w.up(&node(0), &node(2)).unwrap();
        w.wires.get_mut(&link).unwrap().towards[0].clear();
        let interest = Said::Full(all());
        let rows = vec![Row { shelf: s.clone(), have, head, best, interest }];
        event(&mut w, 0, Event::Frame(link, Frame::Hello { session: Term(1), rows }));
        assert_eq!(w.closed, [reason]);
        assert_eq!(w.at(&node(0)).own()[&s].status, bowline_sync::Status::Open);
    }
}

/// What the owner says to a peer with rights to `a/` that says this of itself.
fn said_to(rows: impl FnOnce(&World) -> Vec<Row>) -> (Vec<Reason>, Vec<String>) {
    let (mut w, s, mut r) = world(Recovery::Ask);
    for k in ["a/x", "b/x", "c/x"] {
        w.put(&s, k, "1");
    }
    up(&mut w, 0, 2);
    w.settle(&mut r);
    w.rights.narrow(&node(1), &s, interest(&["a/"]));
    w.closed.clear();
    let link = w.up(&node(0), &node(1)).unwrap();
    w.wires.get_mut(&link).unwrap().towards[0].clear();
    let rows = rows(&w);
    event(&mut w, 0, Event::Frame(link, Frame::Hello { session: Term(1), rows }));
    let sent = w.wires.get(&link).into_iter().flat_map(|w| &w.towards[1]);
    let keys = sent.flat_map(|f| match f {
        Frame::Feed(feed) => feed.records.iter().map(|r| r.key.to_string()).collect(),
        _ => vec![],
    });
    (w.closed.clone(), keys.collect())
}

#[test]
fn law_8_what_a_peer_says_it_is_walking_is_no_way_around_the_gate() {
    for (adding, after) in [(all(), ""), (interest(&["b/"]), ""), (all(), "b/z")] {
        let (closed, keys) = said_to(|w| {
            let hub = w.at(&node(0)).own().first_key_value().unwrap();
            let head = w.at(&node(2)).read(hub.0).unwrap().head.clone();
            let start = head.lineage.at(1);
            let part = Some(bowline_types::Part { adding: adding.clone(), after: after.into() });
            let place = Place { cursor: start, seen: start, part };
            let have = Have { main: Some(place), aside: None };
            let interest = Said::Full(interest(&["a/"]));
            vec![Row { shelf: hub.0.clone(), have, head: Some(head), best: None, interest }]
        });
        assert!(closed.is_empty());
        assert!(keys.iter().all(|k| k.starts_with("a/")), "{keys:?}");
    }
}

#[test]
fn law_8_a_shelf_in_two_rows_closes_the_link() {
    let (closed, _) = said_to(|w| {
        let shelf = w.at(&node(0)).own().keys().next().unwrap().clone();
        let interest = Said::Full(interest(&["a/"]));
        let row = Row { shelf, have: Have::default(), head: None, best: None, interest };
        vec![row.clone(), row]
    });
    assert_eq!(closed, [Reason::Nonsense]);
}

#[test]
fn law_8_a_relayed_shelf_travels_whole() {
    // A part could not be held against the owner's digest: only the owner feeds it.
    let (mut w, s, mut r) = world(Recovery::Ask);
    w.put(&s, "a/x", "1");
    w.put(&s, "b/x", "1");
    w.want(&node(1), &s, interest(&["a/"]));
    up(&mut w, 0, 2);
    w.settle(&mut r);
    let link = up(&mut w, 1, 2);
    w.deliver(link, 1);
    let fed = super::on_wire(&w, link, 0).iter().any(|f| matches!(f, Frame::Feed(_)));
    assert!(!fed, "a relay does not offer a part");
    w.settle(&mut r);
    // Nor is it taken from one that does.
    let src = w.at(&node(2)).read(&s).unwrap();
    let feed = Feed {
        head: src.head.clone(),
        number: 1,
        target: Target::Fresh,
        was: Have::default(),
        interest: interest(&["a/"]).id(),
        to: src.place.clone(),
        floor: 0,
        base: Cursor::default(),
        records: src.map.iter().cloned().collect(),
    };
    event(&mut w, 1, Event::Frame(link, Frame::Feed(Box::new(feed))));
    assert!(w.live(&node(1), &s).is_empty());
    up(&mut w, 0, 1);
    w.settle(&mut r);
    assert_eq!(w.live(&node(1), &s).len(), 1);
}

#[test]
fn law_8_an_agent_with_part_of_the_rights_is_not_fed_by_relays() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    w.put(&s, "a/x", "1");
    up(&mut w, 0, 2);
    w.settle(&mut r);
    w.rights.narrow(&node(1), &s, interest(&["a/"]));
    up(&mut w, 1, 2);
    w.settle(&mut r);
    assert!(w.live(&node(1), &s).is_empty());
}

/// An owner that lost what n1 has of it, and was told by a person to take it back.
fn robbed() -> (World, bowline_types::ShelfId, bowline_sim::Random) {
    let (mut w, s, mut r) = world(Recovery::Adopt);
    w.every_feed = false; // what is given back may be no state of the owner's
    for k in ["a/x", "b/x"] {
        w.put(&s, k, "old");
    }
    up(&mut w, 0, 1);
    w.settle(&mut r);
    let backup = disk(&w, 0);
    w.put(&s, "a/x", "lost");
    w.settle(&mut r);
    roll_back(&mut w, 0, &backup);
    (w, s, r)
}

#[test]
fn law_8_who_may_not_hold_all_of_a_shelf_does_not_give_it_back() {
    let (mut w, s, _) = robbed();
    w.rights.narrow(&node(2), &s, interest(&["a/"]));
    let link = w.up(&node(0), &node(2)).unwrap();
    w.wires.get_mut(&link).unwrap().towards[0].clear();
    // Its head is genuine, and what it says of itself is not.
    let copy = w.at(&node(1)).read(&s).unwrap();
    let have = Have { main: Some(copy.place.clone()), aside: None };
    let (head, interest) = (Some(copy.head.clone()), Said::Full(all()));
    let rows = vec![Row { shelf: s.clone(), have, head, best: None, interest }];
    event(&mut w, 0, Event::Frame(link, Frame::Hello { session: Term(1), rows }));
    let asked = |f: &&Frame| matches!(f, Frame::Give { .. });
    assert_eq!(w.wires[&link].towards[1].iter().filter(asked).count(), 0);
    assert_eq!(w.at(&node(0)).own()[&s].status, bowline_sync::Status::Stopped);
}

#[test]
fn law_8_what_is_given_back_must_be_what_was_signed() {
    for lie in [true, false] {
        let (mut w, s, mut r) = robbed();
        let link = up(&mut w, 0, 1);
        w.deliver(link, 0); // hello, and what it proves
        w.deliver(link, 1); // hello
        w.deliver(link, 1); // what is asked for
        let mut given = 0;
        tamper(&mut w, link, 0, |feed| {
            given += feed.records.len();
            let other = feed.records.iter_mut().filter(|r| lie && r.key.as_str() == "b/x");
            other.for_each(|r| r.body = Some(Body::new("theirs")));
        });
        assert_eq!(given, 2, "all of it");
        w.settle(&mut r);
        let (status, live) = (w.at(&node(0)).own()[&s].status, w.live(&node(0), &s));
        if lie {
            assert_eq!(status, bowline_sync::Status::Stopped);
            assert_eq!((&*live["a/x"], &*live["b/x"]), ("old", "old"));
            assert!(w.forgot.contains(&s), "and a person is told");
        } else {
            assert_eq!(status, bowline_sync::Status::Open);
            assert_eq!((&*live["a/x"], &*live["b/x"]), ("lost", "old"));
        }
    }
}
