//! The resync in all four roles, against peers of ours and against what Go peers do.

use super::*;
use crate::checksum::Sum;
use crate::payload::SyncedResource;

const HOME: &str = "argocd";

fn app(namespace: &str, name: &str) -> Place {
    Place::new(Resource::Application, namespace, name)
}

fn held(uid: &str, sum: u8) -> Held {
    Held { uid: uid.into(), checksum: Some([sum; 32]), copy: None, news: News::None }
}

fn inventory(items: &[(Place, Held)]) -> Inventory {
    items.iter().cloned().collect()
}

fn principal(mode: Mode) -> Resync {
    Resync::new(End::Principal, mode, "a1", HOME, Apps::In("a1".into()))
}

fn agent(mode: Mode) -> Resync {
    Resync::new(End::Agent, mode, "a1", HOME, Apps::In(HOME.into()))
}

fn request(place: &Place, uid: &str, sum: Option<u8>) -> Message {
    Message::RequestUpdate(RequestUpdate {
        name: place.name.clone(),
        namespace: place.namespace.clone(),
        uid: uid.into(),
        kind: place.resource.name().into(),
        checksum: sum.map(|sum| vec![sum; 32]),
    })
}

fn list(checksum: Option<Sum>) -> Message {
    Message::RequestList(RequestSyncedResourceList { checksum: checksum.map(|s| s.to_vec()) })
}

fn synced(place: &Place, uid: &str) -> Message {
    Message::Synced(SyncedResource {
        name: place.name.clone(),
        namespace: place.namespace.clone(),
        uid: uid.into(),
        kind: place.resource.name().into(),
    })
}

fn delete(uid: &str) -> Need {
    Need::Delete { uid: uid.into() }
}

#[test]
fn roles_follow_from_end_and_mode() {
    assert_eq!(Role::of(End::Principal, Mode::Managed), Role::Source);
    assert_eq!(Role::of(End::Agent, Mode::Managed), Role::Peer);
    assert_eq!(Role::of(End::Principal, Mode::Autonomous), Role::Peer);
    assert_eq!(Role::of(End::Agent, Mode::Autonomous), Role::Source);
}

#[test]
fn a_source_answers_each_question_by_what_it_has() {
    for (mut source, namespace) in
        [(principal(Mode::Managed), "a1"), (agent(Mode::Autonomous), HOME)]
    {
        let web = app(namespace, "web");
        let ours = inventory(&[(web.clone(), held("u1", 1))]);
        // The other end calls the namespace something else.
        let asked = app("elsewhere", "web");
        let mut answer = |uid, sum| source.receive(&ours, &request(&asked, uid, sum)).unwrap();
        assert_eq!(answer("u1", Some(1)), [], "equal: nothing");
        let object = Subject::Object(web.clone());
        assert_eq!(answer("u1", Some(2)), [(object.clone(), Need::SpecUpdate)]);
        assert_eq!(answer("", None), [(object.clone(), Need::SpecUpdate)], "the peer lacks it");
        assert_eq!(answer("u0", Some(1)), [(object, Need::SpecUpdate)], "another incarnation");
        let gone = source.receive(&ours, &request(&app("elsewhere", "old"), "u9", Some(1)));
        let old = Subject::Object(app(namespace, "old"));
        assert_eq!(gone, Ok(vec![(old, delete("u9"))]), "by the uid that the peer named");
    }
}

