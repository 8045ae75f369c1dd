//! Laying one source of settings over another, and remembering which won.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{Log, Profile};
use crate::yaml;

/// A setting that cannot work, and why.
pub type Wrong = (&'static str, String);

/// A role's settings.
pub trait Role: Default + Serialize + DeserializeOwned {
    /// Mappings whose keys are the user's own.
    const OPEN: &'static [&'static str];
    /// What people may look for here, and where it is said instead.
    const ELSEWHERE: &'static [(&'static str, &'static str)] = &[];
    /// What is not shown in a dump.
    const SECRET: &'static [&'static str];

    /// What a preset changes.
    fn preset(profile: Profile) -> Value;

    /// What is logged.
    fn log(&self) -> &Log;

    /// What the start would refuse though each value alone can be read.
    fn check(&self) -> Result<(), Wrong>;
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody said otherwise.
    Default,
    /// The preset.
    Profile,
    /// The file.
    File,
    /// This variable.
    Env(String),
    /// A flag.
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Profile => f.write_str("profile"),
            Self::File => f.write_str("file"),
            Self::Env(name) => f.write_str(name),
            Self::Flag => f.write_str("flag"),
        }
    }
}

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("reading {path}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file is not YAML.
    #[error("{path} is not YAML: {problem}")]
    Yaml {
        /// The file.
        path: String,
        /// Where and why.
        problem: String,
    },
    /// There is no such setting.
    #[error("there is no setting {key:?}{}", suggestion.as_ref().map_or(String::new(), |s| format!("; did you mean {s:?}?")))]
    Unknown {
        /// As it was written.
        key: String,
        /// What may have been meant.
        suggestion: Option<String>,
    },
    /// It is no setting, and yet can be had.
    #[error("{key} is no setting: {place}")]
    Elsewhere {
        /// As it was written.
        key: String,
        /// Where it is said instead.
        place: &'static str,
    },
    /// A value makes no sense.
    #[error("{key} (from {origin}): {problem}")]
    Value {
        /// The setting.
        key: String,
        /// Where the value came from.
        origin: Origin,
        /// What is wrong with it.
        problem: String,
    },
}

/// What there is to lay over the defaults.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    /// The text of the file and its name for errors.
    pub file: Option<(String, String)>,
    /// The environment.
    pub env: BTreeMap<String, String>,
    /// Flags: settings by dotted path.
    pub flags: Vec<(String, Value)>,
}

/// Settings as meant, with the origin of each.
#[derive(Clone, Debug)]
pub struct Loaded<R> {
    /// As meant.
    pub settings: R,
    values: Value,
    origins: BTreeMap<String, Origin>,
    secret: &'static [&'static str],
}

impl Layers {
    /// Flags alone, with the process's environment and a file if one is named.
    pub fn read(file: Option<&Path>, flags: Vec<(String, Value)>) -> Result<Self, Error> {
        let text = file.map(|path| {
            let name = path.display().to_string();
            let read = std::fs::read_to_string(path);
            read.map(|text| (name.clone(), text))
                .map_err(|source| Error::Read { path: name, source })
        });
        let env = std::env::vars_os()
            .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
        Ok(Self { file: text.transpose()?, env: env.collect(), flags })
    }

