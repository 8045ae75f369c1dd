//! Choosing objects by labels and by fields, in the words that Kubernetes users know.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use crate::object::{check_label_value, check_mark};
use crate::{Health, ObjectKey, Sync};

/// A selector that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("selector {text:?}: {problem}")]
pub struct SelectorError {
    /// The part that was not understood.
    pub text: String,
    /// Why, and what would be.
    pub problem: String,
}

impl SelectorError {
    fn new(text: &str, problem: impl Into<String>) -> Self {
        Self { text: text.into(), problem: problem.into() }
    }
}

/// A condition on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Need {
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Exists,
    Missing,
}

/// Conditions on labels, all of which must hold: `env=prod,tier in (a,b),!legacy`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<(String, Need)>);

impl LabelSelector {
    /// Whether everything matches.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether these labels match. As in Kubernetes, `!=` and `notin` hold where there is no label.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.iter().all(|(key, need)| {
            let value = labels.get(key);
            match need {
                Need::In(set) => value.is_some_and(|v| set.contains(v)),
                Need::NotIn(set) => value.is_none_or(|v| !set.contains(v)),
                Need::Exists => value.is_some(),
                Need::Missing => value.is_none(),
            }
        })
    }
}

impl FromStr for LabelSelector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        split_outside_parens(text)
            .into_iter()
            .filter(|part| !part.is_empty() || !text.trim().is_empty())
            .map(requirement)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (key, need)) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            let list = |set: &BTreeSet<String>| {
                set.iter().map(String::as_str).collect::<Vec<_>>().join(",")
            };
            match need {
                Need::In(set) => write!(f, "{key} in ({})", list(set))?,
                Need::NotIn(set) => write!(f, "{key} notin ({})", list(set))?,
                Need::Exists => f.write_str(key)?,
                Need::Missing => write!(f, "!{key}")?,
            }
        }
        Ok(())
    }
}

fn split_outside_parens(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (vec![], 0, 0_i32);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth <= 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

fn requirement(part: &str) -> Result<(String, Need), SelectorError> {
    let (key, need) = if let Some((key, value)) = part.split_once("!=") {
        (key, Need::NotIn(one(part, value)?))
    } else if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        (key, Need::In(one(part, value)?))
    } else if part.ends_with(')') {
        set_requirement(part)?
    } else if let Some(key) = part.strip_prefix('!') {
        (key, Need::Missing)
    } else {
        (part, Need::Exists)
    };
    let key = key.trim();
    check_mark("label", key).map_err(|e| SelectorError::new(part, e.problem))?;
    Ok((key.to_owned(), need))
}

fn set_requirement(part: &str) -> Result<(&str, Need), SelectorError> {
    let problem = || SelectorError::new(part, "use `key in (a,b)` or `key notin (a,b)`");
    let (head, list) = part.split_once('(').ok_or_else(problem)?;
    let list = list.strip_suffix(')').ok_or_else(problem)?;
    let values = list.split(',').map(|v| value(part, v)).collect::<Result<BTreeSet<_>, _>>()?;
    let (key, word) = head.trim().rsplit_once(char::is_whitespace).ok_or_else(problem)?;
    match word {
        "in" => Ok((key, Need::In(values))),
        "notin" => Ok((key, Need::NotIn(values))),
        _ => Err(problem()),
    }
}

fn one(part: &str, text: &str) -> Result<BTreeSet<String>, SelectorError> {
    Ok(BTreeSet::from([value(part, text)?]))
}

fn value(part: &str, text: &str) -> Result<String, SelectorError> {
    let text = text.trim();
    check_label_value("value", text).map_err(|e| SelectorError::new(part, e.problem))?;
    Ok(text.to_owned())
}

/// What fields can be asked of.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The object's key.
    pub key: &'a ObjectKey,
    /// The agent that it is at.
    pub agent: &'a str,
    /// What the agent reports; unknown without a report.
    pub sync: Sync,
    /// What the agent reports; unknown without a report.
    pub health: Health,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Name,
    Namespace,
    Kind,
    Group,
    Agent,
    Sync,
    Health,
}

const FIELDS: &[(&str, Field)] = &[
    ("metadata.name", Field::Name),
    ("metadata.namespace", Field::Namespace),
    ("kind", Field::Kind),
    ("group", Field::Group),
    ("agent", Field::Agent),
    ("status.sync", Field::Sync),
    ("status.health", Field::Health),
];

/// Conditions on fields, all of which must hold: `status.health!=Healthy,agent=alpha`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<(Field, bool, String)>);