#[test]
fn a_source_tells_what_a_checksum_does_not_show() {
    let (web, db) = (app("a1", "web"), app("a1", "db"));
    let project = Place::new(Resource::AppProject, HOME, "team");
    let with = |news| Held { news, ..held("u1", 1) };
    let ours = inventory(&[
        (web.clone(), with(News::Ending)),
        (db.clone(), with(News::Changed)),
        (project.clone(), with(News::Ending)),
    ]);
    let mut source = principal(Mode::Managed);
    source.begin(&ours);
    let mut answer = |place: &Place, uid, sum| {
        let owed = source.receive(&ours, &request(place, uid, sum)).unwrap();
        owed.into_iter().map(|(_, need)| need).collect::<Vec<_>>()
    };
    assert_eq!(answer(&db, "u1", Some(1)), [Need::SpecUpdate]);
    assert_eq!(answer(&web, "", None), [delete("u1")], "it would be made first");
    assert_eq!(answer(&web, "u0", Some(1)), [delete("u1")], "and of another incarnation, too");
    assert_eq!(answer(&web, "u1", Some(1)), [Need::SpecUpdate], "the peer says when it is gone");
    assert_eq!(answer(&web, "", None), [], "looked for in the wrong place");
    assert_eq!(answer(&project, "u1", Some(1)), [delete("u1")], "Go agents know no other way");
}

#[test]
fn equal_keys_seal_and_different_ones_are_listed() {
    let (web, db) = (app("a1", "web"), app("a1", "db"));
    let ours = inventory(&[(web.clone(), held("u1", 1)), (db.clone(), held("u2", 2))]);
    let mut source = principal(Mode::Managed);
    source.begin(&ours);
    assert!(!source.is_sealed(&ours));
    assert_eq!(source.receive(&ours, &list(ours.key_checksum())), Ok(vec![]));
    assert!(source.is_sealed(&ours));

    let mut source = principal(Mode::Managed);
    source.begin(&ours);
    let owed = source.receive(&ours, &list(None)).unwrap();
    let named = |place: &Place| (Subject::Resync(place.clone()), Need::Synced);
    assert_eq!(owed, [named(&db), named(&web)]);
    source.receive(&ours, &request(&web, "", None)).unwrap();
    assert!(!source.is_sealed(&ours), "db has not been asked about");
    source.receive(&ours, &request(&db, "u2", Some(2))).unwrap();
    assert!(source.is_sealed(&ours));
}

#[test]
fn what_a_go_agent_has_shown_to_hold_is_not_sent_again_when_it_looks_in_the_wrong_place() {
    let web = app("a1", "web");
    let ours = inventory(&[(web.clone(), held("u1", 1))]);
    let mut source = principal(Mode::Managed);
    source.begin(&ours);
    // Its ack overtakes its question, so that everything is named to it.
    let owed = source.acked(&ours, &Subject::Whole, &Need::RequestResync);
    assert_eq!(owed, [(Subject::Resync(web.clone()), Need::Synced)]);
    assert_eq!(source.receive(&ours, &request(&app(HOME, "web"), "u1", Some(1))), Ok(vec![]));
    assert_eq!(source.receive(&ours, &request(&web, "", None)), Ok(vec![]));
    // In the next round it has to show it anew.
    source.begin(&ours);
    let lacking = source.receive(&ours, &request(&web, "", None));
    assert_eq!(lacking, Ok(vec![(Subject::Object(web), Need::SpecUpdate)]));
}

#[test]
fn nothing_against_nothing_is_equal() {
    let ours = Inventory::default();
    for checksum in [None, Some(vec![])] {
        let mut source = principal(Mode::Managed);
        let message = Message::RequestList(RequestSyncedResourceList { checksum });
        assert_eq!(source.receive(&ours, &message), Ok(vec![]));
        assert!(source.is_sealed(&ours));
    }
    // A peer that holds something while we hold nothing asks about each thing by itself.
    let mut source = principal(Mode::Managed);
    assert_eq!(source.receive(&ours, &list(Some([7; 32]))), Ok(vec![]));
    assert!(source.is_sealed(&ours));
}

