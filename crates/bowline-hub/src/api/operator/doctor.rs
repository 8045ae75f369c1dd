//! What is right and what is wrong, in words.

mod objects;

use std::sync::Arc;

use axum::extract::State as Shared;
use axum::response::Response;
use axum::routing::get;
use bowline_client::api::{Doctor, Finding, Level, Role};
use bowline_resources::rfc3339;
use bowline_sync::Status;
use bowline_types::Wall;
use http::StatusCode;
use serde_json::json;

use super::super::caller::Caller;
use super::super::openapi::Doc;
use super::super::{Routes, json};
use crate::issuers::{self, some};
use crate::problem::{Code, Fault};
use crate::state::State;
use crate::{clock, metrics};

const DAY: u64 = 86_400_000;
/// Records behind which an agent is called late.
const LATE: u64 = 1000;
/// Findings of one kind that are listed.
const NAMED: usize = 5;

pub(super) fn routes(routes: Routes) -> Routes {
    let finding = json!({
        "level": "warning", "about": "link", "what": "1 of 3 agents is away: gamma",
        "hint": "look at the agent's log",
    });
    let doc = Doc::get("/doctor", "What is wrong, in words")
        .gives("Doctor", &json!({"findings": [finding]}));
    routes.on(doc, get(read))
}

async fn read(caller: Caller, Shared(state): Shared<Arc<State>>) -> Result<Response, Fault> {
    caller.fleet(Role::Viewer, "doctor.get", "")?;
    let mut findings = agents(&state);
    findings.push(lag(&state).await);
    findings.extend(shelves(&state).await?);
    findings.extend(room(&state));
    findings.push(certificates(&state));
    findings.extend(rotation(&state));
    findings.extend(files(&state));
    findings.extend(objects::found(&state));
    Ok(json(StatusCode::OK, &Doctor { findings }))
}

fn finding(level: Level, about: &str, what: String) -> Finding {
    Finding { level, about: about.into(), what, hint: None, code: None }
}

fn agents(state: &State) -> Vec<Finding> {
    let (mut away, mut waiting, mut new, mut revoked) = (vec![], vec![], vec![], vec![]);
    let all = state.views.roster.after(None);
    for listed in &all {
        let entry = &listed.entry;
        let name = || entry.name.to_string();
        let up = state.views.links.get(&entry.name).is_some_and(|l| l.handle.is_some());
        // An agent of argocd-agent holds no certificate of ours: whether it ever came tells.
        let came = entry.certificate.is_some() || state.contacts.get(&entry.name).is_some();
        match (entry.revoked.is_some(), up) {
            (true, _) => revoked.push(name()),
            (false, true) => {}
            (false, false) if came => away.push(name()),
            (false, false) => new.push(name()),
        }
        if let Some(mode) = entry.changing {
            let why = listed.waiting.as_deref().unwrap_or("it has just begun");
            waiting.push(format!("{} becomes {mode}: {why}", entry.name));
        }
    }
    let mut found = vec![link(&away, all.len() - new.len() - revoked.len())];
    if !new.is_empty() {
        let hint = format!("`bowline join-token {}`, then start it with that token", new[0]);
        let what = format!("in the roster, and never joined: {}", some(&new));
        found.push(Finding { hint: Some(hint), ..finding(Level::Warning, "link", what) });
    }
    if !revoked.is_empty() {
        let hint = "`bowline join-token` lets one in again; `bowline agents remove` forgets it";
        let what = format!("revoked, and kept out: {}", some(&revoked));
        found.push(Finding { hint: Some(hint.into()), ..finding(Level::Ok, "link", what) });
    }
    let waiting = waiting.into_iter().take(NAMED).map(|w| finding(Level::Warning, "mode", w));
    found.extend(waiting);
    found
}

/// Whether those that can be connected are.
fn link(away: &[String], all: usize) -> Finding {
    if away.is_empty() {
        let what = match all {
            0 => "no agents that could be connected".to_owned(),
            1 => "the one agent is connected".to_owned(),
            all => format!("all {all} agents are connected"),
        };
        return finding(Level::Ok, "link", what);
    }
    let what = format!("{} of {all} agents are away: {}", away.len(), some(away));
    let hint = Some("look at the agent's log, and at its way to the hub".into());
    Finding { hint, ..finding(Level::Warning, "link", what) }
}

