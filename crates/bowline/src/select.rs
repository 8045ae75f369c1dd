//! Naming one object on the command line: `hello`, `Application/hello`, or its whole key.

use bowline_client::Client;
use bowline_client::api::{ObjectQuery, ObjectView, paths};
use bowline_resources::ObjectKey;
use clap::Args;

use crate::failure::{Failure, Outcome};

/// Which object is meant.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Which {
    /// NAME, Kind/NAME, or group/Kind/namespace/name (`core` and `-` where there is none)
    #[arg(value_name = "OBJECT")]
    pub(crate) object: String,
    /// The agent that it is at
    #[arg(long, short = 'a', value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// The namespace that it is in
    #[arg(long, short = 'n', value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
}

impl Which {
    /// Finds the one object that is meant.
    pub(crate) async fn find(&self, client: &Client, at_agent: bool) -> Outcome<ObjectView> {
        let agent = self.agent.as_deref().or(at_agent.then_some(paths::THIS_AGENT));
        if let (Ok(key), Some(agent)) = (self.object.parse::<ObjectKey>(), agent) {
            return Ok(client.object(agent, &key).await?);
        }
        let found = client.all_objects(&self.query()?).await?;
        match <[ObjectView; 1]>::try_from(found) {
            Ok([one]) => Ok(one),
            Err(none) if none.is_empty() => Err(self.missing()),
            Err(many) => Err(self.ambiguous(&many)),
        }
    }

    fn query(&self) -> Outcome<ObjectQuery> {
        let parts: Vec<&str> = self.object.split('/').collect();
        let (kind, namespace, name) = match parts[..] {
            [name] => (None, None, name),
            [kind, name] => (Some(kind), None, name),
            [_, kind, namespace, name] => (Some(kind), Some(namespace), name),
            _ => {
                let message = format!("{:?} names no object", self.object);
                return Err(Failure::usage(message)
                    .hint("use NAME, Kind/NAME or group/Kind/namespace/name"));
            }
        };
        Ok(ObjectQuery {
            agent: self.agent.clone(),
            namespace: namespace.map(str::to_owned).or_else(|| self.namespace.clone()),
            kind: kind.map(str::to_owned),
            field_selector: Some(format!("metadata.name={name}")),
            ..ObjectQuery::default()
        })
    }

    fn missing(&self) -> Failure {
        let place = self.agent.as_ref().map_or(String::new(), |a| format!(" at agent {a}"));
        Failure::not_found(format!("no object {:?}{place}", self.object))
            .hint("see `bowline get objects`")
    }

    fn ambiguous(&self, found: &[ObjectView]) -> Failure {
        let list: Vec<_> =
            found.iter().take(5).map(|v| format!("{}: {}", v.agent, v.key)).collect();
        let more = if found.len() > 5 { ", ..." } else { "" };
        let message =
            format!("{:?} names {} objects: {}{more}", self.object, found.len(), list.join(", "));
        Failure::usage(message).hint("say which with --agent, -n, or Kind/NAME")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(object: &str) -> Outcome<ObjectQuery> {
        Which { object: object.into(), namespace: Some("n".into()), agent: None }.query()
    }

    #[test]
    fn an_object_is_named_in_three_ways() {
        let by_name = query("hello").unwrap();
        assert_eq!(by_name.field_selector.as_deref(), Some("metadata.name=hello"));
        assert_eq!((by_name.kind, by_name.namespace.as_deref()), (None, Some("n")));
        assert_eq!(query("app/hello").unwrap().kind.as_deref(), Some("app"));
        let whole = query("core/Pod/web/hello").unwrap();
        assert_eq!((whole.kind.as_deref(), whole.namespace.as_deref()), (Some("Pod"), Some("web")));
        assert!(query("a/b/c").is_err());
    }
}
