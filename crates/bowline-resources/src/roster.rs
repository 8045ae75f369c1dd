//! Who is in the fleet, and whose word counts for which objects.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use bowline_types::{Body, Key, NodeId, ShelfId, ShelfName, Term, Wall};
use serde::{Deserialize, Serialize};

use crate::BadBody;

/// Who writes an agent's objects, as a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The hub does.
    #[default]
    Managed,
    /// The agent does; the hub watches, and proposes.
    Autonomous,
}

impl Mode {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::Autonomous => "autonomous",
        }
    }

    /// Who owns the objects under it.
    pub fn owner(self) -> Owner {
        match self {
            Self::Managed => Owner::Hub,
            Self::Autonomous => Owner::Agent,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "managed" => Ok(Self::Managed),
            "autonomous" => Ok(Self::Autonomous),
            _ => Err(format!("{text:?} is not a mode: use managed or autonomous")),
        }
    }
}

/// Whose `desired` shelf counts for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Owner {
    /// `desired@agent` of the hub.
    Hub,
    /// `desired` of the agent.
    Agent,
}

/// An exception from an agent's mode. The first that matches counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Only in this namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Only this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Whose word counts.
    pub owner: Owner,
}

impl Rule {
    fn matches(&self, namespace: Option<&str>, kind: &str) -> bool {
        let in_namespace = self.namespace.as_deref().is_none_or(|n| Some(n) == namespace);
        in_namespace && self.kind.as_deref().is_none_or(|k| k == kind)
    }
}

/// What an agent speaks with its hub.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Speaks {
    /// Bowline's own protocol: it owns its shelves.
    #[default]
    Native,
    /// The dialect of argocd-agent: the hub keeps its shelves for it.
    ArgocdAgent,
}

impl Speaks {
    /// Whether it is our own protocol.
    pub fn is_native(&self) -> bool {
        *self == Self::Native
    }
}

/// The certificate that an agent holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Certificate {
    /// Its serial number, in hexadecimal.
    pub serial: String,
    /// When it ends.
    pub not_after: Wall,
}

/// An agent in the roster: the body at `agent/<name>` on the hub's `roster`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RosterEntry {
    /// Its name.
    pub name: NodeId,
    /// Who writes its objects.
    pub mode: Mode,
    /// The mode it is changing to; takes effect when the new owner's shelf is filled and sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changing: Option<Mode>,
    /// Exceptions by namespace and kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// What it spoke when it was last here.
    #[serde(default, skip_serializing_if = "Speaks::is_native")]
    pub speaks: Speaks,
    /// Marks to select by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// When it was entered.
    pub created: Wall,
    /// The key that signs its heads, as it was told at joining; none before that.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "as_base64")]
    pub head_key: Vec<u8>,
    /// Its terms before this one are a twin's or an impostor's.
    #[serde(default)]
    pub earliest_term: Term,
    /// What it holds; none before it joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Certificate>,
    /// Certificates that no longer count, by serial number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revoked_serials: Vec<String>,
    /// Cut off since then; it must join anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Wall>,
    /// The key prefixes of `kv` that it may copy; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kv_prefixes: Vec<String>,
}

/// What is known of the new owner's shelf during a change of mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filled {
    /// Its head is sealed, and the copy of it at the hub is whole.
    pub sealed: bool,
    /// The old owner's shelf was whole where the new one was filled from it.
    pub source_whole: bool,
    /// How many objects the old owner's shelf has that the new one lacks.
    pub missing: usize,
}

/// Whether a change of mode may take effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Write this entry.
    Ready(Box<RosterEntry>),
    /// Not yet, for this reason.
    Wait(String),
    /// No change is under way.
    Nothing,
}

impl RosterEntry {
    /// An agent that has not joined yet.
    pub fn new(name: NodeId, mode: Mode, created: Wall) -> Self {
        Self {
            name,
            mode,
            changing: None,
            rules: vec![],
            speaks: Speaks::default(),
            labels: BTreeMap::new(),
            created,
            head_key: vec![],
            earliest_term: Term::default(),
            certificate: None,
            revoked_serials: vec![],
            revoked: None,
            kv_prefixes: vec![],
        }
    }

    /// The key of its record on the roster.
    pub fn key(&self) -> Key {
        Self::key_of(&self.name)
    }

    /// The key of an agent's record on the roster.
    pub fn key_of(name: &NodeId) -> Key {
        Key::new(&format!("agent/{name}")).expect("node names are valid segments")
    }

    /// Whose word counts for objects of this namespace and kind. A change that is under way does
    /// not count yet.
    pub fn owner_of(&self, namespace: Option<&str>, kind: &str) -> Owner {
        let rule = self.rules.iter().find(|r| r.matches(namespace, kind));
        rule.map_or(self.mode.owner(), |r| r.owner)
    }

    /// Whether a certificate of it counts.
    pub fn trusts(&self, serial: &str) -> bool {
        self.revoked.is_none() && !self.revoked_serials.iter().any(|s| s == serial)
    }

    /// The first step of a change of mode: the intent is on the roster, nothing else happens.
    /// None if there is nothing to change; asking for the present mode calls a change off.
    pub fn begin_change(&self, to: Mode) -> Option<Self> {
        let changing = (to != self.mode).then_some(to);
        (changing != self.changing).then(|| Self { changing, ..self.clone() })
    }

