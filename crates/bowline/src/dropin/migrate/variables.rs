//! The variables of a container, from wherever its manifest takes them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use crate::dropin::objects::{Secret, Site};
use crate::failure::Outcome;

/// What a container's variables are taken from.
#[derive(Debug, Default)]
pub(super) struct Sources {
    pub(super) config_maps: BTreeMap<String, BTreeMap<String, String>>,
    pub(super) secrets: BTreeMap<String, Secret>,
}

/// Values that are read and never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Hidden(BTreeMap<String, String>);

impl Hidden {
    /// The value of a variable.
    pub(super) fn get(&self, name: &str) -> Option<&String> {
        self.0.get(name)
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hidden({})", self.0.len())
    }
}

/// The variables of a container, each in one of the two.
#[derive(Debug, Default)]
pub(super) struct Variables {
    pub(super) plain: BTreeMap<String, String>,
    /// From which Secret, `NAME/KEY`.
    pub(super) secret: BTreeMap<String, String>,
    pub(super) hidden: Hidden,
}

impl Sources {
    /// Reads what the container names; what is not there is left out, as the cluster does with
    /// what is optional.
    pub(super) async fn read(site: &Site, container: &Value) -> Outcome<Self> {
        let mut sources = Self::default();
        for name in named(container, "configMapKeyRef", "configMapRef") {
            let data = site.config_map(&name).await?;
            sources.config_maps.extend(data.map(|data| (name, data)));
        }
        for name in named(container, "secretKeyRef", "secretRef") {
            sources.secrets.extend(site.secret(&name).await?.map(|secret| (name, secret)));
        }
        Ok(sources)
    }
}

/// The objects that a container names, for one variable or for all that they hold.
fn named(container: &Value, for_one: &str, for_all: &str) -> BTreeSet<String> {
    let ones = entries(&container["env"]).map(|entry| &entry["valueFrom"][for_one]);
    let alls = entries(&container["envFrom"]).map(|entry| &entry[for_all]);
    ones.chain(alls).filter_map(|at| at["name"].as_str().map(str::to_owned)).collect()
}

fn entries(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

impl Variables {
    /// As the cluster resolves them: the last word on a variable counts, and `env` comes after
    /// `envFrom`.
    pub(super) fn of(container: &Value, sources: &Sources) -> Self {
        let mut out = Self::default();
        entries(&container["envFrom"]).for_each(|entry| out.take_all(entry, sources));
        entries(&container["env"]).for_each(|entry| _ = out.take_one(entry, sources));
        out
    }

    fn take_all(&mut self, entry: &Value, sources: &Sources) {
        let prefix = entry["prefix"].as_str().unwrap_or_default();
        let name = |field: &str| entry[field]["name"].as_str().unwrap_or_default();
        for (key, value) in sources.config_maps.get(name("configMapRef")).into_iter().flatten() {
            self.show(&format!("{prefix}{key}"), value);
        }
        if let Some(secret) = sources.secrets.get(name("secretRef")) {
            secret.data.keys().for_each(|key| self.hide(&format!("{prefix}{key}"), secret, key));
        }
    }

    fn take_one(&mut self, entry: &Value, sources: &Sources) -> Option<()> {
        let name = entry["name"].as_str()?;
        let (map, secret) =
            (&entry["valueFrom"]["configMapKeyRef"], &entry["valueFrom"]["secretKeyRef"]);
        if let Some(value) = entry["value"].as_str() {
            self.show(name, value);
        } else if let Some(of) = map["name"].as_str() {
            self.show(name, sources.config_maps.get(of)?.get(map["key"].as_str()?)?);
        } else if let Some(of) = secret["name"].as_str() {
            self.hide(name, sources.secrets.get(of)?, secret["key"].as_str()?);
        }
        Some(())
    }

    fn show(&mut self, name: &str, value: &str) {
        self.secret.remove(name);
        self.hidden.0.remove(name);
        self.plain.insert(name.to_owned(), value.to_owned());
    }

    fn hide(&mut self, name: &str, secret: &Secret, key: &str) {
        let Ok(value) = secret.text(key) else { return };
        self.plain.remove(name);
        self.hidden.0.insert(name.to_owned(), value);
        self.secret.insert(name.to_owned(), format!("{}/{key}", secret.name));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sources() -> Sources {
        let data = [("A", "all"), ("B", "all"), ("principal.auth", "mtls:x")];
        let data = data.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let secret = Secret::new("redis", "Opaque", &[("auth", "secret-word"), ("B", "secret-b")]);
        Sources {
            config_maps: BTreeMap::from([("cp-params".to_owned(), data)]),
            secrets: BTreeMap::from([("redis".to_owned(), secret)]),
        }
    }

    #[test]
    fn whatever_object_a_variable_names_is_looked_up() {
        let container = json!({
            "envFrom": [
                {"configMapRef": {"name": "cp-params"}},
                {"prefix": "R_", "secretRef": {"name": "redis"}},
                {"secretRef": {"name": "not-there", "optional": true}},
            ],
            "env": [
                {"name": "A", "value": "one"},
                {"name": "B", "valueFrom": {"secretKeyRef": {"name": "redis", "key": "B"}}},
                {"name": "AUTH", "valueFrom": {"configMapKeyRef": {"name": "cp-params", "key": "principal.auth"}}},
                {"name": "NONE", "valueFrom": {"configMapKeyRef": {"name": "cp-params", "key": "none"}}},
                {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            ],
        });
        let maps = named(&container, "configMapKeyRef", "configMapRef");
        assert_eq!(maps.into_iter().collect::<Vec<_>>(), ["cp-params"]);
        let secrets = named(&container, "secretKeyRef", "secretRef");
        assert_eq!(secrets.into_iter().collect::<Vec<_>>(), ["not-there", "redis"]);
        let variables = Variables::of(&container, &sources());
        assert_eq!((&*variables.plain["A"], &*variables.plain["AUTH"]), ("one", "mtls:x"));
        assert_eq!(variables.secret["B"], "redis/B");
        assert_eq!(variables.secret["R_auth"], "redis/auth");
        assert_eq!(variables.hidden.get("R_auth").unwrap(), "secret-word");
        for name in ["B", "NONE", "POD"] {
            assert!(!variables.plain.contains_key(name), "{name}");
        }
        assert!(!format!("{variables:?}").contains("secret-"), "{variables:?}");
    }
}