#[test]
fn a_source_names_what_a_go_peer_lacks_and_did_not_ask_about() {
    // After a restart of the principal a Go agent only tells what it holds.
    let (web, lost) = (app("a1", "web"), app("a1", "lost"));
    let ours = inventory(&[(web.clone(), held("u1", 1)), (lost.clone(), held("u2", 2))]);
    let mut source = principal(Mode::Managed);
    assert_eq!(source.begin(&ours), [(Subject::Whole, Need::RequestResync)]);
    assert_eq!(source.receive(&ours, &request(&web, "u1", Some(1))), Ok(vec![]));
    let owed = source.acked(&ours, &Subject::Whole, &Need::RequestResync);
    assert_eq!(owed, [(Subject::Resync(lost.clone()), Need::Synced)]);
    let owed = source.receive(&ours, &request(&lost, "", None)).unwrap();
    assert_eq!(owed, [(Subject::Object(lost), Need::SpecUpdate)]);
    assert!(source.is_sealed(&ours));
}

#[test]
fn what_goes_while_it_is_listed_does_not_hold_up_the_seal() {
    let web = app("a1", "web");
    let mut ours = inventory(&[(web.clone(), held("u1", 1))]);
    let mut source = principal(Mode::Managed);
    source.begin(&ours);
    source.receive(&ours, &list(None)).unwrap();
    assert!(!source.is_sealed(&ours));
    ours.remove(&web);
    assert!(source.is_sealed(&ours));
}

#[test]
fn a_peer_asks_about_all_it_holds_and_is_done_when_all_is_acked() {
    for (mut peer, namespace) in [(agent(Mode::Managed), HOME), (principal(Mode::Autonomous), "a1")]
    {
        let web = app(namespace, "web");
        let ours = inventory(&[(web.clone(), held("u1", 1))]);
        let about_web = (Subject::Resync(web.clone()), Need::RequestUpdate);
        let about_all = (Subject::Whole, Need::RequestList);
        assert_eq!(peer.begin(&ours), [about_web.clone(), about_all.clone()]);
        peer.acked(&ours, &about_all.0, &about_all.1);
        assert!(!peer.is_sealed(&ours));
        // The source has something that we lack.
        let new = app("elsewhere", "new");
        let about_new = (Subject::Resync(app(namespace, "new")), Need::RequestUpdate);
        assert_eq!(peer.receive(&ours, &synced(&new, "u2")), Ok(vec![about_new.clone()]));
        peer.acked(&ours, &about_web.0, &about_web.1);
        assert!(!peer.is_sealed(&ours));
        peer.acked(&ours, &about_new.0, &about_new.1);
        assert!(peer.is_sealed(&ours));
        assert_eq!(peer.receive(&ours, &Message::RequestResync), Ok(vec![about_web]));
        assert!(!peer.is_sealed(&ours), "a new round");
    }
}

#[test]
fn nobody_answers_out_of_role() {
    let ours = Inventory::default();
    let web = app("a1", "web");
    for mut source in [principal(Mode::Managed), agent(Mode::Autonomous)] {
        for message in [synced(&web, "u"), Message::RequestResync] {
            assert!(matches!(source.receive(&ours, &message), Err(ResyncError::Role { .. })));
        }
    }
    for mut peer in [principal(Mode::Autonomous), agent(Mode::Managed)] {
        for message in [list(None), request(&web, "u", None)] {
            assert!(matches!(peer.receive(&ours, &message), Err(ResyncError::Role { .. })));
        }
    }
}

#[test]
fn projects_are_compared_as_the_peer_keeps_them() {
    let project = Place::new(Resource::AppProject, HOME, "team");
    let copy = Some([5; 32]);
    let ours = inventory(&[(project.clone(), Held { copy, ..held("u1", 1) })]);
    let mut source = principal(Mode::Managed);
    for (sum, owed) in [(1, 0), (5, 0), (6, 1)] {
        let answer = source.receive(&ours, &request(&project, "u1", Some(sum))).unwrap();
        assert_eq!(answer.len(), owed, "checksum {sum}");
    }
}

