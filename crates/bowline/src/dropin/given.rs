//! A command line and its environment, read by a table of flags as argocd-agent would read them.

use std::time::Duration;

use super::duration;
use super::flags::{Effect, Flag, Kind};

/// Why a command line cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Error {
    /// Somebody asks what there is.
    #[error("help")]
    Help,
    /// There is no such flag.
    #[error("there is no flag {0}")]
    Unknown(String),
    /// There is none, but one that looks like it.
    #[error("there is no flag {0}: is {1} meant?")]
    Near(String, String),
    /// The value is missing.
    #[error("{0} needs a value")]
    NoValue(String),
    /// The value is not what it should be.
    #[error("{0}: {1:?} is not {2}")]
    BadValue(String, String, &'static str),
    /// A word that belongs to nothing.
    #[error("{0:?} belongs to no flag: put a value right behind its flag, or after a `=`")]
    Stray(String),
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Default,
    Environment,
    CommandLine,
}

#[derive(Clone, Debug)]
struct Value {
    /// One text, or the items of a list.
    items: Vec<String>,
    origin: Origin,
}

/// What was given, for every flag of a table.
#[derive(Clone, Debug)]
pub(super) struct Given {
    table: &'static [Flag],
    values: Vec<Value>,
    /// Variables whose value is not one, which argocd-agent leaves alone too.
    pub(super) warnings: Vec<String>,
}

/// A flag that was taken and changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Notice {
    pub(super) flag: String,
    pub(super) why: &'static str,
}

impl Given {
    /// Reads a command line (without the program and the command) over what `env` says.
    pub(super) fn read(
        table: &'static [Flag],
        args: &[String],
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let mut given = Self { table, values: vec![], warnings: vec![] };
        for flag in table {
            let value = given.take_environment(flag, &env);
            given.values.push(value);
        }
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            given.take(arg, &mut args)?;
        }
        Ok(given)
    }

    fn take_environment(&mut self, flag: &Flag, env: impl Fn(&str) -> Option<String>) -> Value {
        let default = Value { items: items(flag.kind, flag.default), origin: Origin::Default };
        let Some(text) = Some(flag.env).filter(|e| !e.is_empty()).and_then(env) else {
            return default;
        };
        match check(flag, &text) {
            Ok(()) => Value { items: items(flag.kind, &text), origin: Origin::Environment },
            Err(_) if text.is_empty() => default,
            Err(_) => {
                let (name, what) = (flag.env, expected(flag.kind));
                let warning = format!("{name}: {text:?} is not {what}, so it is left alone");
                self.warnings.push(warning);
                default
            }
        }
    }

    fn take<'a>(
        &mut self,
        arg: &str,
        rest: &mut impl Iterator<Item = &'a String>,
    ) -> Result<(), Error> {
        if matches!(arg, "-h" | "--help") {
            return Err(Error::Help);
        }
        let (index, attached) = self.find(arg)?;
        let flag = &self.table[index];
        let text = match attached {
            Some(text) => text,
            None if flag.kind == Kind::Bool => "true".to_owned(),
            None => rest.next().cloned().ok_or_else(|| Error::NoValue(flag.title()))?,
        };
        check(flag, &text)?;
        let more = items(flag.kind, &text);
        let value = &mut self.values[index];
        match (flag.kind, value.origin) {
            (Kind::List, Origin::CommandLine) => value.items.extend(more),
            _ => *value = Value { items: more, origin: Origin::CommandLine },
        }
        Ok(())
    }

    /// The flag of an argument, and the value that is attached to it.
    fn find(&self, arg: &str) -> Result<(usize, Option<String>), Error> {
        if let Some(long) = arg.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            let found = self.table.iter().position(|f| !name.is_empty() && f.name == name);
            return found.map(|index| (index, value)).ok_or_else(|| self.unknown(name));
        }
        let mut chars = arg.strip_prefix('-').unwrap_or_default().chars();
        let Some(short) = chars.next() else { return Err(Error::Stray(arg.to_owned())) };
        let found = self.table.iter().position(|f| f.short == Some(short));
        let index = found.ok_or_else(|| Error::Unknown(format!("-{short}")))?;
        let attached = chars.as_str();
        let attached = attached.strip_prefix('=').unwrap_or(attached);
        Ok((index, Some(attached).filter(|a| !a.is_empty()).map(str::to_owned)))
    }

    fn unknown(&self, name: &str) -> Error {
        let named = self.table.iter().filter(|f| !f.name.is_empty());
        let nearest = named.min_by_key(|f| distance(f.name, name));
        let nearest = nearest.filter(|f| distance(f.name, name) <= name.len().max(3) / 3);
        let asked = format!("--{name}");
        match nearest {
            Some(flag) => Error::Near(asked, flag.title()),
            None => Error::Unknown(asked),
        }
    }

    fn value(&self, name: &str) -> &Value {
        let index = self.table.iter().position(|f| f.name == name);
        &self.values[index.expect("code asks for flags of its table only: a test reads them all")]
    }

    /// The text of a flag; empty if it has none.
    pub(super) fn text(&self, name: &str) -> &str {
        self.value(name).items.first().map_or("", String::as_str)
    }

    /// The same, if it is not empty.
    pub(super) fn some(&self, name: &str) -> Option<String> {
        Some(self.text(name)).filter(|t| !t.is_empty()).map(str::to_owned)
    }

    /// The items of a list, without empty ones.
    pub(super) fn list(&self, name: &str) -> Vec<String> {
        self.value(name).items.iter().filter(|item| !item.is_empty()).cloned().collect()
    }

    /// Whether a flag is on.
    pub(super) fn is_on(&self, name: &str) -> bool {
        boolean(self.text(name)).unwrap_or(false)
    }

    /// A port; none if it is 0.
    pub(super) fn port(&self, name: &str) -> Result<Option<u16>, Error> {
        let text = self.text(name);
        let bad = || Error::BadValue(format!("--{name}"), text.to_owned(), "a port, 0 to 65535");
        let port: u16 = text.parse().map_err(|_| bad())?;
        Ok((port > 0).then_some(port))
    }

    /// A duration.
    pub(super) fn duration(&self, name: &str) -> Duration {
        duration::parse(self.text(name)).unwrap_or_default()
    }

    /// What was given and changes nothing, and what is missing here and was not switched off.
    pub(super) fn without_effect(&self) -> Vec<Notice> {
        let rows = self.table.iter().zip(&self.values);
        let notice = |(flag, value): (&Flag, &Value)| {
            let why = match flag.effect {
                Effect::Same(_) => return None,
                Effect::Missing { unless, why } => Some(why).filter(|_| !same(flag, value, unless)),
                Effect::Nothing(why) => Some(why)
                    .filter(|_| value.origin != Origin::Default)
                    .filter(|_| !same(flag, value, flag.default)),
            };
            Some(Notice { flag: flag.title(), why: why? })
        };
        rows.filter_map(notice).collect()
    }
}

