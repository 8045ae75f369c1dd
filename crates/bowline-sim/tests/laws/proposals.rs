//! Proposals: at most once, answered in the end, and read by whoever wrote.

use bowline_sim::{Wish, World, interest, item, key, node, shelf};
use bowline_sync::{Decision, Event, FORBIDDEN, Frame, NO_SHELF, Recovery, UNSETTLED, WriteError};
use bowline_types::{Guard, Verdict};

use super::{deliver_all, disk, down, event, on_wire, roll_back, up, world};

fn is_taken(w: &World, tag: bowline_sync::Tag) -> bool {
    matches!(w.judged.get(&tag), Some(Verdict::Taken { .. }))
}

#[test]
fn a_proposal_takes_effect_once_over_reconnects() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    up(&mut w, 0, 1);
    w.settle(&mut r);
    let tag = w.propose(&node(1), &s, "x", "prop", false);
    for lost in 0..3 {
        // The owner decides, or finds that it did; each time its answer is lost.
        let link = w.links[&(node(0), node(1))];
        while on_wire(&w, link, 0).iter().any(|f| !matches!(f, Frame::Ack { .. })) {
            w.deliver(link, 0);
        }
        assert_eq!(w.live(&node(0), &s)["x"], "prop", "round {lost}");
        down(&mut w, 0, 1);
        assert!(!w.judged.contains_key(&tag));
        up(&mut w, 0, 1);
        w.deliver(w.links[&(node(0), node(1))], 1);
    }
    w.settle(&mut r);
    assert!(is_taken(&w, tag));
    assert_eq!(w.at(&node(0)).tip(&s).unwrap().rev, 1, "one commit");
}

#[test]
fn a_proposal_takes_effect_once_over_a_restart_of_the_owner() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    up(&mut w, 0, 1);
    w.settle(&mut r);
    let tag = w.propose(&node(1), &s, "x", "prop", false);
    w.deliver(w.links[&(node(0), node(1))], 0);
    w.restart(&node(0), |disk| disk); // decided and durable, but nobody was told
    up(&mut w, 0, 1);
    w.settle(&mut r);
    assert!(is_taken(&w, tag), "the verdict was on disk: {:?}", w.judged);
    assert_eq!(w.at(&node(0)).tip(&s).unwrap().rev, 1);
}

#[test]
fn a_proposal_takes_effect_once_though_its_shelf_is_removed_and_made_anew() {
    for on_disk in [true, false] {
        let (mut w, s, mut r) = world(Recovery::Ask);
        up(&mut w, 0, 1);
        w.settle(&mut r);
        w.prompt_disks = on_disk;
        let tag = w.propose(&node(1), &s, "x", "prop", false);
        w.deliver(w.links[&(node(0), node(1))], 0);
        down(&mut w, 0, 1); // decided, but nobody was told
        event(&mut w, 0, Event::Remove(s.clone()));
        w.make(&s);
        up(&mut w, 0, 1);
        w.settle(&mut r);
        assert_eq!(w.judged.get(&tag), Some(&Verdict::Unknown), "on disk: {on_disk}");
        assert!(w.live(&node(0), &s).is_empty(), "what was removed does not come back");
    }
}

#[test]
fn who_waits_for_a_shelf_that_is_removed_is_told_that_nobody_knows() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    up(&mut w, 0, 1);
    w.settle(&mut r);
    w.undecided = Some(vec![]);
    let asked = w.propose(&node(1), &s, "x", "prop", true);
    deliver_all(&mut w, &mut r);
    let proposal = w.undecided.as_ref().unwrap()[0].clone();
    event(&mut w, 0, Event::Remove(s.clone()));
    w.settle(&mut r);
    assert_eq!(w.judged.get(&asked), Some(&Verdict::Unknown));
    w.make(&s);
    let (items, answer) = (proposal.items.clone(), Default::default());
    let (id, shelf, decision) = (proposal.id, s.clone(), Ok(Decision { items, answer }));
    event(&mut w, 0, Event::Decided { id, shelf, decision });
    w.settle(&mut r);
    assert!(w.live(&node(0), &s).is_empty(), "decided too late");
}

