//! What changes, row by row under the table that was there first.

use std::collections::BTreeMap;

use bowline_client::api::{
    AgentView, AuditEntry, AuditQuery, EventQuery, KvEntry, KvQuery, ObjectView, Outcome as Ended,
    Time, Verb, What,
};
use bowline_client::{Client, Error, Watch, WatchItem};
use bowline_resources::{LabelSelector, ObjectKey};
use bowline_types::Wall;
use serde_json::{Value, json};

use super::Get;
use super::follow::{News, Watched, follow};
use crate::failure::{Failure, Outcome};
use crate::print::{self, Cell, Table};

impl Get {
    /// Everything that the token may read.
    pub(super) async fn events(&self, client: &Client, at_agent: bool) -> Outcome {
        let kinds = ["object,agent,kv,audit", "object,agent,kv", "object,agent"];
        // An agent has no audit.
        let kinds = if at_agent { &kinds[1..] } else { &kinds };
        let mut opened = client.watch_now(self.event_query(kinds[0])).await;
        for (fewer, left_out) in kinds[1..].iter().zip(["the audit", "key/value and the audit"]) {
            let denied =
                |e: &Error| e.problem().is_some_and(|p| p.status == 403 && p.code != "BL-0101");
            if !opened.as_ref().is_err_and(denied) {
                break;
            }
            print::note(&format!("{left_out} is left out: this token may not read it\n"));
            opened = client.watch_now(self.event_query(fewer)).await;
        }
        let (mut watch, format) = (opened?, self.format());
        loop {
            match watch.next().await? {
                WatchItem::Lost(error) => print::note(&format!("{error}; trying again\n")),
                WatchItem::Event(event) if format.is_table() => {
                    print::out(&print::event_line(&event))?;
                }
                WatchItem::Event(event) => print::streamed(&event, format)?,
            }
        }
    }

    pub(super) async fn watch_objects(&self, client: &Client, kind: Option<&str>) -> Outcome {
        let query = EventQuery { initial: true, since: None, ..self.event_query("object") };
        let objects = Objects { wide: self.format().is_wide(), kind: kind.map(str::to_owned) };
        self.begin_with_the_present(client, query, objects).await
    }

    pub(super) async fn watch_agents(&self, client: &Client) -> Outcome {
        let labels = self.labels.as_deref().unwrap_or("").parse::<LabelSelector>();
        let labels = labels.map_err(|e| Failure::usage(e.to_string()))?;
        let kinds = Some("agent".to_owned());
        let query = EventQuery { initial: true, kinds, ..EventQuery::default() };
        let agents = Agents { wide: self.format().is_wide(), name: self.name.clone(), labels };
        self.begin_with_the_present(client, query, agents).await
    }

    pub(super) async fn watch_audit(&self, client: &Client) -> Outcome {
        let page = client.audit(&self.audit_query()).await?;
        let (kinds, mut first) = (Some("audit".to_owned()), page.items);
        // What is new comes last, so what was there comes in the same order.
        first.reverse();
        let query = EventQuery { kinds, since: page.cursor, ..EventQuery::default() };
        let audit = Audit { wide: self.format().is_wide(), agent: self.agent.clone() };
        let watch = client.watch_now(query).await?;
        follow(client, watch, audit, first, self.format()).await
    }

    pub(super) async fn watch_kv(&self, client: &Client) -> Outcome {
        let (kinds, prefix) = (Some("kv".to_owned()), self.name.clone());
        let query = KvQuery { prefix: prefix.clone(), ..KvQuery::default() };
        let (first, since) = super::super::kv::all_since(client, query).await?;
        let query = EventQuery { kinds, prefix, since, ..EventQuery::default() };
        let watch = client.watch_now(query).await?;
        follow(client, watch, Keys, first, self.format()).await
    }

    /// Follows what the stream itself begins with.
    async fn begin_with_the_present<W: Watched>(
        &self,
        client: &Client,
        query: EventQuery,
        watched: W,
    ) -> Outcome {
        let mut watch = client.watch_now(query).await?;
        let first = initial(&mut watch, &watched).await?;
        follow(client, watch, watched, first, self.format()).await
    }
}

/// What is there when the watch begins.
async fn initial<W: Watched>(watch: &mut Watch, watched: &W) -> Outcome<Vec<W::View>> {
    let mut items = vec![];
    loop {
        match watch.next().await? {
            WatchItem::Lost(error) => {
                print::note(&format!("{error}; trying again\n"));
                items.clear();
            }
            WatchItem::Event(event) => match event.what {
                What::Ready => return Ok(items),
                What::Reset => items.clear(),
                what => match watched.news(what) {
                    Some(News::There(view)) => items.push(*view),
                    Some(News::Gone(_)) | None => {}
                },
            },
        }
    }
}

fn cells(texts: &[&str]) -> Vec<Cell> {
    texts.iter().map(|text| Cell::from(*text)).collect()
}

/// Objects, of one kind or of all.
struct Objects {
    wide: bool,
    kind: Option<String>,
}

impl Watched for Objects {
    type Id = (String, ObjectKey);
    type View = ObjectView;
    type Mark = ();

