//! Tokens against the facts, other keys and other times.

use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::*;

const NOW: Wall = Wall(1_794_787_200_000);
const MINUTE: u64 = 60_000;

fn later(millis: u64) -> Wall {
    Wall(NOW.0 + millis)
}

fn key() -> String {
    let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
    pem("PRIVATE KEY", pair.as_der().unwrap().as_ref())
}

fn client(mode: Mode) -> Client {
    Client { name: "a1".into(), mode }
}

fn part(token: &str, at: usize) -> Value {
    let part = token.split('.').nth(at).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

#[test]
fn tokens_say_what_go_peers_read() {
    let signer = Signer::from_pem(&key()).unwrap();
    let token = signer.access(&client(Mode::Managed), "id-1", NOW).unwrap();
    assert_eq!(part(&token, 0), json!({"typ": "JWT", "alg": "RS512"}));
    let seconds = NOW.0 / 1000;
    assert_eq!(
        part(&token, 1),
        json!({
            "iss": "argocd-agent-server",
            "aud": ["argocd-agent-server-access"],
            "sub": "{\"clientID\":\"a1\",\"mode\":\"managed\"}",
            "iat": seconds, "nbf": seconds, "exp": seconds + 300,
            "jti": "id-1",
        })
    );
    let token = signer.refresh(&client(Mode::Autonomous), "id-2", NOW).unwrap();
    let claims = part(&token, 1);
    assert_eq!(claims["aud"], json!(["argocd-agent-server-refresh"]));
    assert_eq!(claims["exp"], json!(seconds + 86_400));
    assert_eq!(claims["sub"], json!("{\"clientID\":\"a1\",\"mode\":\"autonomous\"}"));
    let claims = part(&signer.resource_proxy("a1", "id-3", NOW).unwrap(), 1);
    assert_eq!(claims["aud"], json!(["argocd-agent-server-resource-proxy"]));
    assert_eq!((&claims["sub"], claims.get("exp")), (&json!("a1"), None));
}

#[test]
fn a_token_opens_what_it_is_for_and_only_in_its_time() {
    let signer = Signer::from_pem(&key()).unwrap();
    let access = signer.access(&client(Mode::Managed), "i", NOW).unwrap();
    assert_eq!(signer.check_access(&access, NOW), Ok(client(Mode::Managed)));
    assert_eq!(signer.check_access(&access, later(5 * MINUTE - 1)), Ok(client(Mode::Managed)));
    assert_eq!(signer.check_access(&access, later(5 * MINUTE)), Err(TokenError::Expired));
    assert_eq!(signer.check_access(&access, Wall(NOW.0 - 1000)), Err(TokenError::NotYet));
    assert_eq!(signer.check_resource_proxy(&access, NOW), Err(TokenError::Purpose));
    let refresh = signer.refresh(&client(Mode::Managed), "i", NOW).unwrap();
    assert_eq!(signer.check_access(&refresh, NOW), Err(TokenError::Purpose));
    let renewed = signer.renew(&access, ["i", "j"], NOW);
    assert!(matches!(renewed, Err(RenewError::Token(TokenError::Purpose))), "{renewed:?}");
    let proxy = signer.resource_proxy("a1", "i", NOW).unwrap();
    assert_eq!(signer.check_access(&proxy, NOW), Err(TokenError::Purpose));
    let years = later(10 * 365 * 24 * 60 * MINUTE);
    assert_eq!(signer.check_resource_proxy(&proxy, years).as_deref(), Ok("a1"));
}

#[test]
fn only_our_own_signature_counts() {
    let (ours, other) = (Signer::from_pem(&key()).unwrap(), Signer::from_pem(&key()).unwrap());
    let token = other.access(&client(Mode::Managed), "i", NOW).unwrap();
    assert_eq!(ours.check_access(&token, NOW), Err(TokenError::Foreign));
    let token = ours.access(&client(Mode::Managed), "i", NOW).unwrap();
    let mut parts: Vec<&str> = token.split('.').collect();
    let claims = json!({"iss": ISSUER, "sub": "{\"clientID\":\"b\",\"mode\":\"managed\"}",
        "aud": "argocd-agent-server-access", "exp": u64::MAX, "nbf": 0, "iat": 0, "jti": ""});
    let forged = URL_SAFE_NO_PAD.encode(claims.to_string());
    parts[1] = &forged;
    assert_eq!(ours.check_access(&parts.join("."), NOW), Err(TokenError::Foreign));
    let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
    assert!(ours.check_access(&format!("{none}.{forged}."), NOW).is_err());
    let long = "x".repeat(20_000);
    for text in ["", ".", "..", "a.b.c", long.as_str()] {
        assert_eq!(ours.check_access(text, NOW), Err(TokenError::Malformed), "{text:.10}");
    }
}

#[test]
fn a_refresh_token_is_replaced_only_near_its_end() {
    let signer = Signer::from_pem(&key()).unwrap();
    let refresh = signer.refresh(&client(Mode::Managed), "i", NOW).unwrap();
    let day = 24 * 60 * MINUTE;
    let renew = |at| signer.renew(&refresh, ["x", "y"], at);
    let early = renew(later(MINUTE)).unwrap();
    assert_eq!((early.client.clone(), early.refresh), (client(Mode::Managed), None));
    assert_eq!(signer.check_access(&early.access, later(MINUTE)), Ok(client(Mode::Managed)));
    assert_eq!(renew(later(day - 10 * MINUTE)).unwrap().refresh, None, "ten minutes are left");
    let at = later(day - 10 * MINUTE + 1000);
    let new = renew(at).unwrap().refresh.unwrap();
    assert_eq!(part(&new, 1)["exp"], json!(at.0 / 1000 + 86_400));
    assert_eq!(part(&new, 1)["jti"], json!("y"));
    assert!(matches!(renew(later(day)), Err(RenewError::Token(TokenError::Expired))));
}

#[test]
fn an_agent_reads_its_name_and_when_to_renew() {
    let signer = Signer::from_pem(&key()).unwrap();
    let token = signer.access(&client(Mode::Autonomous), "i", NOW).unwrap();
    let glance = Glance::of(&token).unwrap();
    assert_eq!(glance.client, client(Mode::Autonomous));
    assert_eq!(glance.expires, later(5 * MINUTE));
    assert!(!glance.is_due(later(5 * MINUTE - 30_000)));
    assert!(glance.is_due(later(5 * MINUTE - 30_000 + 1)));
    let proxy = signer.resource_proxy("a1", "i", NOW).unwrap();
    assert_eq!(Glance::of(&proxy), Err(TokenError::Malformed), "no JSON in its subject");
    assert_eq!(Glance::of("nonsense"), Err(TokenError::Malformed));
}

#[test]
fn keys_come_in_both_wrappings() {
    let pkcs8 = key();
    let inner = EncodingKey::from_rsa_pem(pkcs8.as_bytes()).unwrap();
    let pkcs1 = pem("RSA PRIVATE KEY", inner.as_bytes());
    let (a, b) = (Signer::from_pem(&pkcs8).unwrap(), Signer::from_pem(&pkcs1).unwrap());
    let token = a.access(&client(Mode::Managed), "i", NOW).unwrap();
    assert_eq!(b.check_access(&token, NOW), Ok(client(Mode::Managed)), "one key");
    let mut torn = pkcs8.clone();
    torn.truncate(200);
    for text in ["", "hello", torn.as_str()] {
        let error = Signer::from_pem(text).unwrap_err();
        assert!(matches!(error, KeyError::Pem(_)), "{error}");
    }
}

#[test]
fn a_new_key_is_one_that_signs() {
    let signer = Signer::from_pem(&Signer::generate_pem().unwrap()).unwrap();
    let token = signer.access(&client(Mode::Managed), "i", NOW).unwrap();
    assert_eq!(signer.check_access(&token, NOW), Ok(client(Mode::Managed)));
}
