//! How the agent is doing, in numbers and in words.

use axum::Json;
use axum::extract::State;
use bowline_client::api::{
    Counts, Doctor, Finding, Level, LinkStatus, NodeRole, ShelfState, Status, StoreStatus, Time,
};
use bowline_resources::{Health, Sync, rfc3339};
use bowline_types::NodeId;
use bowline_wire::Transport;

use super::{Api, Code, Fault, Shared};
use crate::clock::wall;
use crate::identity::VERSION;
use crate::world;

const DAY: u64 = 86_400_000;

pub(super) async fn status(State(api): Shared) -> Result<Json<Status>, Fault> {
    let report = api.handle.report().await?;
    let store = StoreStatus {
        engine: "sqlite".into(),
        format: bowline_store::FORMAT,
        bytes: bytes_in(&api.store),
        shelves: report.shelves.len() as u64,
        records: report.shelves.iter().map(|s| s.live as u64).sum(),
    };
    Ok(Json(Status {
        role: NodeRole::Agent,
        node: api.shelves.me.to_string(),
        version: VERSION.into(),
        protocol: bowline_wire::PROTOCOL,
        started: Time(api.started),
        now: Time(wall()),
        ready: api.is_ready(),
        store: Some(store),
        links: vec![link(&api)],
        agents: 0,
        connected: u64::from(api.world.line.is_up()),
        objects: counts(&api.world.state()),
    }))
}

fn bytes_in(folder: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|e| e.metadata().ok())
        .filter(std::fs::Metadata::is_file)
        .map(|m| m.len())
        .sum()
}

fn link(api: &Api) -> LinkStatus {
    let line = api.world.line.standing();
    let up = line.up.as_ref();
    LinkStatus {
        peer: NodeId::hub().to_string(),
        address: up.map(|u| u.address.clone()).or_else(|| api.papers.addresses().first().cloned()),
        connected: up.is_some(),
        since: line.since.map(Time),
        last_contact: line.last_contact.map(Time),
        transport: up.map(|u| match u.transport {
            Transport::Http2 => "http2".into(),
            Transport::WebSocket => "websocket".into(),
        }),
        error: line.error.clone().filter(|_| line.up.is_none()),
        last_error: line.error,
    }
}

/// Objects by how they are doing.
fn counts(state: &world::State) -> Counts {
    let mut counts = Counts::default();
    for (key, seen) in &state.observed {
        let observed = &seen.observed;
        let wanted = state.wanted(key);
        counts.held += u64::from(wanted.is_none() && state.live.contains_key(key));
        if wanted.is_none() {
            continue;
        }
        counts.total += 1;
        counts.synced += u64::from(observed.sync == Sync::Synced && !observed.gone);
        counts.healthy += u64::from(observed.health == Health::Healthy);
        counts.degraded += u64::from(observed.health == Health::Degraded);
    }
    counts
}

pub(super) async fn doctor(State(api): Shared) -> Result<Json<Doctor>, Fault> {
    let mut findings = vec![mode(&api), about_link(&api), certificate(&api)];
    findings.extend(room(&api));
    findings.extend(files(&api));
    findings.extend(untold(&api));
    for shelf in api.shelf_views().await? {
        match shelf.state {
            ShelfState::Stopped => findings.push(finding(
                Level::Error,
                "shelf",
                format!("{} has stopped: {}", shelf.id, shelf.question.unwrap_or_default()),
                Some("bowline shelf adopt or bowline shelf discard, at this agent"),
                Some("BL-1150"),
            )),
            ShelfState::Adopting | ShelfState::Filling => findings.push(finding(
                Level::Warning,
                "shelf",
                format!("{} is not complete yet", shelf.id),
                None,
                None,
            )),
            ShelfState::Ready => {}
        }
    }
    findings.push(objects(&counts(&api.world.state())));
    Ok(Json(Doctor { findings }))
}

fn finding(
    level: Level,
    about: &str,
    what: String,
    hint: Option<&str>,
    code: Option<&str>,
) -> Finding {
    let (hint, code) = (hint.map(str::to_owned), code.map(str::to_owned));
    Finding { level, about: about.into(), what, hint, code }
}