    /// The second step: only once the new owner has, sealed, all that the old one had. (Law 12.)
    pub fn settle_change(&self, filled: Filled) -> Settled {
        let Some(mode) = self.changing else { return Settled::Nothing };
        let who = match mode.owner() {
            Owner::Hub => "the hub's shelf for it",
            Owner::Agent => "its own shelf",
        };
        if !filled.source_whole {
            return Settled::Wait("the old owner's shelf is not whole here yet".into());
        }
        if !filled.sealed {
            return Settled::Wait(format!("{who} is not sealed yet"));
        }
        if filled.missing > 0 {
            return Settled::Wait(format!("{who} still lacks {} objects", filled.missing));
        }
        Settled::Ready(Box::new(Self { mode, changing: None, ..self.clone() }))
    }

    /// As a body.
    pub fn encode(&self) -> Body {
        Body::new(crate::encode(self))
    }

    /// From a body.
    pub fn decode(body: &Body) -> Result<Self, BadBody> {
        crate::decode(&body.bytes, "a roster entry")
    }
}

/// The shelf that says what is wanted at an agent.
pub fn desired_shelf(agent: &NodeId, owner: Owner) -> ShelfId {
    match owner {
        Owner::Hub => ShelfId::new(NodeId::hub(), ShelfName::about("desired", agent)),
        Owner::Agent => {
            let name = ShelfName::new("desired").expect("a fixed, valid name");
            ShelfId::new(agent.clone(), name)
        }
    }
}

/// The shelf on which an agent says what is there.
pub fn observed_shelf(agent: &NodeId) -> ShelfId {
    ShelfId::new(agent.clone(), ShelfName::about("observed", agent))
}

/// The hub's list of agents.
pub fn roster_shelf() -> ShelfId {
    ShelfId::new(NodeId::hub(), ShelfName::new("roster").expect("a fixed, valid name"))
}

/// Bytes as base64 text.
mod as_base64 {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Vec<u8>, D::Error> {
        STANDARD.decode(String::deserialize(from)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alpha() -> RosterEntry {
        RosterEntry::new(NodeId::new("alpha").unwrap(), Mode::Managed, Wall(1))
    }

    #[test]
    fn the_first_matching_rule_beats_the_mode() {
        let mut entry = alpha();
        assert_eq!(entry.owner_of(Some("web"), "Application"), Owner::Hub);
        entry.rules = vec![
            Rule { namespace: Some("site".into()), kind: Some("Secret".into()), owner: Owner::Hub },
            Rule { namespace: Some("site".into()), kind: None, owner: Owner::Agent },
        ];
        assert_eq!(entry.owner_of(Some("site"), "Application"), Owner::Agent);
        assert_eq!(entry.owner_of(Some("site"), "Secret"), Owner::Hub);
        assert_eq!(entry.owner_of(None, "Application"), Owner::Hub);
    }

    #[test]
    fn a_change_of_mode_waits_for_a_filled_and_sealed_shelf() {
        let entry = alpha();
        assert_eq!(entry.begin_change(Mode::Managed), None);
        let changing = entry.begin_change(Mode::Autonomous).unwrap();
        assert_eq!(changing.owner_of(None, "X"), Owner::Hub, "not before it is settled");
        let filled = Filled { sealed: true, source_whole: true, missing: 0 };
        for not_yet in [
            Filled { sealed: false, ..filled },
            Filled { source_whole: false, ..filled },
            Filled { missing: 2, ..filled },
        ] {
            assert!(matches!(changing.settle_change(not_yet), Settled::Wait(_)), "{not_yet:?}");
        }
        let Settled::Ready(done) = changing.settle_change(filled) else { panic!("not ready") };
        assert_eq!((done.mode, done.changing), (Mode::Autonomous, None));
        assert_eq!(done.settle_change(filled), Settled::Nothing);
        assert_eq!(changing.begin_change(Mode::Managed).unwrap(), entry, "called off");
    }

    #[test]
    fn an_entry_survives_its_encoding_and_knows_its_shelves() {
        let mut entry = alpha();
        entry.head_key = vec![0, 255, 7];
        entry.certificate = Some(Certificate { serial: "0a".into(), not_after: Wall(5) });
        assert_eq!(RosterEntry::decode(&entry.encode()).unwrap(), entry);
        assert_eq!(entry.key().as_str(), "agent/alpha");
        assert_eq!(desired_shelf(&entry.name, Owner::Hub).to_string(), "hub/desired@alpha");
        assert_eq!(desired_shelf(&entry.name, Owner::Agent).to_string(), "alpha/desired");
        assert_eq!(observed_shelf(&entry.name).to_string(), "alpha/observed@alpha");
    }

    #[test]
    fn a_revoked_agent_or_serial_is_not_trusted() {
        let mut entry = alpha();
        assert!(entry.trusts("0a"));
        entry.revoked_serials.push("0a".into());
        assert!(!entry.trusts("0a") && entry.trusts("0b"));
        entry.revoked = Some(Wall(1));
        assert!(!entry.trusts("0b"));
    }
}
