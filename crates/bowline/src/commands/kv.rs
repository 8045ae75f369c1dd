//! `bowline kv`.

use std::io::{Read as _, Write as _};

use bowline_client::api::{EventQuery, KvEntry, KvQuery};
use bowline_client::{Client, WatchItem};
use bytes::Bytes;
use clap::{Args, Subcommand};

use super::Output;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};
use crate::print;

#[derive(Args, Debug)]
pub(super) struct Kv {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Print a value as it is
    Get {
        /// The key
        key: String,
        #[command(flatten)]
        output: Output,
    },
    /// Write a value
    Put {
        /// The key
        key: String,
        /// The value; @FILE for a file's content, - for standard input
        value: String,
        /// Only if the key is at this rev; 0: only if it is not there
        #[arg(long, value_name = "REV")]
        cas: Option<u64>,
        /// Seal the value on disk, and hide it from viewers
        #[arg(long)]
        secret: bool,
    },
    /// Remove a key
    Delete {
        /// The key
        key: String,
        /// Only if the key is at this rev
        #[arg(long, value_name = "REV")]
        cas: Option<u64>,
    },
    /// List keys
    List {
        /// Only keys that begin so
        prefix: Option<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Print what changes
    Watch {
        /// Only keys that begin so
        prefix: Option<String>,
        #[command(flatten)]
        output: Output,
    },
}

impl Kv {
    pub(super) async fn run(&self, connection: &Connection) -> Outcome {
        if let Some("") = self.verb.key() {
            return Err(Failure::usage("the key is empty"));
        }
        let client = connection.client()?;
        match &self.verb {
            Verb::Get { key, output } => get(&client, key, *output).await,
            Verb::Put { key, value, cas, secret } => {
                let value = content(value)?;
                let entry = match secret {
                    true => client.kv_put_secret(key, value, *cas).await?,
                    false => client.kv_put(key, value, *cas).await?,
                };
                print::out(&format!("{key} at rev {}\n", entry.rev))
            }
            Verb::Delete { key, cas } => {
                let deleted = client.kv_delete(key, *cas).await?;
                print::out(&format!("{key} deleted at rev {}\n", deleted.rev))
            }
            Verb::List { prefix, output } => {
                let query = KvQuery { prefix: prefix.clone(), ..KvQuery::default() };
                let items = all(&client, query).await?;
                print::list(&items, output.output, || print::kv(&items))
            }
            Verb::Watch { prefix, output } => watch(&client, prefix.clone(), *output).await,
        }
    }
}

impl Verb {
    /// The one key that it is about.
    fn key(&self) -> Option<&str> {
        match self {
            Self::Get { key, .. } | Self::Put { key, .. } | Self::Delete { key, .. } => Some(key),
            Self::List { .. } | Self::Watch { .. } => None,
        }
    }
}

async fn get(client: &Client, key: &str, output: Output) -> Outcome {
    let entry = client.kv_get(key).await?;
    // Whoever pipes this into something must not take it for the value.
    if entry.is_redacted() {
        let message = format!("{key:?} is a secret, and this token's role may not read secrets");
        return Err(Failure::new(message).hint("use a token with the role operator or admin"));
    }
    if !output.output.is_table() {
        return print::value(&entry, output.output);
    }
    let bytes = entry.bytes().ok_or_else(|| Failure::new("the value is not the base64 it says"))?;
    let written = std::io::stdout().lock().write_all(&bytes);
    written.map_err(|e| Failure::new(format!("writing to standard output: {e}")))?;
    let is_text = bytes.last().is_some_and(|b| *b != b'\n') && std::str::from_utf8(&bytes).is_ok();
    // A terminal gets its newline; a pipe gets the value and nothing else.
    use std::io::IsTerminal as _;
    if is_text && std::io::stdout().is_terminal() { print::out("\n") } else { print::out("") }
}

async fn watch(client: &Client, prefix: Option<String>, output: Output) -> Outcome {
    let kinds = Some("kv".to_owned());
    let mut watch = client.watch(EventQuery { kinds, prefix, ..EventQuery::default() });
    loop {
        match watch.next().await? {
            WatchItem::Lost(error) => print::note(&format!("{error}; trying again\n")),
            WatchItem::Event(event) if output.output.is_table() => {
                print::out(&print::event_line(&event))?;
            }
            WatchItem::Event(event) => print::streamed(&event, output.output)?,
        }
    }
}

/// Every key that matches, page by page.
pub(super) async fn all(client: &Client, query: KvQuery) -> Outcome<Vec<KvEntry>> {
    Ok(all_since(client, query).await?.0)
}

/// The same, and the cursor after which a watch tells all that the pages do not.
pub(super) async fn all_since(
    client: &Client,
    mut query: KvQuery,
) -> Outcome<(Vec<KvEntry>, Option<String>)> {
    let (mut items, mut since) = (vec![], None);
    loop {
        let page = client.kv_list(&query).await?;
        items.extend(page.items);
        // That of the first page: what changes between two pages is told again, and never missed.
        since = since.or(page.cursor);
        query.from = page.next;
        if query.from.is_none() {
            return Ok((items, since));
        }
    }
}

fn content(value: &str) -> Outcome<Bytes> {
    let failed = |what: &str, e: std::io::Error| Failure::new(format!("reading {what}: {e}"));
    if value == "-" {
        let mut bytes = vec![];
        std::io::stdin().read_to_end(&mut bytes).map_err(|e| failed("standard input", e))?;
        return Ok(bytes.into());
    }
    match value.strip_prefix('@') {
        Some(path) => Ok(std::fs::read(path).map_err(|e| failed(path, e))?.into()),
        None => Ok(value.to_owned().into()),
    }
}
