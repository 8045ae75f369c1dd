//! `bowline agents`.

use bowline_client::Client;
use bowline_client::api::{AgentCreate, AgentView, ModeChange, ObjectQuery, ObjectView};
use bowline_resources::{Mode, Owner, Rule};
use clap::{ArgGroup, Args, Subcommand};
use serde_json::{Value, json};

use super::Output;
use crate::connect::Connection;
use crate::failure::Outcome;
use crate::print;

/// Objects that are named one by one.
const NAMED: usize = 5;

#[derive(Args, Debug)]
pub(super) struct Agents {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List agents
    List {
        /// Only these labels
        #[arg(long = "selector", short = 'l')]
        labels: Option<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Enter an agent in the roster; `bowline join-token` lets it in
    Create {
        /// Its name
        name: String,
        /// Who writes its objects: managed (the hub) or autonomous (the agent)
        #[arg(long, default_value_t)]
        mode: Mode,
        /// Marks to select by; may be given several times
        #[arg(long = "label", value_name = "KEY=VALUE", value_parser = super::pair)]
        labels: Vec<(String, String)>,
        /// Whose word counts for a part of its objects, whatever its mode: hub or agent; may be repeated
        #[arg(long = "rule", value_name = "OWNER=[NAMESPACE/]KIND", value_parser = rule)]
        rules: Vec<Rule>,
        /// A part of key/value that it may copy and write, instead of all; may be repeated
        #[arg(long = "kv-prefix", value_name = "PREFIX")]
        kv_prefixes: Vec<String>,
    },
    /// Change who writes an agent's objects; the present mode calls a change off
    Mode {
        /// The agent
        name: String,
        /// managed or autonomous
        mode: Mode,
    },
    /// Change an agent's labels, keys or rules, at once
    Set(Set),
    /// Take an agent, its shelves and its certificates out of the fleet
    Remove {
        /// The agent
        name: String,
    },
}

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("what").required(true).multiple(true))]
struct Set {
    /// The agent
    name: String,
    /// A mark to select by, or KEY- to take one off; may be given several times
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label, group = "what")]
    labels: Vec<(String, Option<String>)>,
    /// A part of key/value that it may copy and write, and from now on no others; may be repeated
    #[arg(long = "kv-prefix", value_name = "PREFIX", group = "what")]
    kv_prefixes: Vec<String>,
    /// It may copy and write all of key/value
    #[arg(long, conflicts_with = "kv_prefixes", group = "what")]
    every_key: bool,
    /// Whose word counts for a part of its objects, instead of the rules so far; may be repeated
    #[arg(long = "rule", value_name = "OWNER=[NAMESPACE/]KIND", value_parser = rule, group = "what")]
    rules: Vec<Rule>,
    /// Its mode says whose word counts for all of its objects
    #[arg(long, conflicts_with = "rules", group = "what")]
    no_rules: bool,
}

impl Set {
    fn patch(&self) -> Value {
        let mut patch = json!({});
        for (key, value) in &self.labels {
            patch["labels"][key] = json!(value);
        }
        if self.every_key || !self.kv_prefixes.is_empty() {
            patch["kvPrefixes"] = json!(self.kv_prefixes);
        }
        if self.no_rules || !self.rules.is_empty() {
            patch["rules"] = json!(self.rules);
        }
        patch
    }
}

impl Agents {
    pub(super) async fn run(&self, connection: &Connection) -> Outcome {
        let client = connection.client()?;
        match &self.verb {
            Verb::List { labels, output } => {
                let items = all(&client, labels.as_deref()).await?;
                let wide = output.output.is_wide();
                print::list(&items, output.output, || print::agents(&items, wide, print::now()))
            }
            Verb::Create { name, mode, labels, rules, kv_prefixes } => {
                let create = AgentCreate {
                    name: name.clone(),
                    mode: *mode,
                    rules: rules.clone(),
                    labels: labels.iter().cloned().collect(),
                    kv_prefixes: kv_prefixes.clone(),
                };
                let view = client.create_agent(&create).await?;
                print::out(&format!("agent {} created, {}\n", view.name, view.mode))?;
                print::note(&format!("hint: let it in with `bowline join-token {name}`\n"));
                Ok(())
            }
            Verb::Mode { name, mode } => {
                let view =
                    client.change_mode(name, &ModeChange { mode: *mode, rules: None }).await?;
                let text = match view.changing {
                    Some(to) => format!("agent {name} is changing from {} to {to}\n", view.mode),
                    None => format!("agent {name} is {}\n", view.mode),
                };
                print::out(&text)
            }
            Verb::Set(set) => {
                let view = client.patch_agent(&set.name, &set.patch()).await?;
                print::out(&format!("agent {} set\n", view.name))
            }
            Verb::Remove { name } => {
                let query = ObjectQuery { agent: Some(name.clone()), ..ObjectQuery::default() };
                // Asked before, since nobody knows of them afterwards.
                let objects = client.all_objects(&query).await;
                client.remove_agent(name).await?;
                print::out(&format!("agent {name} removed\n"))?;
                print::note(&left(name, &objects.unwrap_or_default()));
                Ok(())
            }
        }
    }
}

