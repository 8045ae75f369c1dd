//! What each kind of thing looks like in a table.

use bowline_client::api::{
    AgentView, AuditEntry, Encoding, Event, JoinTokenView, KvEntry, ObjectView, Outcome,
    ShelfState, ShelfView, Time, TokenView, Verb, What,
};
use bowline_resources::{Health, Speaks, Sync, parse_rfc3339};

use super::{Cell, Table, Tint, age};

/// Objects.
pub fn objects(items: &[ObjectView], wide: bool, now: Time) -> Table {
    let mut headers = vec!["AGENT", "NAMESPACE", "KIND", "NAME", "SYNC", "HEALTH", "AGE"];
    if wide {
        headers.extend(["OWNER", "REV", "OPERATION", "MESSAGE"]);
    }
    let mut table = Table::new(headers);
    items.iter().for_each(|item| table.push(object_row(item, wide, now)));
    table
}

/// One object.
pub fn object_row(view: &ObjectView, wide: bool, now: Time) -> Vec<Cell> {
    let created = view.object.metadata.creation_timestamp.as_deref().and_then(parse_rfc3339);
    let health = match view.deleting {
        true => Cell::tinted("Deleting", Tint::Soft),
        false => health_cell(view.health()),
    };
    let mut row = vec![
        view.agent.as_str().into(),
        view.key.namespace.as_deref().unwrap_or("").into(),
        view.key.kind.as_str().into(),
        view.key.name.as_str().into(),
        sync_cell(view.sync()),
        health,
        created.map_or(String::new(), |at| age(Time(at), now)).into(),
    ];
    if wide {
        let owner = match view.owner {
            bowline_resources::Owner::Hub => "hub",
            bowline_resources::Owner::Agent => "agent",
        };
        let report = view.report.as_ref();
        let operation = report.and_then(|r| r.operation.as_ref());
        let operation = operation.map_or(String::new(), |o| format!("{} {}", o.operation, o.phase));
        let message = report.map_or("", |r| r.message.as_str());
        row.extend([owner.into(), view.rev.to_string().into(), operation.into(), message.into()]);
    }
    row
}

fn sync_cell(sync: Sync) -> Cell {
    let tint = match sync {
        Sync::Synced => Tint::Good,
        Sync::OutOfSync => Tint::Bad,
        Sync::Unknown => Tint::Soft,
    };
    Cell::tinted(sync.as_str(), tint)
}

fn health_cell(health: Health) -> Cell {
    let tint = match health {
        Health::Healthy => Tint::Good,
        Health::Degraded | Health::Missing => Tint::Bad,
        Health::Progressing | Health::Suspended | Health::Unknown => Tint::Soft,
    };
    Cell::tinted(health.as_str(), tint)
}

/// Agents.
pub fn agents(items: &[AgentView], wide: bool, now: Time) -> Table {
    let mut headers =
        vec!["NAME", "MODE", "LINK", "LAG", "OBJECTS", "LAST CONTACT", "VERSION", "AGE"];
    if wide {
        headers.extend(["TRANSPORT", "CERTIFICATE", "LABELS", "LAST ERROR"]);
    }
    let mut table = Table::new(headers);
    items.iter().for_each(|item| table.push(agent_row(item, wide, now)));
    table
}

/// One agent.
pub fn agent_row(view: &AgentView, wide: bool, now: Time) -> Vec<Cell> {
    let mode = match view.changing {
        Some(to) => format!("{} -> {to}", view.mode),
        None => view.mode.to_string(),
    };
    let link = match (view.revoked.is_some(), view.connected, &view.certificate) {
        (true, ..) => Cell::tinted("revoked", Tint::Bad),
        (_, true, _) => Cell::tinted("up", Tint::Good),
        // An agent of argocd-agent holds no certificate of ours: that it was heard of tells.
        (_, false, None) if view.speaks.is_native() || view.last_contact.is_none() => {
            Cell::tinted("not joined", Tint::Soft)
        }
        (_, false, _) => Cell::tinted("down", Tint::Bad),
    };
    let version = view.version.as_deref().unwrap_or("");
    let version = match view.speaks {
        Speaks::Native => version.to_owned(),
        Speaks::ArgocdAgent => format!("argocd-agent {version}"),
    };
    let lag = view.lag.map_or(String::new(), |lag| format!("{}/{}", lag.down, lag.up));
    let mut row = vec![
        view.name.as_str().into(),
        mode.into(),
        link,
        lag.into(),
        format!("{}/{}", view.objects.healthy, view.objects.total).into(),
        view.last_contact.map_or(String::new(), |at| age(at, now)).into(),
        version.trim_end().into(),
        age(view.created, now).into(),
    ];
    if wide {
        let ends = view.certificate.as_ref().map_or(String::new(), |c| c.not_after.to_string());
        let labels: Vec<_> = view.labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let transport = view.transport.as_deref().unwrap_or("");
        let error = view.last_error.as_deref().unwrap_or("");
        row.extend([transport.into(), ends.into(), labels.join(",").into(), error.into()]);
    }
    row
}

/// Keys and values.
pub fn kv(items: &[KvEntry]) -> Table {
    let mut table = Table::new(vec!["KEY", "VALUE", "REV"]);
    items.iter().for_each(|item| table.push(kv_row(item)));
    table
}

