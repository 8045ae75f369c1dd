//! `bowline get`: lists, and watches.

use bowline_client::api::{
    AuditQuery, EventQuery, KvQuery, ObjectQuery, ObjectView, Page, Verb, What,
};
use bowline_client::{Client, WatchItem};
use clap::Args;

use super::Output;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};
use crate::print::{self, Format};

#[derive(Args, Debug)]
pub(super) struct Get {
    /// objects, agents, events, audit, kv, tokens, join-tokens, shelves; or a kind such as Application
    what: String,
    /// Only the one of this name
    name: Option<String>,
    /// Objects: only at this agent
    #[arg(long, short = 'a')]
    agent: Option<String>,
    /// Objects: only in this namespace
    #[arg(long, short = 'n', conflicts_with = "all_namespaces")]
    namespace: Option<String>,
    /// Objects: in every namespace, which is the default
    #[arg(long, short = 'A')]
    all_namespaces: bool,
    /// Only these labels: env=prod,tier in (a,b),!legacy
    #[arg(long = "selector", short = 'l', value_name = "SELECTOR")]
    labels: Option<String>,
    /// Objects: only these fields: status.health!=Healthy
    #[arg(long, value_name = "SELECTOR")]
    field_selector: Option<String>,
    /// Go on and print what changes
    #[arg(long, short = 'w')]
    watch: bool,
    /// Events: begin after this cursor
    #[arg(long, value_name = "CURSOR")]
    since: Option<String>,
    /// Audit: at most so many entries
    #[arg(long, default_value_t = 100)]
    limit: usize,
    #[command(flatten)]
    output: Output,
}

impl Get {
    pub(super) async fn run(&self, connection: &Connection) -> Outcome {
        let client = connection.client()?;
        let format = self.output.output;
        match self.what.as_str() {
            "agents" | "agent" => self.agents(&client).await,
            "events" | "event" => self.events(&client).await,
            "audit" => {
                let query = AuditQuery {
                    agent: self.agent.clone(),
                    limit: Some(self.limit),
                    ..AuditQuery::default()
                };
                let items = client.audit(&query).await?.items;
                print::list(&items, format, || print::audit(&items, format.is_wide()))
            }
            "kv" => {
                let query = KvQuery { prefix: self.name.clone(), ..KvQuery::default() };
                let items = super::kv::all(&client, query).await?;
                print::list(&items, format, || print::kv(&items))
            }
            "tokens" | "token" => {
                let items = client.tokens().await?.items;
                print::list(&items, format, || print::tokens(&items, print::now()))
            }
            "join-tokens" | "join-token" => {
                let items = client.join_tokens().await?.items;
                print::list(&items, format, || print::join_tokens(&items, print::now()))
            }
            "shelves" | "shelf" => {
                let items = client.shelves().await?.items;
                print::list(&items, format, || print::shelves(&items, format.is_wide()))
            }
            "objects" | "object" => self.objects(&client, None).await,
            kind => self.objects(&client, Some(singular(kind))).await,
        }
    }

    async fn objects(&self, client: &Client, kind: Option<&str>) -> Outcome {
        if self.watch {
            return self.watch_objects(client, kind).await;
        }
        let query = ObjectQuery {
            agent: self.agent.clone(),
            namespace: self.namespace.clone(),
            kind: kind.map(str::to_owned),
            label_selector: self.labels.clone(),
            field_selector: self.fields(),
            ..ObjectQuery::default()
        };
        let format = self.output.output;
        let items = client.all_objects(&query).await?;
        if let (Some(name), true) = (&self.name, items.is_empty()) {
            let hint = "see `bowline get objects`";
            return Err(Failure::not_found(format!("no object {name:?}")).hint(hint));
        }
        if let (Some(_), [one], false) = (&self.name, &items[..], format.is_table()) {
            return print::value(one, format);
        }
        print::list(&items, format, || print::objects(&items, format.is_wide(), print::now()))
    }