    fn news(&self, what: What) -> Option<News<Self>> {
        let of_kind =
            |key: &ObjectKey| self.kind.as_ref().is_none_or(|k| key.kind.eq_ignore_ascii_case(k));
        match what {
            What::Object { object: Some(view), .. } if of_kind(&view.key) => {
                Some(News::There(view))
            }
            What::Object { verb: Verb::Gone, agent, key, .. } => Some(News::Gone((agent, key))),
            _ => None,
        }
    }

    fn id(&self, view: &ObjectView) -> Self::Id {
        (view.agent.clone(), view.key.clone())
    }

    fn table(&self, views: &[ObjectView]) -> Table {
        print::objects(views, self.wide, print::now())
    }

    fn row(&self, view: &ObjectView) -> Vec<Cell> {
        print::object_row(view, self.wide, print::now())
    }

    fn gone(&self, (agent, key): &Self::Id) -> (Vec<Cell>, Value) {
        let namespace = key.namespace.as_deref().unwrap_or("");
        let row = cells(&[agent, namespace, &key.kind, &key.name, "", "Gone", ""]);
        (row, json!({"agent": agent, "key": key}))
    }
}

/// Agents, some or all.
struct Agents {
    wide: bool,
    name: Option<String>,
    labels: LabelSelector,
}

impl Watched for Agents {
    type Id = String;
    type View = AgentView;
    type Mark = ();

    fn news(&self, what: What) -> Option<News<Self>> {
        let What::Agent { agent, name, .. } = what else { return None };
        let meant = |view: &AgentView| {
            self.name.as_ref().is_none_or(|n| *n == view.name) && self.labels.matches(&view.labels)
        };
        // One that no longer matches is gone, as far as this reader is concerned.
        Some(agent.filter(|view| meant(view)).map_or(News::Gone(name), News::There))
    }

    fn id(&self, view: &AgentView) -> String {
        view.name.clone()
    }

    fn table(&self, views: &[AgentView]) -> Table {
        print::agents(views, self.wide, print::now())
    }

    fn row(&self, view: &AgentView) -> Vec<Cell> {
        print::agent_row(view, self.wide, print::now())
    }

    fn gone(&self, name: &String) -> (Vec<Cell>, Value) {
        (cells(&[name, "", "gone"]), json!({"name": name}))
    }
}

/// Keys and their values.
pub(super) struct Keys;

impl Watched for Keys {
    type Id = String;
    type View = KvEntry;
    type Mark = u64;

    fn news(&self, what: What) -> Option<News<Self>> {
        match what {
            What::Kv { entry: Some(entry), .. } => Some(News::There(Box::new(entry))),
            What::Kv { verb: Verb::Gone, key, .. } => Some(News::Gone(key)),
            _ => None,
        }
    }

    fn id(&self, view: &KvEntry) -> String {
        view.key.clone()
    }

    fn mark(&self, view: &KvEntry) -> Option<u64> {
        Some(view.rev)
    }

    fn table(&self, views: &[KvEntry]) -> Table {
        print::kv(views)
    }

    fn row(&self, view: &KvEntry) -> Vec<Cell> {
        print::kv_row(view)
    }

    fn gone(&self, key: &String) -> (Vec<Cell>, Value) {
        (cells(&[key, "(gone)", ""]), json!({"key": key}))
    }
}

/// The audit, of one agent or all.
struct Audit {
    wide: bool,
    agent: Option<String>,
}

impl Audit {
    /// How much before the last that was shown an entry may have been begun that is written later.
    const ABREAST: u64 = 60_000;
}

impl Watched for Audit {
    type Id = String;
    type View = AuditEntry;
    type Mark = Ended;

    /// What has come of a deed is said later, under the same id.
    fn mark(&self, entry: &AuditEntry) -> Option<Ended> {
        Some(entry.outcome)
    }

    fn news(&self, what: What) -> Option<News<Self>> {
        let What::Audit { entry } = what else { return None };
        let meant = self.agent.is_none() || entry.agent == self.agent;
        meant.then_some(News::There(entry))
    }

    fn id(&self, entry: &AuditEntry) -> String {
        entry.id.clone()
    }

    fn table(&self, entries: &[AuditEntry]) -> Table {
        print::audit(entries, self.wide)
    }

    fn row(&self, entry: &AuditEntry) -> Vec<Cell> {
        print::audit_row(entry, self.wide)
    }

    fn gone(&self, id: &String) -> (Vec<Cell>, Value) {
        (cells(&[id]), json!({"id": id}))
    }

    fn is_log(&self) -> bool {
        true
    }

    async fn missed(
        &self,
        client: &Client,
        shown: &BTreeMap<String, Option<Ended>>,
        last: Option<&AuditEntry>,
    ) -> Result<Vec<AuditEntry>, Error> {
        let after = last.map(|e| Time(Wall(e.time.millis().saturating_sub(Self::ABREAST))));
        let mut query = AuditQuery { agent: self.agent.clone(), after, ..AuditQuery::default() };
        let (mut entries, first) = (vec![], shown.keys().next());
        loop {
            let page = client.audit(&query).await?;
            // What is before the first was not asked for.
            entries.extend(page.items.into_iter().filter(|e| first.is_none_or(|f| e.id >= *f)));
            query.from = page.next;
            if query.from.is_none() {
                entries.reverse();
                return Ok(entries);
            }
        }
    }
}
