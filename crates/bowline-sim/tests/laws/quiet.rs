//! Law 3: reconnecting has no procedure of its own. Law 11: liveness is not data.

use bowline_sim::{Random, World, all, node, shelf};
use bowline_sync::{Frame, Plan, Recovery};
use bowline_types::{Interest, Prefix};

use super::{ROOMY, disk, down, on_wire, same, up};

#[test]
fn law_3_a_quiet_reconnect_costs_two_frames() {
    let s = shelf(0, "kv");
    let mut w = World::new(3, &[(s.clone(), Recovery::Ask)]).with(ROOMY, &[]);
    let mut r = Random::new(1);
    for n in 0..100 {
        let items = (0..100).map(|m| format!("p{:03}/k{n}.{m}", (n * 100 + m) % 1000));
        let items = items.map(|k| bowline_sim::item(&k, Some("value"))).collect();
        w.write(&s, items);
    }
    let many: Interest = (0..1000).map(|n| Prefix::new(&format!("p{n:03}/")).unwrap()).collect();
    w.want(&node(1), &s, all());
    w.want(&node(2), &s, many);
    up(&mut w, 0, 1);
    up(&mut w, 0, 2);
    w.settle(&mut r);
    assert_eq!(w.live(&node(2), &s).len(), 10_000);
    same(&w, &s, &[1, 2]);
    for restarted in [None, Some(1), Some(2), Some(0), None] {
        if let Some(n) = restarted {
            w.restart(&node(n), |disk| disk);
        }
        for n in [1, 2] {
            down(&mut w, 0, n);
            w.settle(&mut r);
            w.frames = 0;
            let link = up(&mut w, 0, n);
            let hellos = [on_wire(&w, link, 0), on_wire(&w, link, 1)].concat();
            assert!(hellos.iter().all(|h| matches!(h, Frame::Hello { .. })));
            assert!(hellos.iter().map(|h| h.weight()).sum::<usize>() < 1000);
            w.settle(&mut r);
            assert_eq!(w.frames, 2, "n{n} after a restart of {restarted:?}");
        }
    }
    // And what is said after it goes by what each wants.
    w.restart(&node(0), |disk| disk);
    up(&mut w, 0, 2);
    w.put(&s, "p007/k", "news");
    w.put(&s, "q/k", "not for n2");
    w.settle(&mut r);
    let live = w.live(&node(2), &s);
    assert!(live["p007/k"] == "news" && !live.contains_key("q/k"));
    w.settle(&mut r);
    down(&mut w, 0, 2);
    w.put(&s, "q/k", "still not for n2");
    w.frames = 0;
    up(&mut w, 0, 2);
    w.settle(&mut r);
    assert_eq!(w.frames, 2, "news that is not of interest is nothing to say");
}

#[test]
fn law_3_a_reconnect_with_ten_changes_costs_those_ten() {
    let s = shelf(0, "kv");
    let mut w = World::new(3, &[(s.clone(), Recovery::Ask)]).with(ROOMY, &[]);
    let mut r = Random::new(1);
    for n in 0..2000 {
        w.put(&s, &format!("k{n}"), "value");
    }
    w.want(&node(1), &s, all());
    up(&mut w, 0, 1);
    w.settle(&mut r);
    down(&mut w, 0, 1);
    for n in 0..10 {
        w.put(&s, &format!("k{}", n * 7), "new");
    }
    w.frames = 0;
    let link = up(&mut w, 0, 1);
    let mut records = 0;
    while w.step(&mut r) {
        let Some(wire) = w.wires.get(&link) else { break };
        let feeds = wire.towards[1].iter();
        records = records.max(
            feeds
                .map(|f| match f {
                    Frame::Feed(feed) => feed.records.len(),
                    _ => 0,
                })
                .sum(),
        );
    }
    w.settle(&mut r);
    assert_eq!((records, w.frames), (10, 4), "two hellos, a feed and its ack");
    same(&w, &s, &[1]);
}

#[test]
fn law_3_the_first_join_is_a_reconnect_too() {
    let s = shelf(0, "kv");
    let mut w = World::new(2, &[(s.clone(), Recovery::Ask)]).with(ROOMY, &[]);
    let mut r = Random::new(1);
    w.put(&s, "x", "1");
    w.want(&node(1), &s, all());
    w.frames = 0;
    up(&mut w, 0, 1);
    w.settle(&mut r);
    same(&w, &s, &[1]);
    assert_eq!(w.frames, 4, "two hellos, a feed and its ack");
}

#[test]
fn law_11_liveness_is_not_data() {
    let (s, t) = (shelf(0, "kv"), shelf(1, "service"));
    let shelves = [(s.clone(), Recovery::Ask), (t.clone(), Recovery::Adopt)];
    let control = Plan::new(Recovery::Ask).control();
    let mut w = World::new(2, &shelves).with(ROOMY, &[(s.clone(), control)]);
    let mut r = Random::new(1);
    w.want(&node(1), &s, all());
    w.want(&node(0), &t, all());
    up(&mut w, 0, 1);
    w.put(&s, "x", "1");
    w.put(&t, "web", "up");
    w.settle(&mut r);
    let before = (disk(&w, 0), disk(&w, 1));
    let (batches, changes) = (w.batches, w.oracle.changes.len());
    for n in 0..200 {
        w.advance(60_000);
        w.settle(&mut r);
        if n % 2 == 0 {
            down(&mut w, 0, 1);
            w.advance(1);
            up(&mut w, 0, 1);
            w.settle(&mut r);
        }
        if n % 50 == 0 {
            w.restart(&node(n / 50 % 2), |disk| disk);
            up(&mut w, 0, 1);
            w.settle(&mut r);
        }
    }
    assert_eq!(w.batches, batches, "time and links write nothing");
    assert_eq!((disk(&w, 0), disk(&w, 1)), before);
    assert_eq!(w.oracle.changes.len(), changes, "and nobody is told of a change");
}