#[test]
fn an_autonomous_project_is_found_by_the_name_of_its_copy() {
    let team = Place::new(Resource::AppProject, HOME, "team");
    let ours = inventory(&[(team.clone(), held("u1", 1))]);
    let mut source = agent(Mode::Autonomous);
    let asked = Place::new(Resource::AppProject, HOME, "a1-team");
    let answer = source.receive(&ours, &request(&asked, "u1", Some(2))).unwrap();
    assert_eq!(answer, [(Subject::Object(team.clone()), Need::SpecUpdate)], "not a delete");
    let gone = Place::new(Resource::AppProject, HOME, "a1-gone");
    let answer = source.receive(&ours, &request(&gone, "u9", Some(2))).unwrap();
    let bare = Place::new(Resource::AppProject, HOME, "gone");
    assert_eq!(answer, [(Subject::Object(bare), delete("u9"))], "by our own name for it");
    // A project that is really called so, and the copy of another: the uid tells.
    let both = inventory(&[(team.clone(), held("u1", 1)), (asked.clone(), held("u2", 2))]);
    for (uid, place) in [("u1", team), ("u2", asked.clone())] {
        let answer = source.receive(&both, &request(&asked, uid, Some(9))).unwrap();
        assert_eq!(answer, [(Subject::Object(place), Need::SpecUpdate)]);
    }
    // Applications have no prefix.
    let app = app(HOME, "a1-web");
    let answer = source.receive(&both, &request(&app, "u3", None)).unwrap();
    assert_eq!(answer, [(Subject::Object(app), delete("u3"))]);
}

#[test]
fn repositories_and_keys_are_mended_too() {
    for resource in [Resource::Repository, Resource::GpgKey] {
        let place = Place::new(resource, HOME, "x");
        let ours = inventory(&[(place.clone(), held("u1", 1))]);
        let mut source = principal(Mode::Managed);
        let asked = Place::new(resource, "agents-own", "x");
        let answer = source.receive(&ours, &request(&asked, "u1", Some(2))).unwrap();
        assert_eq!(answer, [(Subject::Object(place), Need::SpecUpdate)]);
    }
    let set = Message::RequestUpdate(RequestUpdate {
        name: "x".into(),
        namespace: String::new(),
        uid: String::new(),
        kind: "ApplicationSet".into(),
        checksum: None,
    });
    let refused = principal(Mode::Managed).receive(&Inventory::default(), &set);
    assert_eq!(refused, Err(ResyncError::Unknown("ApplicationSet".into())));
}

#[test]
fn with_mapping_by_destination_namespaces_are_taken_as_named() {
    let web = app("shop", "web");
    let ours = inventory(&[(web.clone(), held("u1", 1))]);
    let mut source = Resync::new(End::Principal, Mode::Managed, "a1", HOME, Apps::AsNamed);
    let answer = source.receive(&ours, &request(&web, "u1", Some(2))).unwrap();
    assert_eq!(answer, [(Subject::Object(web), Need::SpecUpdate)]);
    let other = app("other", "web");
    let answer = source.receive(&ours, &request(&other, "u1", Some(1))).unwrap();
    assert_eq!(answer, [(Subject::Object(other), delete("u1"))]);
}