#[test]
fn who_writes_to_a_shelf_that_is_removed_before_the_disk_has_it_is_told() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    w.settle(&mut r);
    w.prompt_disks = false;
    let tag = w.write(&s, vec![item("x", Some("1"))]);
    event(&mut w, 0, Event::Remove(s.clone()));
    w.settle(&mut r);
    assert_eq!(w.wrote.get(&tag), Some(&Err(WriteError::NoShelf)));
}

#[test]
fn a_proposal_is_not_decided_again_while_its_verdict_waits_for_the_disk() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    up(&mut w, 0, 1);
    w.settle(&mut r);
    w.prompt_disks = false;
    let tag = w.propose(&node(1), &s, "x", "prop", false);
    for _ in 0..3 {
        deliver_all(&mut w, &mut r);
        up(&mut w, 0, 1); // and it is asked again
    }
    w.settle(&mut r);
    assert!(is_taken(&w, tag));
    assert_eq!(w.at(&node(0)).tip(&s).unwrap().rev, 1, "one commit");
}

#[test]
fn a_proposal_meant_for_another_session_is_unknown_and_not_done() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    up(&mut w, 0, 1);
    w.settle(&mut r);
    w.prompt_disks = false;
    let tag = w.propose(&node(1), &s, "x", "prop", false);
    w.deliver(w.links[&(node(0), node(1))], 0);
    // Decided, not durable: the process dies, and with it what it decided.
    w.restart(&node(0), |disk| disk);
    up(&mut w, 0, 1);
    w.settle(&mut r);
    assert_eq!(w.judged[&tag], Verdict::Unknown);
    assert!(w.live(&node(0), &s).is_empty(), "a later session must not do it: it might be twice");
}

#[test]
fn a_rolled_back_owner_does_not_do_it_twice() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    w.put(&s, "y", "1");
    up(&mut w, 0, 1);
    w.settle(&mut r);
    let backup = disk(&w, 0);
    let tag = w.propose(&node(1), &s, "x", "prop", false);
    w.deliver(w.links[&(node(0), node(1))], 0);
    down(&mut w, 0, 1);
    roll_back(&mut w, 0, &backup);
    up(&mut w, 0, 1);
    w.settle(&mut r);
    assert_eq!(w.judged[&tag], Verdict::Unknown);
    assert!(!w.live(&node(0), &s).contains_key("x"));
}

#[test]
fn a_verdict_whose_branch_was_left_is_void() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    w.put(&s, "y", "1");
    up(&mut w, 0, 1);
    w.settle(&mut r);
    let backup = disk(&w, 0);
    let tag = w.propose(&node(1), &s, "x", "prop", false);
    let link = w.links[&(node(0), node(1))];
    w.deliver(link, 0);
    w.deliver(link, 1); // the verdict, but not the feed
    assert!(!w.judged.contains_key(&tag), "its copy has not come so far");
    down(&mut w, 0, 1);
    roll_back(&mut w, 0, &backup);
    for i in 0..3 {
        w.put(&s, "y", &format!("{i}"));
    }
    up(&mut w, 0, 1);
    w.settle(&mut r);
    assert_eq!(w.judged[&tag], Verdict::Unknown, "the owner's history does not have it");
}

#[test]
fn whoever_is_told_that_it_wrote_reads_what_it_wrote() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    for i in 0..30 {
        w.put(&s, &format!("k{i}"), "v");
    }
    up(&mut w, 0, 1);
    w.settle(&mut r);
    let tag = w.propose(&node(1), &s, "x", "prop", false);
    let link = w.links[&(node(0), node(1))];
    w.deliver(link, 0);
    assert!(matches!(on_wire(&w, link, 1)[0], Frame::Verdict { .. }));
    w.deliver(link, 1);
    assert!(!w.judged.contains_key(&tag) && !w.live(&node(1), &s).contains_key("x"));
    deliver_all(&mut w, &mut r);
    assert!(is_taken(&w, tag));
    assert_eq!(w.live(&node(1), &s)["x"], "prop");
}