    /// Lays all of them over the defaults.
    pub fn load<R: Role>(&self) -> Result<Loaded<R>, Error> {
        let defaults = serde_json::to_value(R::default()).expect("settings are plain data");
        let mut origins = BTreeMap::new();
        leaves(&defaults, "", R::OPEN, &mut |path, _| {
            origins.insert(path.to_owned(), Origin::Default);
        });
        let known: Vec<String> = origins.keys().cloned().collect();
        let mut given: Vec<(String, Value, Origin)> = vec![];
        if let Some((name, text)) = &self.file {
            let problem = |e: serde_saphyr::Error| Error::Yaml {
                path: name.clone(),
                problem: yaml::problem(&e, 0),
            };
            let value: Value = serde_saphyr::from_str(text).map_err(problem)?;
            check(&value, &defaults, "", R::OPEN).map_err(elsewhere::<R>)?;
            leaves(&value, "", R::OPEN, &mut |path, value| {
                given.push((path.to_owned(), value.clone(), Origin::File));
            });
        }
        for path in &known {
            let name = format!("BOWLINE_{}", path.replace(['.', '-'], "_").to_uppercase());
            if let Some(text) = self.env.get(&name) {
                let value = from_env(text, at(&defaults, path), R::OPEN.contains(&path.as_str()));
                given.push((path.clone(), value, Origin::Env(name)));
            }
        }
        for (path, value) in &self.flags {
            if !known.contains(path) {
                return Err(unknown(path, known.iter().map(String::as_str)));
            }
            given.push((path.clone(), value.clone(), Origin::Flag));
        }
        let mut all = preset::<R>(&defaults, &given)?;
        all.extend(given);
        let mut values = defaults.clone();
        for (path, value, origin) in all {
            set(&mut values, &path, value);
            let alone = serde_json::from_value::<R>({
                let mut alone = defaults.clone();
                set(&mut alone, &path, at(&values, &path).cloned().unwrap_or(Value::Null));
                alone
            });
            // Each is tried alone, so that the error names the one that is wrong.
            alone.map_err(|e| Error::Value {
                key: path.clone(),
                origin: origin.clone(),
                problem: e.to_string(),
            })?;
            origins.insert(path, origin);
        }
        let settings: R = serde_json::from_value(values).map_err(|e| Error::Value {
            key: "the whole".into(),
            origin: Origin::File,
            problem: e.to_string(),
        })?;
        settings.check().map_err(|(key, problem)| {
            let origin = origins.get(key).cloned().unwrap_or(Origin::Default);
            Error::Value { key: key.into(), origin, problem }
        })?;
        // As they are meant: a bare `off` of YAML is told as the word that it stands for.
        let values = serde_json::to_value(&settings).expect("settings are plain data");
        Ok(Loaded { settings, values, origins, secret: R::SECRET })
    }
}

/// What the profile that counts changes.
fn preset<R: Role>(
    defaults: &Value,
    given: &[(String, Value, Origin)],
) -> Result<Vec<(String, Value, Origin)>, Error> {
    let last = given.iter().rev().find(|(path, ..)| path == "profile");
    let (value, origin) =
        last.map_or((at(defaults, "profile"), Origin::Default), |(_, v, o)| (Some(v), o.clone()));
    let value = value.cloned().unwrap_or(Value::Null);
    let profile: Profile = serde_json::from_value(value).map_err(|e| Error::Value {
        key: "profile".into(),
        origin,
        problem: e.to_string(),
    })?;
    let mut out = vec![];
    leaves(&R::preset(profile), "", R::OPEN, &mut |path, value| {
        out.push((path.to_owned(), value.clone(), Origin::Profile));
    });
    Ok(out)
}

impl<R> Loaded<R> {
    /// Where a setting came from, by its dotted path.
    pub fn origin(&self, path: &str) -> Option<&Origin> {
        self.origins.get(path)
    }

    /// The settings, by their dotted paths, that mean something else in `new`.
    pub fn changed(&self, new: &Self) -> Vec<String> {
        let differs = |path: &&String| at(&self.values, path) != at(&new.values, path);
        self.origins.keys().filter(differs).cloned().collect()
    }