impl FieldSelector {
    /// Whether everything matches.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the subject matches.
    pub fn matches(&self, subject: &Subject<'_>) -> bool {
        self.0.iter().all(|(field, equal, wanted)| {
            let value = match field {
                Field::Name => subject.key.name.as_str(),
                Field::Namespace => subject.key.namespace.as_deref().unwrap_or(""),
                Field::Kind => &subject.key.kind,
                Field::Group => &subject.key.group,
                Field::Agent => subject.agent,
                Field::Sync => subject.sync.as_str(),
                Field::Health => subject.health.as_str(),
            };
            (value == wanted) == *equal
        })
    }
}

impl FromStr for FieldSelector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        text.split(',')
            .map(|part| field_requirement(part.trim()))
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

fn field_requirement(part: &str) -> Result<(Field, bool, String), SelectorError> {
    let (name, equal, wanted) = if let Some((name, value)) = part.split_once("!=") {
        (name, false, value)
    } else if let Some((name, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        (name, true, value)
    } else {
        return Err(SelectorError::new(part, "use `field=value` or `field!=value`"));
    };
    let (name, wanted) = (name.trim(), wanted.trim());
    let Some((_, field)) = FIELDS.iter().find(|(known, _)| *known == name) else {
        let known: Vec<_> = FIELDS.iter().map(|(known, _)| *known).collect();
        return Err(SelectorError::new(part, format!("fields are {}", known.join(", "))));
    };
    let wanted = match field {
        Field::Sync => known_name::<Sync>(part, wanted)?.to_string(),
        Field::Health => known_name::<Health>(part, wanted)?.to_string(),
        Field::Group if wanted == ObjectKey::CORE => String::new(),
        Field::Namespace if wanted == ObjectKey::CLUSTER => String::new(),
        _ => wanted.to_owned(),
    };
    Ok((*field, equal, wanted))
}

fn known_name<T: FromStr<Err = String>>(part: &str, text: &str) -> Result<T, SelectorError> {
    text.parse().map_err(|problem: String| SelectorError::new(part, problem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn labels(of: &[(&str, &str)]) -> BTreeMap<String, String> {
        of.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn every_operator_matches_as_in_kubernetes() {
        let prod = labels(&[("env", "prod"), ("tier", "web"), ("a.io/x", "")]);
        let yes = [
            "",
            "env=prod",
            "env==prod",
            "env!=test",
            "env in (test, prod)",
            "env notin (test)",
            "env",
            "!legacy",
            "legacy!=1",
            "legacy notin (1)",
            "env=prod,tier in (web,db),!legacy",
            "a.io/x",
            "a.io/x=",
            " env = prod , tier ",
        ];
        let no = [
            "env=test",
            "env!=prod",
            "env in (test)",
            "env notin (prod,x)",
            "!env",
            "legacy",
            "legacy=1",
            "legacy in (1)",
            "env=prod,tier=db",
            "env=",
        ];
        for text in yes {
            assert!(text.parse::<LabelSelector>().unwrap().matches(&prod), "{text}");
        }
        for text in no {
            assert!(!text.parse::<LabelSelector>().unwrap().matches(&prod), "{text}");
        }
    }

    #[test]
    fn malformed_selectors_are_told_what_would_do() {
        for bad in ["=a", "env=a b", "env near (a)", "env in a)", "a,,b", "env in (a b)", ",", "!"]
        {
            assert!(bad.parse::<LabelSelector>().is_err(), "{bad:?}");
        }
        let error = "status.colour=red".parse::<FieldSelector>().unwrap_err();
        assert!(error.to_string().contains("status.health"), "{error}");
        assert!("status.health=Ill".parse::<FieldSelector>().is_err());
        assert!("kind".parse::<FieldSelector>().is_err());
    }

    #[test]
    fn fields_select_objects() {
        let key = "core/Pod/-/web".parse().unwrap();
        let subject =
            Subject { key: &key, agent: "alpha", sync: Sync::Synced, health: Health::Degraded };
        let hit = |text: &str| text.parse::<FieldSelector>().unwrap().matches(&subject);
        assert!(hit("metadata.name=web,kind=Pod,agent==alpha,status.health!=healthy"));
        assert!(hit("metadata.namespace=-,group=core") && hit(""));
        assert!(!hit("status.sync=OutOfSync") && !hit("agent!=alpha"));
    }

    #[test]
    fn a_selector_means_the_same_after_printing() {
        let mut rng = Rng(11);
        let parts = ["a=1", "b!=2", "a in (1,2)", "c notin (3)", "d", "!e", "x.io/y=z"];
        for _ in 0..300 {
            let text: Vec<_> = (0..rng.below(4)).map(|_| rng.pick(&parts)).collect();
            let one: LabelSelector = text.join(",").parse().unwrap();
            assert_eq!(one.to_string().parse::<LabelSelector>().unwrap(), one);
        }
    }
}