/// What stays of an agent that is removed, and what to do about it.
fn left(agent: &str, objects: &[ObjectView]) -> String {
    let names = |chosen: &[&ObjectView]| {
        let named: Vec<_> = chosen.iter().take(NAMED).map(|o| o.key.to_string()).collect();
        let more = if chosen.len() > NAMED { ", ..." } else { "" };
        format!("{}{more}", named.join(", "))
    };
    let all: Vec<_> = objects.iter().collect();
    if all.is_empty() {
        return String::new();
    }
    let mut out = format!(
        "note: what is on the cluster of {agent} stays as it is, {} objects: {}\n\
         hint: delete there what is to go, and end the agent's process\n",
        all.len(),
        names(&all),
    );
    let bound: Vec<_> = all
        .into_iter()
        .filter(|o| !o.object.metadata.finalizers.is_empty() || o.deleting)
        .collect();
    if !bound.is_empty() {
        out.push_str(&format!(
            "note: {} of them have finalizers, which nobody takes off any more: {}\n\
             hint: on a control plane a deletion of those waits for ever; remove their finalizers there \
             (`kubectl patch ... -p '{{\"metadata\":{{\"finalizers\":null}}}}' --type=merge`)\n",
            bound.len(),
            names(&bound),
        ));
    }
    out
}

/// `env=prod`, or `env-` to take it off.
fn label(text: &str) -> Result<(String, Option<String>), String> {
    match text.strip_suffix('-').filter(|key| !key.contains('=')) {
        Some(key) => Ok((key.to_owned(), None)),
        None => super::pair(text).map(|(key, value)| (key, Some(value))),
    }
}

/// `agent=AppProject`, `hub=team-a/*`: a kind, in one namespace or in all, or all kinds of one.
fn rule(text: &str) -> Result<Rule, String> {
    let wrong = || format!("{text:?} is no rule: write agent=AppProject or hub=team-a/*");
    let (owner, what) = text.split_once('=').ok_or_else(wrong)?;
    let owner = match owner {
        "hub" => Owner::Hub,
        "agent" => Owner::Agent,
        _ => return Err(wrong()),
    };
    let (namespace, kind) = match what.split_once('/') {
        Some((namespace, kind)) => (Some(namespace), kind),
        None => (None, what),
    };
    if kind.is_empty() || namespace.is_some_and(str::is_empty) {
        return Err(wrong());
    }
    let any = |part: Option<&str>| part.filter(|p| *p != "*").map(str::to_owned);
    Ok(Rule { namespace: any(namespace), kind: any(Some(kind)), owner })
}

/// Every agent that matches, page by page.
pub(super) async fn all(client: &Client, labels: Option<&str>) -> Outcome<Vec<AgentView>> {
    let (mut items, mut from) = (vec![], None);
    loop {
        let page = client.agents(labels, &super::get::page(from)).await?;
        items.extend(page.items);
        from = page.next;
        if from.is_none() {
            return Ok(items);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_removes_an_agent_hears_what_stays() {
        assert_eq!(left("a1", &[]), "");
        let object = |name: &str, finalizers: &[&str]| -> ObjectView {
            let json = serde_json::json!({
                "agent": "a1", "rev": 1, "owner": "hub",
                "key": format!("argoproj.io/Application/a1/{name}"),
                "object": {
                    "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
                    "metadata": {"name": name, "namespace": "a1", "finalizers": finalizers},
                },
            });
            serde_json::from_value(json).unwrap()
        };
        let told = left("a1", &[object("plain", &[])]);
        assert!(told.contains("1 objects: argoproj.io/Application/a1/plain"), "{told}");
        assert!(!told.contains("finalizers"), "{told}");
        let many: Vec<_> = (0..7).map(|n| object(&format!("w{n}"), &["a.b/c"])).collect();
        let told = left("a1", &many);
        assert!(told.contains("7 of them have finalizers") && told.contains("w4, ..."), "{told}");
        assert!(told.contains("kubectl patch"), "{told}");
    }

    #[test]
    fn a_label_is_set_or_taken_off() {
        let read = |text: &str| label(text).unwrap();
        assert_eq!(read("env=prod"), ("env".into(), Some("prod".into())));
        assert_eq!(read("env-"), ("env".into(), None));
        assert_eq!(read("env=a-"), ("env".into(), Some("a-".into())));
        assert!(label("env").is_err());
    }

    #[test]
    fn a_rule_names_a_kind_a_namespace_or_both() {
        let read = |text: &str| {
            let Rule { namespace, kind, owner } = rule(text).unwrap();
            (namespace.unwrap_or_default(), kind.unwrap_or_default(), owner)
        };
        let of = |namespace: &str, kind: &str, owner| (namespace.into(), kind.into(), owner);
        assert_eq!(read("agent=AppProject"), of("", "AppProject", Owner::Agent));
        assert_eq!(read("hub=team-a/*"), of("team-a", "", Owner::Hub));
        assert_eq!(read("hub=a/Secret"), of("a", "Secret", Owner::Hub));
        for wrong in ["AppProject", "me=AppProject", "hub=", "agent=/X"] {
            assert!(rule(wrong).is_err(), "{wrong}");
        }
    }
}