fn room(api: &Api) -> Option<Finding> {
    let path = api.handle.room().lacking()?;
    let what = format!("no space is left for {}: writes wait", path.display());
    let hint = "free space on that device; what waits is then written by itself";
    Some(finding(Level::Error, "store", what, Some(hint), Some(Code::DiskFull.as_str())))
}

fn mode(api: &Api) -> Finding {
    let state = api.world.state();
    let labels = state.roster.iter().flat_map(|r| &r.labels);
    let labels: Vec<_> = labels.map(|(k, v)| format!("{k}={v}")).collect();
    let (level, what) = match &state.roster {
        None => (Level::Warning, "the roster was never seen: acting as managed".to_owned()),
        Some(r) => match r.changing {
            None => (Level::Ok, format!("mode {}", r.mode)),
            Some(to) => (Level::Warning, format!("mode {}, changing to {to}", r.mode)),
        },
    };
    let marks = if labels.is_empty() { String::new() } else { format!(" ({})", labels.join(", ")) };
    finding(level, "mode", what + &marks, None, None)
}

fn about_link(api: &Api) -> Finding {
    let line = api.world.line.standing();
    if let Some(up) = &line.up {
        let what = format!("connected to {} ({}, {:?})", up.address, up.version, up.transport);
        return finding(Level::Ok, "link", what, None, None);
    }
    if api.papers.addresses().is_empty() {
        let hint = "give an address with --hub";
        return finding(Level::Warning, "link", "no hub is known".into(), Some(hint), None);
    }
    let since = line.last_contact.map_or("never".into(), rfc3339);
    let why = line.error.unwrap_or_else(|| "not tried yet".into());
    let what = format!("no line to the hub (last contact: {since}): {why}");
    let hint = Some(line.advice).filter(|advice| !advice.is_empty());
    finding(Level::Error, "link", what, hint, Some("BL-1140"))
}

fn certificate(api: &Api) -> Finding {
    let Some(validity) = api.papers.validity() else {
        return finding(Level::Ok, "certificate", "none is shown".into(), None, None);
    };
    let now = wall();
    let until = rfc3339(validity.not_after);
    let left = validity.not_after.0.saturating_sub(now.0);
    let rejoin = Some("join again with a new token: bowline join-token");
    if !validity.holds(now) {
        let what =
            format!("the certificate holds only from {} to {until}", rfc3339(validity.not_before));
        return finding(Level::Error, "certificate", what, rejoin, Some("BL-1004"));
    }
    if validity.due(now) {
        let what = format!("the certificate is due for renewal ({} days left)", left / DAY);
        return finding(Level::Warning, "certificate", what, rejoin, None);
    }
    finding(Level::Ok, "certificate", format!("holds until {until}"), None, None)
}

fn files(api: &Api) -> Vec<Finding> {
    let exposed = api.papers.exposed().into_iter().map(|path| {
        let what = format!("{} can be read by others", path.display());
        finding(Level::Error, "certificate", what, Some("chmod 600"), None)
    });
    exposed.collect()
}

/// What the cluster does not tell of: nothing of it is written or reported meanwhile.
fn untold(api: &Api) -> Vec<Finding> {
    let untold = api.world.untold().into_iter().map(|(kind, why)| {
        let hint = "it is tried again by itself; the rights of an agent are in deploy/";
        finding(Level::Error, "cluster", format!("{kind} is not told: {why}"), Some(hint), None)
    });
    untold.collect()
}

fn objects(counts: &Counts) -> Finding {
    let what = format!(
        "{} objects, {} synced, {} healthy, {} degraded, {} held",
        counts.total, counts.synced, counts.healthy, counts.degraded, counts.held
    );
    if counts.held > 0 {
        let hint =
            "their owner's shelf lacks them: put them back there, or `bowline shelf approve`";
        return finding(Level::Error, "objects", what, Some(hint), None);
    }
    let level = if counts.degraded > 0 { Level::Warning } else { Level::Ok };
    finding(level, "objects", what, None, None)
}