#[test]
fn words_are_those_of_the_moment() {
    let web = app("a1", "web");
    let ours = inventory(&[(web.clone(), held("u1", 1))]);
    let text = |subject: &Subject, need: &Need| {
        word(&ours, subject, need).map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
    };
    let missing = Subject::Resync(app("a1", "no"));
    let expected =
        r#"{"name":"no","namespace":"a1","uid":"","kind":"Application","checksum":null}"#;
    assert_eq!(text(&missing, &Need::RequestUpdate).as_deref(), Some(expected));
    assert_eq!(text(&missing, &Need::Synced), None, "it went in the meantime");
    let web = Subject::Resync(web);
    let expected = r#"{"name":"web","namespace":"a1","uid":"u1","kind":"Application"}"#;
    assert_eq!(text(&web, &Need::Synced).as_deref(), Some(expected));
    let asked = text(&web, &Need::RequestUpdate).unwrap();
    assert!(asked.contains(r#""uid":"u1""#) && asked.contains(r#""checksum":"AQEB"#), "{asked}");
    assert_eq!(text(&Subject::Whole, &Need::RequestResync).as_deref(), Some("{}"));
    assert!(text(&Subject::Whole, &Need::RequestList).unwrap().starts_with(r#"{"checksum":""#));
    assert_eq!(text(&Subject::Whole, &Need::Create), None);
}

/// Two ends of ours, in either mode, from any two inventories: after one round the copies are the
/// source's, and both know that the round is over.
#[test]
fn one_round_makes_copies_equal() {
    use crate::rng::Rng;
    for seed in 0..500 {
        let mut rng = Rng(seed);
        let mode = if seed % 2 == 0 { Mode::Managed } else { Mode::Autonomous };
        let ends = [(principal(mode), "a1"), (agent(mode), HOME)];
        let (source, peer) = match Role::of(End::Principal, mode) {
            Role::Source => (ends[0].clone(), ends[1].clone()),
            Role::Peer => (ends[1].clone(), ends[0].clone()),
        };
        let mut random = |namespace: &str| {
            let mut out = Inventory::default();
            for name in ["a", "b", "c", "d"] {
                if rng.below(3) > 0 {
                    let uid = rng.pick(&["u1", "u2"]);
                    out.insert(app(namespace, name), held(uid, rng.below(2) as u8));
                }
            }
            out
        };
        let mut round = Round {
            theirs: random(source.1),
            copies: random(peer.1),
            source: source.0,
            peer: peer.0,
            namespaces: (source.1, peer.1),
        };
        let both_begin = rng.below(2) == 0;
        round.run(both_begin);
        let plain = |inventory: &Inventory| -> Vec<_> {
            inventory.places().map(|p| (p.name.clone(), inventory.get(p).cloned())).collect()
        };
        assert_eq!(plain(&round.copies), plain(&round.theirs), "seed {seed}");
        assert!(round.source.is_sealed(&round.theirs), "seed {seed}: source");
        assert!(!both_begin || round.peer.is_sealed(&round.copies), "seed {seed}: peer");
    }
}

struct Round {
    source: Resync,
    theirs: Inventory,
    peer: Resync,
    copies: Inventory,
    namespaces: (&'static str, &'static str),
}

impl Round {
    fn run(&mut self, both_begin: bool) {
        let mut to_peer = self.source.begin(&self.theirs);
        let mut to_source = if both_begin { self.peer.begin(&self.copies) } else { vec![] };
        while !to_peer.is_empty() || !to_source.is_empty() {
            for (subject, need) in std::mem::take(&mut to_peer) {
                match &subject {
                    Subject::Object(place) => self.mend(place, &need),
                    _ => {
                        let message = read(&self.theirs, &subject, &need);
                        to_source.extend(self.peer.receive(&self.copies, &message).unwrap());
                    }
                }
                to_peer.extend(self.source.acked(&self.theirs, &subject, &need));
            }
            for (subject, need) in std::mem::take(&mut to_source) {
                let message = read(&self.copies, &subject, &need);
                to_peer.extend(self.source.receive(&self.theirs, &message).unwrap());
                to_source.extend(self.peer.acked(&self.copies, &subject, &need));
            }
        }
    }

    fn mend(&mut self, place: &Place, need: &Need) {
        let copy = app(self.namespaces.1, &place.name);
        assert_eq!(place.namespace, self.namespaces.0);
        match need {
            Need::Delete { .. } => self.copies.remove(&copy),
            _ => self.copies.insert(copy, self.theirs.get(place).unwrap().clone()),
        }
    }
}

fn read(inventory: &Inventory, subject: &Subject, need: &Need) -> Message {
    let bytes = word(inventory, subject, need).unwrap();
    Message::read(&need.kind(), &bytes).unwrap().unwrap()
}
