//! Data to stdout, the rest to stderr; tables, ages, JSON and YAML.

mod age;
mod rows;
mod table;

use std::io::{IsTerminal as _, Write as _};

use clap::ValueEnum;
use serde::Serialize;

use crate::failure::{Failure, Outcome};

pub use age::{age, now};
pub use rows::{
    agent_row, agents, audit, audit_row, event_line, join_tokens, kv, kv_row, object_row, objects,
    shelves, tokens,
};
pub use table::{Cell, Table, Tint};

/// How data is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Columns
    #[default]
    Table,
    /// More columns
    Wide,
    /// JSON
    Json,
    /// YAML
    Yaml,
}

impl Format {
    /// Whether it is for people rather than programs.
    pub fn is_table(self) -> bool {
        matches!(self, Self::Table | Self::Wide)
    }

    /// Whether more columns are wanted.
    pub fn is_wide(self) -> bool {
        self == Self::Wide
    }
}

/// Prints data. A reader that went away ends the command quietly, as `head` expects.
pub fn out(text: &str) -> Outcome {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Err(Failure::new("")),
        Err(error) => Err(Failure::new(format!("writing to standard output: {error}"))),
    }
}

/// Says something that is not data.
pub fn note(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Prints a value as JSON or YAML.
pub fn value(value: &impl Serialize, format: Format) -> Outcome {
    let value = serde_json::to_value(value).map_err(|e| Failure::new(e.to_string()))?;
    match format {
        Format::Yaml => out(&bowline_resources::yaml(&value)),
        _ => out(&format!("{value:#}\n")),
    }
}

/// Prints a value on one line of JSON, or as one YAML document: for what never ends.
pub fn streamed(value: &impl Serialize, format: Format) -> Outcome {
    let value = serde_json::to_value(value).map_err(|e| Failure::new(e.to_string()))?;
    match format {
        Format::Yaml => out(&format!("---\n{}", bowline_resources::yaml(&value))),
        _ => out(&format!("{value}\n")),
    }
}

/// Prints a table, or the items that it was made of.
pub fn list<T: Serialize>(items: &[T], format: Format, table: impl FnOnce() -> Table) -> Outcome {
    if !format.is_table() {
        return value(&serde_json::json!({ "items": items }), format);
    }
    let table = table();
    if table.is_empty() {
        note("nothing found\n");
        return Ok(());
    }
    out(&table.render(colour()))
}

/// Whether to use colour: on a terminal, unless `NO_COLOR` says no.
pub fn colour() -> bool {
    let no = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    !no && std::env::var_os("TERM").is_none_or(|t| t != "dumb") && std::io::stdout().is_terminal()
}

/// How far something is, on one line of a terminal; silent anywhere else.
pub struct Progress {
    what: String,
    shown: std::time::Instant,
    enabled: bool,
}

impl Progress {
    /// Begins.
    pub fn start(what: impl Into<String>) -> Self {
        let enabled = std::io::stderr().is_terminal();
        Self { what: what.into(), shown: std::time::Instant::now(), enabled }
    }

    /// Tells how far it is, now and then.
    pub fn at(&mut self, done: u64, of: Option<u64>) {
        let mib = |bytes: u64| bytes / (1 << 20);
        self.say(&match of.filter(|of| *of > 0) {
            Some(of) => format!("{:3} %", done * 100 / of),
            None => format!("{} MiB", mib(done)),
        });
    }

    /// Tells it in words, now and then.
    pub fn say(&mut self, how: &str) {
        if !self.enabled || self.shown.elapsed().as_millis() < 100 {
            return;
        }
        self.shown = std::time::Instant::now();
        note(&format!("\r{} {how}\x1b[K", self.what));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.enabled {
            note("\r\x1b[K");
        }
    }
}
