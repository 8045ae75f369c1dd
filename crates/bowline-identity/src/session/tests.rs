//! Session tokens: every way in which one is refused, and key rotation.

use super::*;

const NOW: Wall = Wall(1_794_787_200_000);

fn node() -> NodeId {
    NodeId::new("a1").unwrap()
}

fn cert() -> Fingerprint {
    Fingerprint::of(b"leaf")
}

fn later(seconds: u64) -> Wall {
    Wall(NOW.0 + seconds * 1000)
}

fn minted(signer: &TokenSigner) -> String {
    signer.mint(&node(), Some("managed"), cert(), SESSION_LIFE, NOW).unwrap()
}

#[test]
fn a_token_tells_who_and_until_when() {
    let signer = TokenSigner::generate().unwrap();
    let claims = signer.verify(&minted(&signer), cert(), later(1)).unwrap();
    assert_eq!(claims.sub, node());
    assert_eq!(claims.mode.as_deref(), Some("managed"));
    assert_eq!(claims.exp - claims.iat, 300);
    assert_eq!(claims.cnf.x5t_s256, cert().to_base64url());
    let other = signer.verify(&minted(&signer), cert(), NOW).unwrap();
    assert_ne!(claims.jti, other.jti);
}

#[test]
fn a_token_expires_by_the_given_clock() {
    let signer = TokenSigner::generate().unwrap();
    let token = minted(&signer);
    assert!(signer.verify(&token, cert(), later(299)).is_ok());
    assert_eq!(signer.verify(&token, cert(), later(300)), Err(TokenError::Expired));
}

#[test]
fn a_token_from_the_future_is_not_yet_valid() {
    let signer = TokenSigner::generate().unwrap();
    let token = minted(&signer);
    let before = |seconds: u64| Wall(NOW.0 - seconds * 1000);
    assert!(signer.verify(&token, cert(), before(SKEW_SECONDS)).is_ok());
    assert_eq!(signer.verify(&token, cert(), before(SKEW_SECONDS + 1)), Err(TokenError::NotYet));
}

#[test]
fn a_stolen_token_is_worth_nothing_with_another_certificate() {
    let signer = TokenSigner::generate().unwrap();
    let thief = Fingerprint::of(b"another leaf");
    assert_eq!(
        signer.verify(&minted(&signer), thief, later(9_999)),
        Err(TokenError::WrongCertificate)
    );
}

#[test]
fn a_token_of_another_key_issuer_or_audience_is_foreign() {
    let ours = TokenSigner::generate().unwrap();
    let theirs = minted(&TokenSigner::generate().unwrap());
    assert_eq!(ours.verify(&theirs, cert(), NOW), Err(TokenError::Foreign));
    for (issuer, audience) in [("other", "bowline-hub"), ("bowline-hub", "other")] {
        let named = TokenSigner::from_pem(&ours.to_pem()).unwrap().named(issuer, audience);
        assert_eq!(ours.verify(&minted(&named), cert(), NOW), Err(TokenError::Foreign));
    }
}

#[test]
fn a_token_that_borrows_our_key_id_is_foreign() {
    let ours = TokenSigner::generate().unwrap();
    let mut theirs = TokenSigner::generate().unwrap();
    theirs.current.id = ours.current.id.clone();
    assert_eq!(ours.verify(&minted(&theirs), cert(), NOW), Err(TokenError::Foreign));
}

#[test]
fn a_token_with_another_algorithm_is_foreign_whatever_it_claims() {
    let ours = TokenSigner::generate().unwrap();
    let claims = ours.verify(&minted(&ours), cert(), NOW).unwrap();
    let mut header = Header::new(Algorithm::HS256);
    header.kid = Some(ours.current.id.clone());
    // The classic confusion: the public key used as a shared secret.
    let secret = EncodingKey::from_secret(ours.current.decoding.try_get_as_bytes().unwrap());
    let token = jsonwebtoken::encode(&header, &claims, &secret).unwrap();
    assert_eq!(ours.verify(&token, cert(), NOW), Err(TokenError::Foreign));
}

#[test]
fn text_that_is_no_token_is_malformed() {
    let signer = TokenSigner::generate().unwrap();
    let token = minted(&signer);
    let payload = token.split('.').nth(1).unwrap();
    let unsigned = format!("{}.{payload}.", URL_SAFE_NO_PAD.encode(br#"{"alg":"none"}"#));
    let long = "a".repeat(MAX_TOKEN + 1);
    for bad in ["", "a.b.c", "no token", &unsigned, &long, &token.replace('.', "")] {
        assert_eq!(signer.verify(bad, cert(), NOW), Err(TokenError::Malformed), "{bad}");
    }
}

#[test]
fn a_changed_claim_breaks_the_signature() {
    let signer = TokenSigner::generate().unwrap();
    let token = minted(&signer);
    let parts: Vec<_> = token.split('.').collect();
    let json = String::from_utf8(URL_SAFE_NO_PAD.decode(parts[1]).unwrap()).unwrap();
    let forged = URL_SAFE_NO_PAD.encode(json.replace("\"a1\"", "\"a2\""));
    let token = format!("{}.{forged}.{}", parts[0], parts[2]);
    assert_eq!(signer.verify(&token, cert(), NOW), Err(TokenError::Foreign));
}

#[test]
fn tokens_of_the_previous_key_stay_good_through_one_rotation() {
    let mut signer = TokenSigner::generate().unwrap();
    let old = minted(&signer);
    signer.rotate().unwrap();
    let new = minted(&signer);
    assert!(signer.verify(&old, cert(), NOW).is_ok());
    assert!(signer.verify(&new, cert(), NOW).is_ok());
    signer.rotate().unwrap();
    assert_eq!(signer.verify(&old, cert(), NOW), Err(TokenError::Foreign));
    assert!(signer.verify(&new, cert(), NOW).is_ok());
    signer.forget_previous();
    assert_eq!(signer.verify(&new, cert(), NOW), Err(TokenError::Foreign));
}

#[test]
fn both_keys_survive_being_saved() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token.key");
    let mut signer = TokenSigner::generate().unwrap();
    let old = minted(&signer);
    signer.rotate().unwrap();
    signer.save(&path).unwrap();
    let again = TokenSigner::load(&path).unwrap();
    assert_eq!(again.key_id(), signer.key_id());
    assert!(again.verify(&old, cert(), NOW).is_ok());
    assert!(again.verify(&minted(&signer), cert(), NOW).is_ok());
    assert_eq!(files::mode(&path).unwrap(), 0o600);
}
