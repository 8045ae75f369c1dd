//! Requests to the HTTP APIs that are wrong in themselves.

use std::time::Duration;

use anyhow::{Result, ensure};
use bowline_client::api::{Page, Role, TokenCreate};
use bowline_client::{Client, Config};

use super::Ground;
use super::raw::{Answer, plain, tls};
use crate::fleet::{Fleet, MANAGED, Side};
use crate::stage::until;

/// A request by its parts.
fn request(token: &str, method: &str, path: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "{method} /api/v1{path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

async fn at_hub(fleet: &Fleet, method: &str, path: &str, body: &[u8]) -> Result<Answer> {
    tls(fleet, fleet.hub.api_port, &request(&fleet.hub.token()?, method, path, body)).await
}

async fn at_agent(fleet: &Fleet, method: &str, path: &str, body: &[u8]) -> Result<Answer> {
    plain(fleet.managed.api_port, &request("none", method, path, body)).await
}

fn is_coded(answer: &Answer, what: &str) -> Result<()> {
    ensure!((400..500).contains(&answer.status), "{what} is answered with {answer:?}");
    ensure!(answer.code().starts_with("BL-"), "{what} is answered without a code: {answer:?}");
    Ok(())
}

/// What no API can make sense of.
fn nonsense(noise: &[u8]) -> Vec<(&'static str, String, Vec<u8>)> {
    let objects = format!("/agents/{MANAGED}/objects");
    let posts: [&[u8]; 5] = [
        noise,
        b"",
        b"[1,2]",
        b"{\"apiVersion\":\"\xff\"}",
        br#"{"apiVersion":"v1","kind":"X","metadata":{}}"#,
    ];
    let posts = posts.into_iter().map(|body| ("POST", objects.clone(), body.to_vec()));
    let others = [
        ("GET", "/objects?limit=many"),
        ("GET", "/objects?continue=%00%ff"),
        ("GET", "/objects?labelSelector=(("),
        ("GET", "/events?kinds=everything"),
        ("GET", "/nowhere"),
        ("PATCH", "/status"),
        ("GET", "/kv/%ff%fe"),
        ("PUT", "/kv/..%2f..%2fetc%2fpasswd%00"),
        ("POST", "/shelves/hub/nothing/adopt"),
        ("DELETE", "/kv/never-there?cas=minus"),
    ];
    posts.chain(others.map(|(method, path)| (method, path.to_owned(), vec![]))).collect()
}

/// Everything that was wrong, not only the first.
fn all(wrong: &[String]) -> Result<()> {
    ensure!(wrong.is_empty(), "{}", wrong.join("; "));
    Ok(())
}

/// Nonsense at the hub.
pub(super) async fn malformed_bodies_and_paths(ground: &mut Ground) -> Result<()> {
    let noise = ground.chance.bytes(500);
    let mut cases = nonsense(&noise);
    for path in ["/agents", "/join-tokens", "/tokens"] {
        cases.push(("POST", path.to_owned(), noise.clone()));
        cases.push(("POST", path.to_owned(), b"{\"colour\":1}".to_vec()));
    }
    let mut wrong = vec![];
    for (method, path, body) in cases {
        let answer = at_hub(&ground.fleet, method, &path, &body).await;
        let good = answer.and_then(|a| is_coded(&a, &format!("{method} {path}")));
        wrong.extend(good.err().map(|e| format!("{method} {path}: {e:#}")));
    }
    all(&wrong)
}

/// Nonsense at an agent.
pub(super) async fn malformed_bodies_and_paths_at_the_agent(ground: &mut Ground) -> Result<()> {
    let noise = ground.chance.bytes(500);
    let mut wrong = vec![];
    for (method, path, body) in nonsense(&noise) {
        let answer = at_agent(&ground.fleet, method, &path, &body).await;
        let good = answer.and_then(|a| is_coded(&a, &format!("{method} {path}")));
        wrong.extend(good.err().map(|e| format!("{method} {path}: {e:#}")));
    }
    all(&wrong)
}

/// Bodies beyond every limit.
pub(super) async fn oversized_bodies(ground: &mut Ground) -> Result<()> {
    for size in [(1 << 20) + 1, (2 << 20) + 1, 20 << 20] {
        let body = vec![b'x'; size];
        // What fits in a request may not fit in a commit.
        let (hub, agent) = if size <= (2 << 20) {
            ((413, "BL-0136"), (413, "BL-1151"))
        } else {
            ((413, "BL-0113"), (413, "BL-1106"))
        };
        for (answer, (status, code)) in [
            (at_hub(&ground.fleet, "PUT", "/kv/large", &body).await?, hub),
            (at_agent(&ground.fleet, "PUT", "/kv/large", &body).await?, agent),
        ] {
            ensure!(answer.status == status && answer.code() == code, "{size}: {answer:?}");
        }
    }
    let there = ground.fleet.at(Side::Hub).kv_get("large").await;
    ensure!(there.is_err_and(|e| e.is_not_found()), "what was refused is there");
    Ok(())
}

/// JSON that is nested a hundred thousand deep.
pub(super) async fn deep_json(ground: &mut Ground) -> Result<()> {
    let deep = "[".repeat(100_000);
    let path = format!("/agents/{MANAGED}/objects");
    let spec = format!("{{\"apiVersion\":\"v1\",\"kind\":\"X\",\"spec\":{deep}");
    for body in [deep.as_bytes(), spec.as_bytes()] {
        is_coded(&at_hub(&ground.fleet, "POST", &path, body).await?, "deep JSON")?;
        is_coded(&at_agent(&ground.fleet, "POST", &path, body).await?, "deep JSON (agent)")?;
    }
    Ok(())
}

fn bearer(fleet: &Fleet, token: &str) -> Result<Client> {
    let mut config = Config::new(format!("https://localhost:{}", fleet.hub.api_port));
    (config.ca, config.token) = (Some(fleet.hub.ca()?), Some(token.to_owned()));
    Ok(Client::new(config)?)
}

async fn code(fleet: &Fleet, token: &str) -> Result<String> {
    let answer = bearer(fleet, token)?.agents(None, &Page::default()).await;
    let problem = answer.err().and_then(|e| e.problem().map(|p| p.code.clone()));
    Ok(problem.unwrap_or_default())
}

/// Tokens that are nonsense, revoked or expired.
pub(super) async fn bad_tokens(ground: &mut Ground) -> Result<()> {
    let (fleet, admin) = (&ground.fleet, ground.fleet.at(Side::Hub));
    let real = fleet.hub.token()?;
    for token in ["", "x", "bowline_admin_", &real[..real.len() - 1], &"y".repeat(5000)] {
        let code = code(fleet, token).await?;
        ensure!(code.starts_with("BL-010"), "{token:?} is answered with {code:?}");
    }
    let new = |ttl_seconds| TokenCreate {
        name: "mallory".into(),
        role: Role::Admin,
        agents: vec![],
        namespaces: vec![],
        ttl_seconds,
    };
    let made = admin.create_token(&new(None)).await?;
    ensure!(code(fleet, &made.token).await?.is_empty(), "a good token is refused");
    admin.revoke_token(&made.view.id).await?;
    ensure!(code(fleet, &made.token).await? == "BL-0102", "a revoked token");
    let made = admin.create_token(&new(Some(1))).await?;
    until("a token expires", Duration::from_secs(60), || async {
        ensure!(code(fleet, &made.token).await? == "BL-0102", "it is still good");
        Ok(())
    })
    .await
}

/// A web page in a browser on the agent's machine.
pub(super) async fn a_foreign_page_at_the_agent(ground: &mut Ground) -> Result<()> {
    for header in ["host: evil.example", "host: localhost\r\norigin: https://evil.example"] {
        let request = format!("GET /api/v1/kv HTTP/1.1\r\n{header}\r\nconnection: close\r\n\r\n");
        let answer = plain(ground.fleet.managed.api_port, request.as_bytes()).await?;
        is_coded(&answer, header)?;
    }
    Ok(())
}