#[test]
fn whoever_holds_no_copy_is_told_at_once() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    w.want(&node(1), &s, interest(&["b/"]));
    up(&mut w, 0, 1);
    w.settle(&mut r);
    let tag = w.propose(&node(1), &s, "a/x", "prop", false);
    w.settle(&mut r);
    assert!(is_taken(&w, tag));
    assert!(w.live(&node(1), &s).is_empty());
    let nowhere = w.propose(&node(1), &shelf(0, "none"), "x", "1", false);
    w.settle(&mut r);
    let Verdict::Refused { why, .. } = &w.judged[&nowhere] else { panic!("{:?}", w.judged) };
    assert_eq!(why, NO_SHELF);
}

#[test]
fn a_proposal_without_a_link_expires_and_one_without_an_answer_is_unknown() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    let patient = |w: &mut World| {
        let wish =
            Wish { items: vec![item("x", Some("1"))], patience: Some(50), ..Wish::default() };
        w.wish(&node(1), &shelf(0, "kv"), wish)
    };
    let tag = patient(&mut w);
    w.advance(49);
    assert!(!w.judged.contains_key(&tag));
    w.advance(1);
    assert_eq!(w.judged[&tag], Verdict::Expired, "it never left: it was not written");
    up(&mut w, 0, 1);
    w.settle(&mut r);
    let tag = patient(&mut w);
    w.advance(50);
    assert_eq!(w.judged[&tag], Verdict::Unknown, "it was sent: nobody can tell");
    w.settle(&mut r);
    assert_eq!(w.live(&node(0), &s)["x"], "1", "indeed it was written");
    assert_eq!(w.at(&node(1)).open_questions(), 0);
    assert_eq!(w.at(&node(1)).next_deadline(), None);
}

#[test]
fn a_decided_proposal_is_told_at_its_deadline_even_if_the_copy_lags() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    up(&mut w, 0, 1);
    w.settle(&mut r);
    let wish = Wish { items: vec![item("x", Some("1"))], patience: Some(50), ..Wish::default() };
    let tag = w.wish(&node(1), &s, wish);
    let link = w.links[&(node(0), node(1))];
    w.deliver(link, 0);
    w.deliver(link, 1);
    w.every_feed = false;
    assert!(!w.judged.contains_key(&tag));
    // What was decided is known, so it is said; that it cannot be read yet is the caller's risk.
    let n1 = w.face(&node(1)).unwrap();
    w.mono += 50;
    let now = w.now();
    let said = w.nodes.get_mut(&n1).unwrap().handle(now, Event::Tick);
    let judged = |a: &bowline_sync::Action| matches!(a, bowline_sync::Action::Judged(t, Verdict::Taken { .. }) if *t == tag);
    assert!(said.iter().any(judged), "{said:?}");
}

#[test]
fn a_refused_compare_and_set_answers_although_nothing_of_interest_changed() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    w.want(&node(1), &s, interest(&["a/"]));
    w.put(&s, "a/x", "1");
    up(&mut w, 0, 1);
    w.settle(&mut r);
    for i in 0..5 {
        w.put(&s, &format!("b/{i}"), "not of interest");
    }
    w.settle(&mut r);
    let cas = |at| Wish {
        guards: vec![Guard { key: key("a/x"), at }],
        items: vec![item("a/x", Some("2"))],
        ..Wish::default()
    };
    let wrong = [cas(None), cas(Some(9))].map(|wish| w.wish(&node(1), &s, wish));
    w.settle(&mut r);
    for tag in wrong {
        let Verdict::Refused { why, .. } = &w.judged[&tag] else { panic!("{:?}", w.judged) };
        assert_eq!(why, "a/x is at rev 1");
    }
    let tag = w.wish(&node(1), &s, cas(Some(1)));
    w.settle(&mut r);
    assert!(is_taken(&w, tag));
    assert_eq!(w.live(&node(1), &s)["a/x"], "2");
}

