//! First starts, joins, renewals, and crashes in the middle of a CA rotation.

use std::fs;
use std::time::Duration;

use bowline_types::{NodeId, Wall};
use tempfile::TempDir;

use super::*;
use crate::ca::{NODE_LIFE, SERVER_LIFE};
use crate::{Ca, CaSet, HeadSigner, NodeKey, Phase, TrustBundle, ca};

const NOW: Wall = Wall(1_794_787_200_000);

fn later(days: u64) -> Wall {
    Wall(NOW.0 + days * 86_400_000)
}

fn hub() -> (TempDir, HubDir, CaSet) {
    let temp = tempfile::tempdir().unwrap();
    let dir = HubDir::open(temp.path().join("identity")).unwrap();
    let set = dir.init("test", NOW).unwrap();
    (temp, dir, set)
}

fn agent() -> (TempDir, AgentDir) {
    let temp = tempfile::tempdir().unwrap();
    let dir = AgentDir::open(temp.path().join("identity")).unwrap();
    (temp, dir)
}

fn sign(set: &CaSet, key: &NodeKey, now: Wall) -> String {
    set.sign_csr(&key.csr().unwrap(), &NodeId::new("a1").unwrap(), NODE_LIFE, now).unwrap()
}

fn names(temp: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(temp.path().join("identity")).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn sans() -> Vec<String> {
    vec!["hub.example".into(), "127.0.0.1".into(), "0:0:0:0:0:0:0:1".into()]
}

#[test]
fn a_crash_before_the_trust_bundle_was_written_is_made_good_at_the_next_start() {
    let (temp, dir, mut set) = hub();
    fs::remove_file(dir.trust_file()).unwrap();
    dir.init("test", NOW).unwrap();
    assert_eq!(fs::read_to_string(dir.trust_file()).unwrap(), set.bundle().to_pem());
    // The same at the end of a rotation: the old CA is gone, and the bundle still names it.
    set.rotate("next", NOW).unwrap();
    set.promote().unwrap();
    let stale = set.bundle().to_pem();
    set.retire_old().unwrap();
    dir.save_ca(&set).unwrap();
    fs::write(dir.trust_file(), stale).unwrap();
    let again = HubDir::open(temp.path().join("identity")).unwrap();
    let read = again.init("test", NOW).unwrap();
    assert_eq!(fs::read_to_string(again.trust_file()).unwrap(), read.bundle().to_pem());
    assert_eq!(read.bundle().certs().len(), 1, "only the CA that signs");
}

#[test]
fn neither_role_takes_the_folder_of_the_other() {
    let (temp, _, set) = hub();
    let wrong = AgentDir::open(temp.path().join("identity")).unwrap_err();
    assert!(matches!(wrong, Error::OtherRole("a hub")), "{wrong:?}");
    let (temp, dir) = agent();
    let keys = dir.begin_join().unwrap();
    dir.accept(&keys.node, &sign(&set, &keys.node, NOW), &set.bundle(), NOW).unwrap();
    let wrong = HubDir::open(temp.path().join("identity")).unwrap_err();
    assert!(matches!(wrong, Error::OtherRole("an agent")), "{wrong:?}");
}

#[test]
fn a_hub_makes_its_identity_once() {
    let (temp, dir, set) = hub();
    assert_eq!(names(&temp), ["ca.crt", "ca.pem", "head.key", "token.key"]);
    let token = dir.token_signer().unwrap().key_id().to_owned();
    let head = dir.head_signer().unwrap().public();
    let again = HubDir::open(temp.path().join("identity")).unwrap();
    let set2 = again.init("other name", later(1)).unwrap();
    assert_eq!(set2.signing().cert_der(), set.signing().cert_der());
    assert_eq!(again.token_signer().unwrap().key_id(), token);
    assert_eq!(again.head_signer().unwrap().public(), head);
}

#[test]
fn secrets_are_for_their_owner_only_and_doctor_hears_of_the_rest() {
    use std::os::unix::fs::PermissionsExt as _;
    let (temp, dir, set) = hub();
    dir.ensure_server(&set, &sans(), SERVER_LIFE, NOW).unwrap();
    let root = temp.path().join("identity");
    assert_eq!(files::mode(&root).unwrap(), 0o700);
    for secret in ["ca.pem", "server.pem", "token.key", "head.key"] {
        assert_eq!(files::mode(&root.join(secret)).unwrap(), 0o600, "{secret}");
    }
    assert!(dir.exposed().is_empty());
    fs::set_permissions(root.join("ca.pem"), fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(dir.exposed(), [root.join("ca.pem")]);
}

#[test]
fn a_lost_key_of_a_known_hub_is_an_error_and_not_made_anew() {
    let (temp, dir, _) = hub();
    fs::remove_file(temp.path().join("identity/head.key")).unwrap();
    dir.init("test", NOW).unwrap();
    assert!(matches!(dir.head_signer(), Err(Error::Head(_))));
}

#[test]
fn a_hub_takes_the_operators_ca_but_not_a_second_one() {
    let temp = tempfile::tempdir().unwrap();
    let dir = HubDir::open(temp.path()).unwrap();
    let theirs = Ca::create("theirs", NOW).unwrap();
    let pem = theirs.to_pem();
    let pin = theirs.fingerprint();
    assert_eq!(dir.init_with(theirs).unwrap().signing().fingerprint(), pin);
    assert!(dir.init_with(Ca::from_pem(&pem).unwrap()).is_ok());
    let other = Ca::create("other", NOW).unwrap();
    assert!(matches!(dir.init_with(other), Err(Error::OtherCa)));
}

#[test]
fn the_server_certificate_is_kept_while_it_is_good() {
    let (_temp, dir, set) = hub();
    let ensure = |set: &CaSet, sans: &[String], now| {
        dir.ensure_server(set, sans, SERVER_LIFE, now).unwrap().thumbprint()
    };
    let first = ensure(&set, &sans(), NOW);
    assert_eq!(ensure(&set, &sans(), later(59)), first);
    let renewed = ensure(&set, &sans(), later(60));
    assert_ne!(renewed, first);
    let mut reordered = sans();
    reordered.reverse();
    assert_eq!(ensure(&set, &reordered, later(60)), renewed);
    let moved = ensure(&set, &["new.example".into()], later(60));
    assert_ne!(moved, renewed);
}

#[test]
fn the_server_certificate_follows_a_promotion_and_a_damaged_file() {
    let (temp, dir, mut set) = hub();
    let ensure = |set: &CaSet| dir.ensure_server(set, &sans(), SERVER_LIFE, NOW).unwrap();
    let first = ensure(&set).thumbprint();
    set.rotate("next", NOW).unwrap();
    assert_eq!(ensure(&set).thumbprint(), first);
    set.promote().unwrap();
    let second = ensure(&set);
    assert_eq!(second.chain()[1], *set.signing().cert_der());
    fs::write(temp.path().join("identity/server.pem"), "torn").unwrap();
    assert_ne!(ensure(&set).thumbprint(), second.thumbprint());
}

#[test]
fn each_phase_of_a_rotation_survives_a_restart() {
    let (temp, dir, mut set) = hub();
    let reread = || dir.ca().unwrap().unwrap();
    let old = set.signing().fingerprint();
    set.rotate("next", NOW).unwrap();
    dir.save_ca(&set).unwrap();
    assert!(matches!(reread().phase(), Phase::Announced { .. }));
    assert_eq!(reread().signing().fingerprint(), old);
    assert_eq!(reread().bundle(), set.bundle());
    set.promote().unwrap();
    dir.save_ca(&set).unwrap();
    assert!(matches!(reread().phase(), Phase::Switched { .. }));
    assert_ne!(reread().signing().fingerprint(), old);
    assert_eq!(reread().bundle(), set.bundle());
    set.retire_old().unwrap();
    dir.save_ca(&set).unwrap();
    assert!(matches!(reread().phase(), Phase::Steady));
    assert_eq!(names(&temp), ["ca.crt", "ca.pem", "head.key", "token.key"]);
    let public = files::read(&dir.trust_file()).unwrap();
    assert_eq!(TrustBundle::from_pem(&public).unwrap(), set.bundle());
}

#[test]
fn a_crash_in_the_middle_of_a_promotion_is_before_it_or_after_it() {
    let (temp, dir, mut set) = hub();
    let root = temp.path().join("identity");
    set.rotate("next", NOW).unwrap();
    dir.save_ca(&set).unwrap();
    let (before, next) =
        (set.signing().cert_pem(), files::read(&root.join("ca-next.pem")).unwrap());

    // The old CA's certificate has been kept, the new CA does not sign yet.
    fs::write(root.join("ca-old.crt"), &before).unwrap();
    let seen = dir.ca().unwrap().unwrap();
    assert!(matches!(seen.phase(), Phase::Announced { .. }));
    assert_eq!(seen.bundle(), set.bundle());

    // The new CA signs, nothing has been cleared up.
    fs::write(root.join("ca.pem"), &next).unwrap();
    let seen = dir.ca().unwrap().unwrap();
    assert!(matches!(seen.phase(), Phase::Switched { .. }));
    set.promote().unwrap();
    assert_eq!(seen.bundle(), set.bundle());
    dir.save_ca(&seen).unwrap();
    assert!(!root.join("ca-next.pem").exists());

    // An old CA that is the one that signs is no old CA.
    fs::write(root.join("ca-old.crt"), seen.signing().cert_pem()).unwrap();
    assert!(matches!(dir.ca().unwrap().unwrap().phase(), Phase::Steady));
}

#[test]
fn an_agent_joins_and_finds_itself_again() {
    let (_hub_temp, _, set) = hub();
    let (temp, dir) = agent();
    assert!(dir.identity().unwrap().is_none());
    let keys = dir.begin_join().unwrap();
    let cert = sign(&set, &keys.node, NOW);
    let me = dir.accept(&keys.node, &cert, &set.bundle(), NOW).unwrap();
    assert_eq!(me.me.node.as_str(), "a1");
    let again = dir.identity().unwrap().unwrap();
    assert_eq!(again.me, me.me);
    assert_eq!(again.trust, set.bundle());
    assert_eq!(dir.head_signer().unwrap().public(), keys.head.public());
    assert_eq!(names(&temp), ["ca.crt", "head.key", "node.pem"]);
    assert!(dir.exposed().is_empty());
}

#[test]
fn a_join_that_was_cut_goes_on_with_the_same_keys() {
    let (_temp, dir) = agent();
    let (first, second) = (dir.begin_join().unwrap(), dir.begin_join().unwrap());
    assert_eq!(first.node.fingerprint(), second.node.fingerprint());
    assert_eq!(first.head.public(), second.head.public());
}

#[test]
fn a_renewal_brings_a_new_key_and_replaces_both_at_once() {
    let (_hub_temp, _, set) = hub();
    let (_temp, dir) = agent();
    let keys = dir.begin_join().unwrap();
    let me = dir.accept(&keys.node, &sign(&set, &keys.node, NOW), &set.bundle(), NOW).unwrap();
    assert!(!me.pair.validity().due(later(19)));
    assert!(me.pair.validity().due(later(20)));
    let key = NodeKey::generate().unwrap();
    dir.accept(&key, &sign(&set, &key, later(20)), &set.bundle(), later(20)).unwrap();
    let now = dir.identity().unwrap().unwrap();
    assert_ne!(now.me.thumbprint, me.me.thumbprint);
    assert_eq!(now.me.issued, later(20));
    assert!(HeadSigner::verify(
        &keys.head.public(),
        b"head",
        &dir.head_signer().unwrap().sign(b"head")
    ));
}

#[test]
fn a_certificate_that_does_not_fit_is_not_kept() {
    let (_hub_temp, _, set) = hub();
    let (_temp, dir) = agent();
    let keys = dir.begin_join().unwrap();
    let accept = |cert: &str, trust: &TrustBundle, now| dir.accept(&keys.node, cert, trust, now);

    let others = sign(&set, &NodeKey::generate().unwrap(), NOW);
    assert!(matches!(accept(&others, &set.bundle(), NOW), Err(Error::Tls(_))));
    let mine = sign(&set, &keys.node, NOW);
    let other_ca = CaSet::new(Ca::create("other", NOW).unwrap());
    assert!(matches!(accept(&mine, &other_ca.bundle(), NOW), Err(Error::Untrusted(_))));
    assert!(matches!(accept(&mine, &set.bundle(), later(31)), Err(Error::Untrusted(_))));
    let server = set.issue_server(&sans(), Duration::from_secs(60), NOW).unwrap();
    assert!(accept(&server.cert_pem, &set.bundle(), NOW).is_err());
    assert!(dir.identity().unwrap().is_none());
    assert!(accept(&mine, &set.bundle(), NOW).is_ok());
}

#[test]
fn a_damaged_file_is_an_error_and_not_a_first_start() {
    let (temp, dir, _) = hub();
    fs::write(temp.path().join("identity/ca.pem"), "torn").unwrap();
    assert!(matches!(dir.ca(), Err(Error::Ca(ca::Error::Pem(_)))));
    assert!(dir.init("test", NOW).is_err());
    let (temp, dir) = agent();
    fs::write(temp.path().join("identity/node.pem"), "torn").unwrap();
    assert!(dir.identity().is_err());
}
