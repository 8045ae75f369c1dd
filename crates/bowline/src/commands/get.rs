//! `bowline get`: lists; what goes on to watch is in `watch`.

mod follow;
mod watch;

use bowline_client::Client;
use bowline_client::api::{AuditQuery, EventQuery, KvQuery, ObjectQuery, Page};
use clap::Args;

use super::Output;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};
use crate::print;

#[derive(Args, Clone, Debug)]
pub(super) struct Get {
    /// objects, agents, events, audit, kv, tokens, join-tokens, shelves; or a kind such as Application,
    /// or KIND/NAME
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
    /// Go on and print what changes; events are always followed
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
    /// What it lists, if an agent's own API knows nothing of it.
    pub(super) fn hub_only(&self) -> Option<&str> {
        let what = self.what.as_str();
        let only = ["agents", "agent", "audit", "tokens", "token", "join-tokens", "join-token"];
        only.contains(&what.split('/').next()?).then_some(what)
    }

    pub(super) async fn run(&self, connection: &Connection) -> Outcome {
        let this = self.apart()?;
        let client = connection.client()?;
        match (this.what.as_str(), self.watch) {
            ("events" | "event", _) => this.events(&client, connection.is_at_agent()).await,
            ("agents" | "agent", false) => this.agents(&client).await,
            ("agents" | "agent", true) => this.watch_agents(&client).await,
            ("audit", false) => this.audit(&client).await,
            ("audit", true) => this.watch_audit(&client).await,
            ("kv", false) => this.kv(&client).await,
            ("kv", true) => this.watch_kv(&client).await,
            ("tokens" | "token" | "join-tokens" | "join-token" | "shelves" | "shelf", true) => {
                let message = format!("{} cannot be watched", this.what);
                Err(Failure::usage(message).hint("leave out -w, and ask again when you want to"))
            }
            ("tokens" | "token", false) => {
                let items = client.tokens().await?.items;
                print::list(&items, this.format(), || print::tokens(&items, print::now()))
            }
            ("join-tokens" | "join-token", false) => {
                let items = client.join_tokens().await?.items;
                print::list(&items, this.format(), || print::join_tokens(&items, print::now()))
            }
            ("shelves" | "shelf", false) => {
                let (items, wide) = (client.shelves().await?.items, this.format().is_wide());
                print::list(&items, this.format(), || print::shelves(&items, wide))
            }
            ("objects" | "object", _) => this.objects(&client, None).await,
            (kind, _) => this.objects(&client, Some(singular(kind))).await,
        }
    }

    /// The same, with `KIND/NAME` as two words.
    fn apart(&self) -> Outcome<Self> {
        let parts: Vec<&str> = self.what.split('/').collect();
        let (what, name) = match (&parts[..], &self.name) {
            ([_], _) => return Ok(self.clone()),
            ([what, name], None) if !name.is_empty() => (*what, *name),
            _ => {
                let message = format!("{:?} is neither a kind nor KIND/NAME", self.what);
                return Err(Failure::usage(message).hint("`bowline describe` takes whole keys"));
            }
        };
        Ok(Self { what: what.to_owned(), name: Some(name.to_owned()), ..self.clone() })
    }

    fn format(&self) -> print::Format {
        self.output.output
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
        let format = self.format();
        let items = client.all_objects(&query).await?;
        if let (Some(kind), true) = (kind, items.is_empty()) {
            known_kind(client, kind).await?;
        }
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

    async fn agents(&self, client: &Client) -> Outcome {
        let format = self.format();
        let items = match &self.name {
            Some(name) => vec![client.agent(name).await?],
            None => super::agents::all(client, self.labels.as_deref()).await?,
        };
        if let (Some(_), [one], false) = (&self.name, &items[..], format.is_table()) {
            return print::value(one, format);
        }
        print::list(&items, format, || print::agents(&items, format.is_wide(), print::now()))
    }

    async fn audit(&self, client: &Client) -> Outcome {
        let (items, format) = (client.audit(&self.audit_query()).await?.items, self.format());
        print::list(&items, format, || print::audit(&items, format.is_wide()))
    }

    fn audit_query(&self) -> AuditQuery {
        let (agent, limit) = (self.agent.clone(), Some(self.limit));
        AuditQuery { agent, limit, ..AuditQuery::default() }
    }

    async fn kv(&self, client: &Client) -> Outcome {
        let query = KvQuery { prefix: self.name.clone(), ..KvQuery::default() };
        let items = super::kv::all(client, query).await?;
        if let (Some(prefix), true) = (&self.name, items.is_empty()) {
            let hint = "see `bowline kv list`";
            return Err(Failure::not_found(format!("no key begins with {prefix:?}")).hint(hint));
        }
        print::list(&items, self.format(), || print::kv(&items))
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

/// Kinds are the users' own: a word that no object bears is more likely misspelled than empty.
async fn known_kind(client: &Client, kind: &str) -> Outcome {
    let all = client.all_objects(&ObjectQuery::default()).await?;
    let kinds: std::collections::BTreeSet<_> = all.into_iter().map(|o| o.key.kind).collect();
    if kinds.iter().any(|known| known.eq_ignore_ascii_case(kind)) {
        return Ok(());
    }
    let hint = match kinds.is_empty() {
        true => "there are no objects yet; `bowline get --help` has what else can be listed".into(),
        false => format!("there are: {}", kinds.into_iter().collect::<Vec<_>>().join(", ")),
    };
    Err(Failure::not_found(format!("no object is of the kind {kind:?}")).hint(hint))
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
