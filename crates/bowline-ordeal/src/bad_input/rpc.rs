//! Calls to the agents' port that no agent of ours would make.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail, ensure};
use bowline_client::api::JoinTokenCreate;
use bowline_identity::{
    Ca, ClientTls, JoinToken, NodeKey, Pair, TokenSigner, TrustBundle, Versions, server_name,
};
use bowline_resources::Mode;
use bowline_types::{NodeId, Wall};
use bowline_wire::{Error, Preference};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::Ground;
use super::agent::{dialer_by, join_request, joiner};
use crate::fleet::{Fleet, MANAGED, Side};
use crate::run::say;
use crate::stage::until;

const PING: &str = "/eventstreamapi.EventStream/Ping";
const PUSH: &str = "/eventstreamapi.EventStream/Push";
const AUTHENTICATE: &str = "/authapi.Authentication/Authenticate";

/// What a call came to.
#[derive(Debug)]
struct Said {
    status: String,
    message: String,
}

/// Now, less or more.
pub(crate) fn now() -> Wall {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Wall(since.as_millis() as u64)
}

/// A call with these bytes as its message, over HTTP/2 over TLS.
async fn call(
    fleet: &Fleet,
    pair: Option<&Pair>,
    path: &str,
    token: Option<&str>,
    body: Bytes,
) -> Result<Said> {
    let trust = TrustBundle::from_pem(&String::from_utf8(fleet.hub.ca()?)?)?;
    let tls = ClientTls::new(pair, &trust, Versions::Tls13)?;
    let stream = TcpStream::connect(("127.0.0.1", fleet.hub.agents_port)).await?;
    let connector = TlsConnector::from(tls.config_for(&["h2"]));
    let stream = connector.connect(server_name("localhost")?, stream).await?;
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let mut request = http::Request::post(format!("https://localhost{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("bowline-protocol", "1");
    if let Some(token) = token {
        request = request.header("authorization", token);
    }
    let work = async {
        let answer = sender.send_request(request.body(Full::new(body))?).await?;
        let head = answer.headers().clone();
        let trailers = answer.into_body().collect().await?.trailers().cloned();
        let find = |name: &str| {
            let value = trailers.as_ref().and_then(|t| t.get(name)).or_else(|| head.get(name));
            value.map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned()).unwrap_or_default()
        };
        Ok(Said { status: find("grpc-status"), message: find("grpc-message").replace("%20", " ") })
    };
    let said = tokio::time::timeout(Duration::from_secs(60), work).await;
    connection.abort();
    said.context("no answer")?
}

/// A message with its length before it.
fn framed(message: &[u8]) -> Bytes {
    let mut out = vec![0];
    out.extend_from_slice(&(message.len() as u32).to_be_bytes());
    out.extend_from_slice(message);
    out.into()
}

/// A token that the hub would give to mallory.
fn token(ground: &Ground, at: Wall) -> Result<String> {
    let signer = TokenSigner::load(&ground.fleet.hub.data.join("pki/token.key"))?;
    let pair = &ground.mallory.pair;
    let life = Duration::from_secs(300);
    Ok(signer.mint(&ground.mallory.name, None, pair.thumbprint(), life, at)?)
}

fn refused(said: &Said, what: &str) -> Result<()> {
    ensure!(!said.status.is_empty() && said.status != "0", "{what}: {said:?}");
    Ok(())
}

/// Bytes that are no message.
pub(super) async fn malformed_messages(ground: &mut Ground) -> Result<()> {
    let token = token(ground, now())?;
    let noise = ground.chance.bytes(300);
    let bodies: Vec<(&str, Bytes)> = vec![
        ("noise", framed(&noise)),
        ("half a prefix", Bytes::from_static(&[0, 0])),
        ("a length beyond what comes", Bytes::from_static(&[0, 0, 0, 1, 0, 1, 2])),
        ("compressed, with nothing agreed", Bytes::from_static(&[1, 0, 0, 0, 1, 0])),
        ("an unknown flag", Bytes::from_static(&[7, 0, 0, 0, 1, 0])),
        ("a length of four gigabytes", Bytes::from_static(&[0, 255, 255, 255, 255, 0])),
    ];
    for (what, body) in bodies {
        for path in [PUSH, AUTHENTICATE, "/bowline.join.v1.Join/Join"] {
            let pair = Some(&ground.mallory.pair);
            let said = call(&ground.fleet, pair, path, Some(&token), body.clone()).await;
            let said = said.with_context(|| format!("{what} to {path}"))?;
            let code = if what.contains("four gigabytes") { "W103" } else { "W102" };
            ensure!(said.message.starts_with(code), "{what} to {path}: {said:?}");
        }
    }
    let nowhere = call(&ground.fleet, None, "/no.Such/Method", None, framed(b"")).await?;
    refused(&nowhere, "a method that is not there")
}

/// A message beyond the limit.
pub(super) async fn oversized_messages(ground: &mut Ground) -> Result<()> {
    let token = token(ground, now())?;
    let body = framed(&vec![0; 20 << 20]);
    for path in [PUSH, AUTHENTICATE] {
        let pair = Some(&ground.mallory.pair);
        let said = call(&ground.fleet, pair, path, Some(&token), body.clone()).await;
        let said = said.with_context(|| format!("20 MiB to {path}"))?;
        ensure!(said.message.starts_with("W103"), "20 MiB to {path}: {said:?}");
    }
    Ok(())
}

/// Nobody is let in without a certificate.
pub(super) async fn no_certificate(ground: &mut Ground) -> Result<()> {
    let said = call(&ground.fleet, None, AUTHENTICATE, None, framed(b"\x0a\x04mtls")).await?;
    refused(&said, "no certificate")?;
    ensure!(said.message.contains("BL-0301"), "no certificate: {said:?}");
    let token = token(ground, now())?;
    let said = call(&ground.fleet, None, PING, Some(&token), framed(b"")).await?;
    refused(&said, "a token without its certificate")?;
    ensure!(said.message.contains("BL-0301"), "a token without its certificate: {said:?}");
    Ok(())
}

/// A certificate for this key, by that authority, made at that time.
fn certificate(ca: &Ca, node: &str, at: Wall) -> Result<Pair> {
    let key = NodeKey::generate()?;
    let life = Duration::from_secs(3600);
    let chain = ca.sign_csr(&key.csr()?, &NodeId::new(node)?, life, at)?;
    Ok(Pair::from_pems(&chain, &key.to_pem())?)
}

/// Whoever runs an agent with that certificate reads the code, the cause and what to do.
async fn cannot_dial(ground: &Ground, pair: &Pair, what: &str, words: [&str; 2]) -> Result<()> {
    for preference in [Preference::Auto, Preference::Http2, Preference::WebSocket] {
        let dialer = dialer_by(&ground.fleet, pair, MANAGED, preference)?;
        let Err(error) = dialer.dial().await else { bail!("{what} was let in") };
        let said = format!("{} {}", error.code().as_str(), error.chain());
        say(format!("  {what}: {said}"));
        let told = said.starts_with("W302 ") && words.iter().all(|w| said.contains(w));
        ensure!(told, "{what} over {preference:?}: {said}");
    }
    Ok(())
}

/// A certificate in a good agent's name, by an authority of one's own.
pub(super) async fn certificate_of_another_authority(ground: &mut Ground) -> Result<()> {
    let pair = certificate(&Ca::create("bowline", now())?, MANAGED, now())?;
    let words = ["of an authority that the hub does not know", "join with a token"];
    cannot_dial(ground, &pair, "a certificate of another authority", words).await
}

/// A certificate that the hub's authority signed, long ago.
pub(super) async fn expired_certificate(ground: &mut Ground) -> Result<()> {
    let text = std::fs::read_to_string(ground.fleet.hub.data.join("pki/ca.pem"))?;
    let ca = Ca::from_pem(&text)?;
    let name = ground.mallory.name.to_string();
    // The CA is new, so the certificate began no earlier; it ends before it is shown.
    let pair = certificate(&ca, &name, Wall(now().0 - 40 * 24 * 3_600_000))?;
    let words = ["certificate has expired", "join anew with a token"];
    cannot_dial(ground, &pair, "an expired certificate", words).await
}

/// A genuine certificate in a name that is not in the roster: the hub's store is older than it.
pub(super) async fn an_agent_that_the_hub_forgot(ground: &mut Ground) -> Result<()> {
    let text = std::fs::read_to_string(ground.fleet.hub.data.join("pki/ca.pem"))?;
    let pair = certificate(&Ca::from_pem(&text)?, "forgotten", now())?;
    for preference in [Preference::Http2, Preference::WebSocket] {
        let dialer = dialer_by(&ground.fleet, &pair, "forgotten", preference)?;
        let Err(error) = dialer.dial().await else { bail!("a forgotten agent was let in") };
        let said = format!("{} {}", error.code().as_str(), error.chain());
        ensure!(said.starts_with("W201 ") && said.contains("BL-0303"), "{preference:?}: {said}");
    }
    Ok(())
}

/// Session tokens that are none, not one's own, too old, too new, by another signer.
pub(super) async fn bad_session_tokens(ground: &mut Ground) -> Result<()> {
    let hour = 3_600_000;
    let signer = TokenSigner::generate()?;
    let life = Duration::from_secs(300);
    let pair = &ground.mallory.pair;
    let foreign = signer.mint(&ground.mallory.name, None, pair.thumbprint(), life, now())?;
    let hubs = TokenSigner::load(&ground.fleet.hub.data.join("pki/token.key"))?;
    let other = certificate(&Ca::create("other", now())?, MANAGED, now())?;
    let stolen = hubs.mint(&NodeId::new(MANAGED)?, None, other.thumbprint(), life, now())?;
    let good = token(ground, now())?;
    let said = call(&ground.fleet, Some(pair), PING, Some(&good), framed(b"")).await?;
    ensure!(said.status == "0", "a good token is refused: {said:?}");
    let cases = [
        ("none", None, "BL-0305"),
        ("nonsense", Some("nonsense".to_owned()), "BL-0308"),
        ("expired", Some(token(ground, Wall(now().0 - hour))?), "BL-0306"),
        ("too new", Some(token(ground, Wall(now().0 + hour))?), "BL-0309"),
        ("of another signer", Some(foreign), "BL-0307"),
        ("of another's certificate", Some(stolen), "BL-0307"),
        // By one: of 85 characters no base64 can be made, whatever they are.
        ("cut short", Some(good[..good.len() - 1].to_owned()), "BL-0308"),
    ];
    for (what, token, code) in cases {
        let said = call(&ground.fleet, Some(pair), PING, token.as_deref(), framed(b"")).await?;
        refused(&said, what)?;
        ensure!(said.message.contains(code), "a token that is {what}: {said:?}");
    }
    Ok(())
}

/// Join tokens that are used, expired, unknown, or come with a request that is none.
pub(super) async fn bad_join_tokens(ground: &mut Ground) -> Result<()> {
    let admin = ground.fleet.at(Side::Hub).clone();
    let make = async |ttl_seconds| -> Result<JoinToken> {
        let (agent, labels) = ("stranger".to_owned(), Default::default());
        let new = JoinTokenCreate { agent, mode: Mode::Managed, labels, ttl_seconds };
        Ok(admin.create_join_token(&new).await?.token.parse()?)
    };
    let code = async |token: &JoinToken, csr: Option<Vec<u8>>| -> Result<String> {
        let mut request = join_request(token)?;
        if let Some(csr) = csr {
            request.csr = csr;
        }
        match joiner(token)?.join(request).await {
            Ok(_) => Ok("joined".to_owned()),
            Err(Error::Refused(refusal)) => Ok(refusal.message),
            Err(error) => Ok(error.chain()),
        }
    };
    let used = code(&ground.mallory.token, None).await?;
    ensure!(used.contains("BL-0313"), "a used token: {used}");
    let good = make(600).await?;
    let noise = ground.chance.bytes(200);
    let malformed = code(&good, Some(noise)).await?;
    ensure!(malformed.contains("BL-0315"), "a request that is none: {malformed}");
    let wrong = JoinToken { secret: "x".repeat(good.secret.len()), ..good.clone() };
    let wrong = code(&wrong, None).await?;
    ensure!(wrong.contains("BL-0311"), "a wrong secret: {wrong}");
    let unknown = JoinToken { id: "nobody".into(), ..good.clone() };
    let unknown = code(&unknown, None).await?;
    ensure!(unknown.contains("BL-0311"), "an unknown token: {unknown}");
    let short = make(1).await?;
    // A token that never expired would be used up by the first try: wait by the clock.
    let expires = short.expires;
    until("a join token expires", Duration::from_secs(60), || async {
        ensure!(now().0 > expires.0 + 100, "not yet");
        Ok(())
    })
    .await?;
    let expired = code(&short, None).await?;
    ensure!(expired.contains("BL-0312"), "an expired token: {expired}");
    Ok(())
}