    /// Every setting by its dotted path, with its value.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.origins
            .keys()
            .map(|path| (path.as_str(), at(&self.values, path).unwrap_or(&Value::Null)))
    }

    /// The effective file, with the origin of each value behind it.
    pub fn dump(&self) -> String {
        let mut values = self.values.clone();
        for secret in self.secret {
            if at(&values, secret).is_some_and(|v| !v.is_null()) {
                set(&mut values, secret, Value::from("(redacted)"));
            }
        }
        let mut out = String::new();
        self.dump_map(&values, "", 0, &mut out);
        out
    }

    fn dump_map(&self, value: &Value, prefix: &str, indent: usize, out: &mut String) {
        let Value::Object(map) = value else { return };
        for (key, value) in map {
            let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
            let pad = " ".repeat(indent);
            match self.origins.get(&path) {
                // Flow style is JSON, so that the origin fits behind it.
                Some(origin) => {
                    let value = match value {
                        Value::String(_) => bowline_resources::yaml(value).trim_end().to_owned(),
                        other => other.to_string(),
                    };
                    out.push_str(&format!("{pad}{key}: {value}  # {origin}\n"));
                }
                None => {
                    out.push_str(&format!("{pad}{key}:\n"));
                    self.dump_map(value, &path, indent + 2, out);
                }
            }
        }
    }
}

/// Visits every setting: what is not a mapping, and mappings whose keys are the user's own.
fn leaves(value: &Value, prefix: &str, open: &[&str], visit: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Object(map) if !open.contains(&prefix) => {
            for (key, value) in map {
                let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                leaves(value, &path, open, visit);
            }
        }
        leaf if !prefix.is_empty() => visit(prefix, leaf),
        _ => {}
    }
}

fn check(value: &Value, known: &Value, prefix: &str, open: &[&str]) -> Result<(), Error> {
    let (Value::Object(map), Value::Object(known)) = (value, known) else { return Ok(()) };
    if open.contains(&prefix) {
        return Ok(());
    }
    for (key, value) in map {
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        let Some(inner) = known.get(key) else {
            return Err(unknown(&path, known.keys().map(String::as_str)));
        };
        check(value, inner, &path, open)?;
    }
    Ok(())
}

fn unknown<'a>(path: &str, known: impl Iterator<Item = &'a str>) -> Error {
    let last = path.rsplit('.').next().unwrap_or(path);
    let near = known.map(|k| (distance(last, k.rsplit('.').next().unwrap_or(k)), k)).min();
    let suggestion = near.filter(|(d, _)| *d <= 1 + last.len() / 3).map(|(_, k)| k.to_owned());
    Error::Unknown { key: path.to_owned(), suggestion }
}

/// The same error; for what is said elsewhere, where that is.
fn elsewhere<R: Role>(error: Error) -> Error {
    let Error::Unknown { key, suggestion } = error else { return error };
    match R::ELSEWHERE.iter().find(|(known, _)| *known == key) {
        Some((_, place)) => Error::Elsewhere { key, place },
        None => Error::Unknown { key, suggestion },
    }
}

/// How many letters must change to make one word of the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut before = i;
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = before + usize::from(x != *y);
            before = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(before + 1);
        }
    }
    row[b.len()]
}

/// A variable's text as the kind of value that the default is.
fn from_env(text: &str, default: Option<&Value>, open: bool) -> Value {
    let parts = || text.split(',').map(str::trim).filter(|p| !p.is_empty());
    match default {
        Some(Value::Array(_)) => parts().map(Value::from).collect(),
        _ if open => {
            let pairs = parts().filter_map(|p| p.split_once('='));
            Value::Object(pairs.map(|(k, v)| (k.to_owned(), Value::from(v))).collect())
        }
        Some(Value::Number(_)) => text.parse::<i64>().map_or(Value::from(text), Value::from),
        Some(Value::Bool(_)) => text.parse::<bool>().map_or(Value::from(text), Value::from),
        _ => Value::from(text),
    }
}

fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, key| value.get(key))
}

fn set(value: &mut Value, path: &str, new: Value) {
    let (key, rest) = path.split_once('.').unwrap_or((path, ""));
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let Value::Object(map) = value else { return };
    let slot = map.entry(key.to_owned()).or_insert(Value::Null);
    if rest.is_empty() { *slot = new } else { set(slot, rest, new) }
}
