//! What changes, row by row under the table that was there first.

use std::collections::{BTreeMap, BTreeSet};

use bowline_client::api::{AgentView, EventQuery, KvQuery, ObjectView, Verb, What};
use bowline_client::{Client, Error, Watch, WatchItem};
use bowline_resources::LabelSelector;
use serde::Serialize;
use serde_json::Value;

use super::Get;
use crate::failure::{Failure, Outcome};
use crate::print::{self, Cell, Table};

/// What is shown of an event.
struct Shown {
    row: Vec<Cell>,
    /// For programs; what is gone is told to people only.
    value: Option<Value>,
}

impl Shown {
    fn put(row: Vec<Cell>, value: &impl Serialize) -> Self {
        Self { row, value: serde_json::to_value(value).ok() }
    }

    fn gone(cells: &[&str]) -> Self {
        Self { row: cells.iter().map(|c| Cell::from(*c)).collect(), value: None }
    }
}

impl Get {
    /// Everything that the token may read.
    pub(super) async fn events(&self, client: &Client) -> Outcome {
        let kinds = ["object,agent,kv,audit", "object,agent,kv", "object,agent"];
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
        let wide = self.format().is_wide();
        let kind = kind.map(str::to_owned);
        let of_kind = move |k: &str| kind.as_ref().is_none_or(|kind| k.eq_ignore_ascii_case(kind));
        let query = EventQuery { initial: true, ..self.event_query("object") };
        let mut watch = client.watch_now(query).await?;
        let first = initial(&mut watch, |what| match what {
            What::Object { object: Some(view), .. } if of_kind(&view.key.kind) => Some(*view),
            _ => None,
        });
        let first: Vec<ObjectView> = first.await?;
        let table = print::objects(&first, wide, print::now());
        self.follow(watch, table, &first, |what| match what {
            What::Object { object: Some(view), .. } if of_kind(&view.key.kind) => {
                Some(Shown::put(print::object_row(&view, wide, print::now()), &view))
            }
            What::Object { verb: Verb::Gone, agent, key, .. } if of_kind(&key.kind) => {
                let namespace = key.namespace.as_deref().unwrap_or("");
                Some(Shown::gone(&[&agent, namespace, &key.kind, &key.name, "", "Gone", ""]))
            }
            _ => None,
        })
        .await
    }

    pub(super) async fn watch_agents(&self, client: &Client) -> Outcome {
        let wide = self.format().is_wide();
        let labels = self.labels.as_deref().unwrap_or("").parse::<LabelSelector>();
        let labels = labels.map_err(|e| Failure::usage(e.to_string()))?;
        let name = self.name.clone();
        let meant = move |view: &AgentView| {
            name.as_ref().is_none_or(|n| *n == view.name) && labels.matches(&view.labels)
        };
        let kinds = Some("agent".to_owned());
        let query = EventQuery { initial: true, kinds, ..EventQuery::default() };
        let mut watch = client.watch_now(query).await?;
        let first = initial(&mut watch, |what| match what {
            What::Agent { agent: Some(view), .. } if meant(&view) => Some(*view),
            _ => None,
        });
        let first: Vec<AgentView> = first.await?;
        let mut known: BTreeSet<String> = first.iter().map(|a| a.name.clone()).collect();
        let table = print::agents(&first, wide, print::now());
        self.follow(watch, table, &first, |what| match what {
            What::Agent { agent: Some(view), .. } if meant(&view) => {
                known.insert(view.name.clone());
                Some(Shown::put(print::agent_row(&view, wide, print::now()), &view))
            }
            What::Agent { verb: Verb::Gone, name, .. } if known.remove(&name) => {
                Some(Shown::gone(&[&name, "", "gone"]))
            }
            _ => None,
        })
        .await
    }

    pub(super) async fn watch_audit(&self, client: &Client) -> Outcome {
        let kinds = Some("audit".to_owned());
        let watch = client.watch_now(EventQuery { kinds, ..EventQuery::default() }).await?;
        let mut first = client.audit(&self.audit_query()).await?.items;
        // What is new comes last, so what was there comes in the same order.
        first.reverse();
        let (agent, wide) = (self.agent.clone(), self.format().is_wide());
        let told: BTreeSet<String> = first.iter().map(|e| e.id.clone()).collect();
        let table = print::audit(&first, wide);
        self.follow(watch, table, &first, |what| {
            let What::Audit { entry } = what else { return None };
            let meant = agent.is_none() || entry.agent == agent;
            let new = meant && !told.contains(&entry.id);
            new.then(|| Shown::put(print::audit_row(&entry, wide), &entry))
        })
        .await
    }

    pub(super) async fn watch_kv(&self, client: &Client) -> Outcome {
        let (kinds, prefix) = (Some("kv".to_owned()), self.name.clone());
        let query = EventQuery { kinds, prefix: prefix.clone(), ..EventQuery::default() };
        let watch = client.watch_now(query).await?;
        let query = KvQuery { prefix, ..KvQuery::default() };
        let first = super::super::kv::all(client, query).await?;
        let told: BTreeMap<String, u64> = first.iter().map(|e| (e.key.clone(), e.rev)).collect();
        self.follow(watch, print::kv(&first), &first, |what| match what {
            What::Kv { entry: Some(entry), .. } => {
                let new = told.get(&entry.key).is_none_or(|rev| *rev < entry.rev);
                new.then(|| Shown::put(print::kv_row(&entry), &entry))
            }
            What::Kv { verb: Verb::Gone, key, .. } => Some(Shown::gone(&[&key, "(gone)", ""])),
            _ => None,
        })
        .await
    }

    /// Prints what is there, and then a row for each event that shows something.
    async fn follow(
        &self,
        mut watch: Watch,
        table: Table,
        first: &[impl Serialize],
        mut show: impl FnMut(What) -> Option<Shown>,
    ) -> Outcome {
        let (format, mut table) = (self.format(), table.roomy());
        if format.is_table() {
            print::out(&table.render(print::colour()))?;
        } else {
            first.iter().try_for_each(|item| print::streamed(item, format))?;
        }
        loop {
            let what = match watch.next().await? {
                WatchItem::Lost(error) => {
                    print::note(&format!("{error}; trying again\n"));
                    continue;
                }
                WatchItem::Event(event) => event.what,
            };
            if what == What::Reset {
                print::note("events were missed; the present state follows\n");
            }
            match (show(what), format.is_table()) {
                (Some(shown), true) => print::out(&table.next(&shown.row, print::colour()))?,
                (Some(Shown { value: Some(value), .. }), false) => print::streamed(&value, format)?,
                _ => {}
            }
        }
    }
}

/// What is there when the watch begins.
async fn initial<T>(watch: &mut Watch, pick: impl Fn(What) -> Option<T>) -> Outcome<Vec<T>> {
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
                what => items.extend(pick(what)),
            },
        }
    }
}