    /// The field selector, and the name as part of it.
    fn fields(&self) -> Option<String> {
        let name = self.name.as_ref().map(|n| format!("metadata.name={n}"));
        let parts: Vec<String> = self.field_selector.iter().cloned().chain(name).collect();
        (!parts.is_empty()).then(|| parts.join(","))
    }

    async fn watch_objects(&self, client: &Client, kind: Option<&str>) -> Outcome {
        let mut query = self.event_query("object");
        query.initial = true;
        let (mut watch, format) = (client.watch(query), self.output.output);
        let matches =
            |view: &ObjectView| kind.is_none_or(|k| view.key.kind.eq_ignore_ascii_case(k));
        let (mut first, mut table) = (Some(vec![]), print::Table::default());
        loop {
            let event = match watch.next().await? {
                WatchItem::Lost(error) => {
                    print::note(&format!("{error}; trying again\n"));
                    continue;
                }
                WatchItem::Event(event) => event,
            };
            match (event.what, &mut first) {
                (What::Object { object: Some(view), .. }, Some(initial)) if matches(&view) => {
                    initial.push(*view);
                }
                (What::Object { object: Some(view), .. }, None) if matches(&view) => {
                    show(&view, &mut table, format)?;
                }
                (What::Object { verb: Verb::Gone, agent, key, .. }, None) if format.is_table() => {
                    print::out(&format!("{agent}: {key} is gone\n"))?;
                }
                (What::Reset, initial) => *initial = Some(vec![]),
                (What::Ready, initial) => {
                    let items = initial.take().unwrap_or_default();
                    table = print::objects(&items, format.is_wide(), print::now());
                    if format.is_table() {
                        print::out(&table.render(print::colour()))?;
                    } else {
                        items.iter().try_for_each(|item| print::streamed(item, format))?;
                    }
                }
                _ => {}
            }
        }
    }

    async fn agents(&self, client: &Client) -> Outcome {
        let format = self.output.output;
        if let Some(name) = &self.name {
            let view = client.agent(name).await?;
            if !format.is_table() {
                return print::value(&view, format);
            }
            let items = [view];
            return print::list(&items, format, || {
                print::agents(&items, format.is_wide(), print::now())
            });
        }
        let items = super::agents::all(client, self.labels.as_deref()).await?;
        print::list(&items, format, || print::agents(&items, format.is_wide(), print::now()))?;
        if self.watch {
            return self.stream(client, self.event_query("agent")).await;
        }
        Ok(())
    }

    async fn events(&self, client: &Client) -> Outcome {
        self.stream(client, self.event_query("object,agent,kv,audit")).await
    }

    async fn stream(&self, client: &Client, query: EventQuery) -> Outcome {
        let (mut watch, format) = (client.watch(query), self.output.output);
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

    fn event_query(&self, kinds: &str) -> EventQuery {
        EventQuery {
            since: self.since.clone(),
            kinds: Some(kinds.to_owned()),
            agent: self.agent.clone(),
            namespace: self.namespace.clone(),
            label_selector: self.labels.clone(),
            field_selector: self.fields(),
            ..EventQuery::default()
        }
    }
}

fn show(view: &ObjectView, table: &mut print::Table, format: Format) -> Outcome {
    if !format.is_table() {
        return print::streamed(view, format);
    }
    let row = print::object_row(view, format.is_wide(), print::now());
    print::out(&table.next(&row, print::colour()))
}

/// `applications` and `application` mean the kind Application.
fn singular(kind: &str) -> &str {
    let plural = kind.len() > 2 && kind.ends_with('s') && !kind.ends_with("ss");
    if plural && kind.chars().all(|c| c.is_ascii_lowercase()) {
        &kind[..kind.len() - 1]
    } else {
        kind
    }
}

/// A page of the usual size.
pub(super) fn page(from: Option<String>) -> Page {
    Page { limit: None, from }
}