fn room(state: &State) -> Option<Finding> {
    let path = state.handle.room().lacking()?;
    let what = format!("no space is left for {}: writes wait", path.display());
    let hint = Some("free space on that device; what waits is then written by itself".into());
    let code = Some(Code::DiskFull.as_str().into());
    Some(Finding { hint, code, ..finding(Level::Error, "store", what) })
}

async fn lag(state: &State) -> Finding {
    let lags = metrics::lags(state).await;
    let late: Vec<_> = lags.iter().filter(|(_, lag)| *lag > LATE).collect();
    if late.is_empty() {
        return finding(Level::Ok, "lag", "no connected agent lags".into());
    }
    let names: Vec<_> = late.iter().map(|(name, lag)| format!("{name} by {lag}")).collect();
    finding(Level::Warning, "lag", format!("behind by more than {LATE} records: {}", some(&names)))
}

async fn shelves(state: &State) -> Result<Vec<Finding>, Fault> {
    let report = state.handle.report().await?;
    let stopped = report
        .shelves
        .iter()
        .filter(|s| matches!(s.status, Some(Status::Stopped | Status::Twin)))
        .map(|s| Finding {
            hint: Some("`bowline shelf adopt` or `bowline shelf discard`".into()),
            code: Some(Code::Forgot.as_str().into()),
            ..finding(Level::Error, "shelf", format!("{} takes no writes", s.shelf))
        });
    let mut found: Vec<_> = stopped.collect();
    if found.is_empty() {
        let what = format!("{} shelves and copies, none stopped", report.shelves.len());
        found.push(finding(Level::Ok, "shelf", what));
    }
    Ok(found)
}

fn certificates(state: &State) -> Finding {
    let Some((server, ca)) = state.pki.ends() else {
        return finding(Level::Error, "certificate", "the hub's certificate cannot be read".into());
    };
    let now = clock::now();
    let left = |end: Wall| end.0.saturating_sub(now.0) / DAY;
    let mut ending: Vec<String> = vec![];
    for listed in state.views.roster.after(None) {
        if let Some(cert) = &listed.entry.certificate
            && left(cert.not_after) < 8
        {
            ending.push(listed.entry.name.to_string());
        }
    }
    if left(server) < 20 {
        let what = format!("the hub's certificate ends at {}", rfc3339(server));
        return finding(Level::Error, "certificate", what);
    }
    if left(ca) < 180 {
        let what = format!("the CA ends at {}", rfc3339(ca));
        let hint = Some("`bowline pki rotate`".into());
        return Finding { hint, ..finding(Level::Warning, "certificate", what) };
    }
    if ending.is_empty() {
        let what = format!("the hub's certificate holds until {}", rfc3339(server));
        return finding(Level::Ok, "certificate", what);
    }
    let what = format!("certificates end within days and were not renewed: {}", some(&ending));
    finding(Level::Warning, "certificate", what)
}

/// Agents that a rotation of the CA leaves behind.
fn rotation(state: &State) -> Option<Finding> {
    let warn = |what: String, hint: &str| Finding {
        hint: Some(hint.into()),
        ..finding(Level::Warning, "certificate", what)
    };
    let left = issuers::behind(state);
    match state.pki.phase() {
        _ if left.is_empty() => None,
        "steady" => Some(warn(
            format!("certificates by a CA that is not trusted any more: {}", some(&left)),
            "they must join anew: `bowline join-token`",
        )),
        _ => Some(warn(
            format!("no certificate by the new CA yet: {}", some(&left)),
            "they renew when they are connected; the old CA stays trusted until then",
        )),
    }
}

fn files(state: &State) -> Vec<Finding> {
    let exposed = state.pki.exposed();
    let found = exposed.iter().map(|path| Finding {
        hint: Some("chmod 600, and rotate what may have been read".into()),
        ..finding(Level::Error, "store", format!("others can read {}", path.display()))
    });
    found.collect()
}