/// One key and its value; a value that is not text is marked.
pub fn kv_row(item: &KvEntry) -> Vec<Cell> {
    let short: String = item.value.chars().take(60).collect();
    let more = if short.len() < item.value.len() { "..." } else { "" };
    let mark = match item.encoding {
        Encoding::Utf8 => "",
        Encoding::Base64 => " (base64)",
    };
    let value = format!("{short}{more}{mark}");
    vec![item.key.as_str().into(), value.into(), item.rev.to_string().into()]
}

/// The audit.
pub fn audit(items: &[AuditEntry], wide: bool) -> Table {
    let mut headers = vec!["TIME", "WHO", "VERB", "WHAT", "OUTCOME"];
    if wide {
        headers.extend(["FROM", "DETAIL"]);
    }
    let mut table = Table::new(headers);
    items.iter().for_each(|item| table.push(audit_row(item, wide)));
    table
}

/// One entry of the audit.
pub fn audit_row(item: &AuditEntry, wide: bool) -> Vec<Cell> {
    let tint = if item.outcome == Outcome::Done { Tint::Good } else { Tint::Bad };
    let what = match item.agent.as_ref().filter(|agent| **agent != item.what) {
        Some(agent) => format!("{agent}: {}", item.what),
        None => item.what.clone(),
    };
    let mut row = vec![
        item.time.to_string().into(),
        item.who.as_str().into(),
        item.verb.as_str().into(),
        what.into(),
        Cell::tinted(item.outcome.to_string(), tint),
    ];
    if wide {
        row.push(item.from.as_deref().unwrap_or("").into());
        row.push(item.detail.as_str().into());
    }
    row
}

/// Tokens.
pub fn tokens(items: &[TokenView], now: Time) -> Table {
    let mut table =
        Table::new(vec!["ID", "NAME", "ROLE", "AGENTS", "NAMESPACES", "EXPIRES", "AGE"]);
    let all = |list: &[String]| if list.is_empty() { "all".to_owned() } else { list.join(",") };
    for item in items {
        table.push(vec![
            item.id.as_str().into(),
            item.name.as_str().into(),
            item.role.to_string().into(),
            all(&item.agents).into(),
            all(&item.namespaces).into(),
            item.expires.map_or("never".to_owned(), |at| at.to_string()).into(),
            age(item.created, now).into(),
        ]);
    }
    table
}

/// Join tokens.
pub fn join_tokens(items: &[JoinTokenView], now: Time) -> Table {
    let mut table = Table::new(vec!["ID", "AGENT", "EXPIRES", "USED", "AGE"]);
    for item in items {
        table.push(vec![
            item.id.as_str().into(),
            item.agent.as_str().into(),
            item.expires.to_string().into(),
            item.used.map_or(String::new(), |at| at.to_string()).into(),
            age(item.created, now).into(),
        ]);
    }
    table
}

/// Shelves.
pub fn shelves(items: &[ShelfView], wide: bool) -> Table {
    let mut headers = vec!["SHELF", "HERE", "STATE", "REV", "RECORDS", "BEHIND"];
    if wide {
        headers.extend(["TERM", "FLOOR", "SEALED", "QUESTION"]);
    }
    let mut table = Table::new(headers);
    for item in items {
        let tint = match item.state {
            ShelfState::Ready => Tint::Good,
            ShelfState::Filling | ShelfState::Adopting => Tint::Soft,
            ShelfState::Stopped => Tint::Bad,
        };
        let behind = item.seen.map_or(0, |seen| seen.saturating_sub(item.rev));
        let mut row = vec![
            item.id.as_str().into(),
            if item.own { "own" } else { "copy" }.into(),
            Cell::tinted(item.state.to_string(), tint),
            item.rev.to_string().into(),
            item.records.to_string().into(),
            behind.to_string().into(),
        ];
        if wide {
            row.push(item.term.as_str().into());
            row.push(item.floor.to_string().into());
            row.push(if item.sealed { "yes" } else { "no" }.into());
            row.push(item.question.as_deref().unwrap_or("").into());
        }
        table.push(row);
    }
    table
}

/// An event on one line.
pub fn event_line(event: &Event) -> String {
    let verb = |verb: &Verb| if *verb == Verb::Gone { "gone" } else { "put" };
    let text = match &event.what {
        What::Object { verb: v, agent, key, object } => {
            let state =
                object.as_ref().map_or(String::new(), |o| format!(" {} {}", o.sync(), o.health()));
            format!("object {} {agent}: {key}{state}", verb(v))
        }
        What::Agent { verb: v, name, agent } => {
            let link = agent.as_ref().map_or("", |a| if a.connected { " up" } else { " down" });
            format!("agent {} {name}{link}", verb(v))
        }
        What::Kv { verb: v, key, entry } => {
            let rev = entry.as_ref().map_or(String::new(), |e| format!(" rev {}", e.rev));
            format!("kv {} {key}{rev}", verb(v))
        }
        What::Audit { entry } => {
            format!("audit {} {} {} {}", entry.who, entry.verb, entry.what, entry.outcome)
        }
        What::Reset => "reset: events were missed; the present state follows".to_owned(),
        What::Ready => "ready: from here on it is news".to_owned(),
    };
    format!("{}  {text}\n", event.time)
}

#[cfg(test)]
mod tests;
