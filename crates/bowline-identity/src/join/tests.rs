//! Join tokens: the text form, and who may come in.

use super::*;

fn pin() -> Fingerprint {
    Fingerprint::of(b"ca")
}

fn node(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

fn key(name: &str) -> Fingerprint {
    Fingerprint::of(name.as_bytes())
}

fn minted(bound: Option<&str>) -> (JoinToken, JoinRecord) {
    let hubs = vec!["hub.example:8443".into(), "[2001:db8::1]:8443".into()];
    JoinToken::mint(hubs, vec![pin()], bound.map(node), Wall(1_000)).unwrap()
}

#[test]
fn a_token_is_one_line_that_survives_copying() {
    for bound in [None, Some("a1")] {
        let (token, _) = minted(bound);
        let text = token.to_string();
        let safe = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        assert!(text.chars().all(safe), "{text}");
        assert_eq!(format!("  {text}\n").parse(), Ok(token));
    }
}

#[test]
fn a_damaged_token_is_told_from_another_text() {
    let text = minted(None).0.to_string();
    let parse = |text: &str| text.parse::<JoinToken>().unwrap_err();
    assert_eq!(parse(&text[..text.len() - 1]), Error::Damaged);
    assert_eq!(parse(&text[..40]), Error::Damaged);
    assert_eq!(parse(&text.replace("-1.e", "-1.f")), Error::Damaged);
    assert_eq!(parse("hello"), Error::NotAToken);
    assert_eq!(parse(""), Error::NotAToken);
    assert_eq!(parse("bowline-join-2.xyz"), Error::Newer);
    assert_eq!(parse(&format!("{PREFIX}{}", "A".repeat(10_000))), Error::Damaged);
}

#[test]
fn a_token_says_where_to_go_and_whom_to_trust() {
    let mint = |hubs: &[&str], pins| {
        let hubs = hubs.iter().map(ToString::to_string).collect();
        JoinToken::mint(hubs, pins, None, Wall(1)).map(|_| ()).unwrap_err()
    };
    assert_eq!(mint(&[], vec![pin()]), Error::NoHub);
    assert_eq!(mint(&["hub:8443"], vec![]), Error::NoPin);
    for bad in ["hub", "hub:0", "hub:x", ":8443", "https://hub:8443", "::1:8443"] {
        assert_eq!(mint(&[bad], vec![pin()]), Error::BadHub(bad.into()));
    }
}

#[test]
fn the_record_does_not_hold_the_secret_and_neither_is_logged() {
    let (token, record) = minted(None);
    assert!(!serde_json::to_string(&record).unwrap().contains(&token.secret));
    assert!(!format!("{token:?}{record:?}").contains(&token.secret));
}

#[test]
fn a_token_lets_one_agent_in_once() {
    let (token, record) = minted(None);
    let after = record.redeem(Wall(10), &token.secret, &node("a1"), key("k1")).unwrap();
    assert_eq!(after.used.as_ref().unwrap().node, node("a1"));
    let again = |name, k| after.redeem(Wall(11), &token.secret, &node(name), key(k));
    assert_eq!(again("a2", "k2"), Err(Refusal::Used));
    assert_eq!(again("a1", "k2"), Err(Refusal::Used));
    assert_eq!(again("a2", "k1"), Err(Refusal::Used));
}

#[test]
fn an_agent_whose_answer_was_lost_may_ask_again_with_the_same_key() {
    let (token, record) = minted(None);
    let redeem =
        |record: &JoinRecord, now| record.redeem(Wall(now), &token.secret, &node("a1"), key("k1"));
    let after = redeem(&record, 10).unwrap();
    assert_eq!(redeem(&after, 20), Ok(after.clone()));
    assert_eq!(redeem(&after, 1_001), Err(Refusal::Expired));
}

#[test]
fn a_wrong_secret_an_expired_token_and_another_name_are_refused() {
    let (token, record) = minted(Some("a1"));
    let redeem = |now, secret: &str, name| record.redeem(Wall(now), secret, &node(name), key("k"));
    assert_eq!(redeem(10, "guess", "a1"), Err(Refusal::Unknown));
    assert_eq!(redeem(1_001, &token.secret, "a1"), Err(Refusal::Expired));
    assert_eq!(redeem(10, &token.secret, "a2"), Err(Refusal::OtherNode));
    assert!(redeem(1_000, &token.secret, "a1").is_ok());
}

#[test]
fn a_stranger_does_not_learn_that_a_token_has_expired() {
    let (_, record) = minted(None);
    let answer = record.redeem(Wall(9_999), "guess", &node("a1"), key("k"));
    assert_eq!(answer, Err(Refusal::Unknown));
}