#[test]
fn of_two_compare_and_sets_one_wins() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    w.prompt_disks = false;
    for n in [1, 2] {
        up(&mut w, 0, n);
    }
    w.settle(&mut r);
    let wish = |v: &str| Wish {
        guards: vec![Guard { key: key("lock"), at: None }],
        items: vec![item("lock", Some(v))],
        ..Wish::default()
    };
    // Both are decided before either is durable.
    let tags = [1, 2].map(|n| w.wish(&node(n), &s, wish(&format!("n{n}"))));
    deliver_all(&mut w, &mut r);
    w.settle(&mut r);
    let won: Vec<_> = tags.iter().filter(|t| is_taken(&w, **t)).collect();
    assert_eq!(won.len(), 1, "{:?}", w.judged);
}

#[test]
fn a_decider_is_asked_once_and_its_answer_comes_back() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    w.undecided = Some(vec![]);
    up(&mut w, 0, 1);
    w.settle(&mut r);
    let yes = w.propose(&node(1), &s, "x", "wish", true);
    let no = w.propose(&node(1), &s, "y", "wish", true);
    w.settle(&mut r);
    // The link breaks while the decider thinks.
    up(&mut w, 0, 1);
    w.settle(&mut r);
    let questions = w.undecided.clone().unwrap();
    assert_eq!(questions.len(), 2, "asked again over the new link, but the decider only once");
    let decide = |w: &mut World, n: usize, decision| {
        let (id, shelf) = (questions[n].id.clone(), questions[n].shelf.clone());
        event(w, 0, Event::Decided { id, shelf, decision });
    };
    let items = vec![item("x", Some("decided"))];
    decide(&mut w, 0, Ok(Decision { items, answer: "because".into() }));
    decide(&mut w, 1, Err("not today".into()));
    decide(&mut w, 1, Ok(Decision::default())); // a second word counts for nothing
    w.settle(&mut r);
    let Verdict::Taken { answer, .. } = &w.judged[&yes] else { panic!("{:?}", w.judged) };
    assert_eq!(&answer[..], b"because");
    let Verdict::Refused { why, .. } = &w.judged[&no] else { panic!("{:?}", w.judged) };
    assert_eq!(why, "not today");
    assert_eq!(w.live(&node(1), &s)["x"], "decided");
}

#[test]
fn settled_verdicts_are_forgotten_on_disk_too() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    up(&mut w, 0, 1);
    w.settle(&mut r);
    for i in 0..50 {
        let tag = w.propose(&node(1), &s, "x", &format!("{i}"), false);
        w.settle(&mut r);
        assert!(is_taken(&w, tag));
        assert!(disk(&w, 0).shelves[&s].verdicts.len() <= 2);
    }
    // A new session of the proposer settles all of the old one.
    w.restart(&node(1), |disk| disk);
    up(&mut w, 0, 1);
    w.settle(&mut r);
    let tag = w.propose(&node(1), &s, "x", "new", false);
    w.settle(&mut r);
    assert!(is_taken(&w, tag));
    let kept = disk(&w, 0).shelves[&s].verdicts.clone();
    assert_eq!(kept.len(), 1);
    assert!(kept.keys().all(|id| id.session == w.at(&node(1)).session()));
}

#[test]
fn an_open_question_is_not_forgotten_by_a_later_one() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    w.undecided = Some(vec![]);
    up(&mut w, 0, 1);
    w.settle(&mut r);
    let first = w.propose(&node(1), &s, "x", "first", true);
    let second = w.propose(&node(1), &s, "y", "second", false);
    w.settle(&mut r);
    assert!(is_taken(&w, second) && !w.judged.contains_key(&first));
    let question = w.undecided.clone().unwrap().remove(0);
    let decision = Ok(Decision { items: question.items, answer: "".into() });
    event(&mut w, 0, Event::Decided { id: question.id, shelf: question.shelf, decision });
    w.settle(&mut r);
    assert!(is_taken(&w, first));
}