/// Whether a value means the same as this text.
fn same(flag: &Flag, value: &Value, text: &str) -> bool {
    let meant = |text: &str| match flag.kind {
        Kind::Bool => boolean(text).map(|b| b.to_string()),
        Kind::Duration => duration::parse(text).map(|d| d.as_nanos().to_string()),
        Kind::Text | Kind::List | Kind::Number => Some(text.to_owned()),
    };
    let plain = |items: &[String]| {
        items.iter().filter(|i| !i.is_empty()).map(|i| meant(i)).collect::<Vec<_>>()
    };
    plain(&value.items) == plain(&items(flag.kind, text))
}

fn items(kind: Kind, text: &str) -> Vec<String> {
    match kind {
        Kind::List => text.split(',').map(|item| item.trim().to_owned()).collect(),
        _ => vec![text.to_owned()],
    }
}

fn check(flag: &Flag, text: &str) -> Result<(), Error> {
    let good = match flag.kind {
        Kind::Text | Kind::List => true,
        Kind::Bool => boolean(text).is_some(),
        Kind::Number => text.parse::<u32>().is_ok(),
        Kind::Duration => duration::parse(text).is_some(),
    };
    let bad = || Error::BadValue(flag.title(), text.to_owned(), expected(flag.kind));
    good.then_some(()).ok_or_else(bad)
}

fn expected(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::List => "a text",
        Kind::Bool => "true or false",
        Kind::Number => "a whole number",
        Kind::Duration => "a duration such as 1m30s",
    }
}

/// What Go takes for a truth value.
fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "True" | "TRUE" => Some(true),
        "0" | "f" | "F" | "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// How many letters must be added, left out or replaced to make one name of the other.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.bytes().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, b) in other.bytes().enumerate() {
            let replaced = corner + usize::from(a != b);
            corner = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(corner + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests;
