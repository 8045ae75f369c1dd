//! Tables of what is given, what happens, and what comes of it.

use bowline_types::ShelfName;

use super::*;

fn shelf(name: &str) -> ShelfId {
    ShelfId::new(NodeId::hub(), ShelfName::new(name).unwrap())
}

fn link(shelves: &[&str]) -> Link {
    let mut link = Link::new(NodeId::new("a1").unwrap());
    for name in shelves {
        link.followers.insert(shelf(name), Box::default());
    }
    link
}

#[test]
fn control_goes_first_and_the_rest_in_turn() {
    let mut l = link(&["one", "two", "roster"]);
    assert!(l.mark(&shelf("one"), Class::Bulk));
    assert!(l.mark(&shelf("two"), Class::Bulk));
    assert!(!l.mark(&shelf("one"), Class::Bulk), "it keeps its turn");
    assert!(l.mark(&shelf("roster"), Class::Control));
    assert!(!l.mark(&shelf("nobody-follows"), Class::Control));
    let mut served = vec![];
    while let Some((_, next)) = l.next() {
        l.unmark(&next);
        served.push(next.name.as_str().to_owned());
        if served.len() == 2 {
            l.mark(&next, Class::Bulk); // there is more of it: behind the other
        }
    }
    assert_eq!(served, ["roster", "one", "two", "one"]);
}

#[test]
fn an_ack_frees_what_came_before_it_on_its_shelf() {
    let mut l = link(&["one", "two"]);
    l.in_flight = 100;
    for (name, flights) in [("one", vec![(1, 10), (3, 20)]), ("two", vec![(2, 30), (4, 40)])] {
        l.followers.get_mut(&shelf(name)).unwrap().flights = flights.into();
    }
    for (name, number, freed, left) in [
        ("one", 0, 0, 100),
        ("one", 3, 30, 70),
        ("one", 3, 0, 70),
        ("two", 2, 30, 40),
        ("no", 9, 0, 40),
    ] {
        assert_eq!((l.landed(&shelf(name), number), l.in_flight), (freed, left), "{name} {number}");
    }
}

#[test]
fn a_reset_believes_the_peer_and_voids_what_was_sent() {
    let mut f = Follower { waits: true, ..Follower::default() };
    f.sent.main =
        Some(bowline_types::Place::start(Cursor::default(), Cursor::default(), Interest::all()));
    f.reset(Have::default(), 7);
    assert_eq!((f.sent, f.void_below, f.waits), (Have::default(), 7, false));
}