#[test]
fn more_than_a_commit_holds_is_refused_before_it_is_sent() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    let link = up(&mut w, 0, 1);
    w.settle(&mut r);
    let many = |n| (0..n).map(|n| key(&format!("k{n}")));
    let items = |n| many(n).map(bowline_types::Item::remove).collect();
    let guards = |n| many(n).map(|key| Guard { key, at: None }).collect();
    for wish in [
        Wish { items: items(101), ..Wish::default() },
        Wish { guards: guards(101), ..Wish::default() },
    ] {
        let tag = w.wish(&node(1), &s, wish);
        let Verdict::Refused { why, .. } = &w.judged[&tag] else { panic!("{:?}", w.judged) };
        assert_eq!(why, "more than one commit may hold");
        assert!(on_wire(&w, link, 0).is_empty(), "its owner would close the link");
    }
    let most = Wish { items: items(100), guards: guards(100), ..Wish::default() };
    let tag = w.wish(&node(1), &s, most);
    w.settle(&mut r);
    assert!(is_taken(&w, tag));
}

#[test]
fn who_would_be_refused_can_be_told_before_anything_is_done() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    w.every_feed = false;
    let none = shelf(0, "none");
    w.rights.limit(&node(2), bowline_sync::Verb::Propose, &s, bowline_types::Interest::none());
    let link = up(&mut w, 0, 1);
    w.settle(&mut r);
    let session = w.at(&node(0)).session();
    let proposal = |from, shelf: &bowline_types::ShelfId, number, settled| {
        let id = bowline_types::ProposalId { node: node(from), session, number };
        let items = vec![item("x", Some("1"))];
        let (shelf, guards, ask) = (shelf.clone(), vec![], None);
        bowline_types::Proposal { id, shelf, session, guards, items, ask, settled }
    };
    let refusal =
        |w: &World, p: &bowline_types::Proposal, from| w.at(&node(0)).refusal(&node(from), p);
    assert_eq!(refusal(&w, &proposal(1, &s, 1, 0), 1), None);
    assert_eq!(refusal(&w, &proposal(1, &s, 1, 0), 2), Some(FORBIDDEN), "in another's name");
    assert_eq!(refusal(&w, &proposal(2, &s, 1, 0), 2), Some(FORBIDDEN));
    assert_eq!(refusal(&w, &proposal(1, &none, 1, 0), 1), Some(NO_SHELF));
    for number in 1..=4096 {
        let p = proposal(1, &s, number, 0);
        assert_eq!(refusal(&w, &p, 1), None);
        event(&mut w, 0, Event::Frame(link, Frame::Propose(Box::new(p))));
    }
    assert_eq!(refusal(&w, &proposal(1, &s, 4097, 0), 1), Some(UNSETTLED));
    assert_eq!(refusal(&w, &proposal(1, &s, 4096, 0), 1), None, "it has its verdict");
    assert_eq!(refusal(&w, &proposal(1, &s, 4097, 2), 1), None, "it settles as it asks");
}

#[test]
fn a_proposer_that_settles_nothing_is_refused_in_the_end() {
    let (mut w, s, mut r) = world(Recovery::Ask);
    w.every_feed = false;
    let link = up(&mut w, 0, 1);
    w.settle(&mut r);
    let session = w.at(&node(0)).session();
    for number in 1..5000 {
        let id =
            bowline_types::ProposalId { node: node(1), session: w.at(&node(1)).session(), number };
        let items = vec![item("x", Some("1"))];
        let (guards, ask, settled) = (vec![], None, 0);
        let shelf = s.clone();
        let p = bowline_types::Proposal { id, shelf, session, guards, items, ask, settled };
        event(&mut w, 0, Event::Frame(link, Frame::Propose(Box::new(p))));
    }
    assert_eq!(disk(&w, 0).shelves[&s].verdicts.len(), 4096);
    let told = on_wire(&w, link, 1);
    let refused = told.iter().filter(|f| {
        let Frame::Verdict { verdict, .. } = f else { return false };
        matches!(verdict, Verdict::Refused { why, .. } if why == UNSETTLED)
    });
    assert_eq!(refused.count(), 4999 - 4096);
    w.settle(&mut r);
}
