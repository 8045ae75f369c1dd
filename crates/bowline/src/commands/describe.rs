//! `bowline describe`: all that is known of one thing.

use std::fmt::Write as _;

use bowline_client::api::{AgentView, ObjectView, Time};
use clap::Args;

use super::Output;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};
use crate::print;
use crate::select::Which;

#[derive(Args, Debug)]
pub(super) struct Describe {
    #[command(flatten)]
    which: Which,
    /// With a kind before it: the name, as in `describe agent alpha`
    name: Option<String>,
    #[command(flatten)]
    output: Output,
}

impl Describe {
    pub(super) async fn run(&self, connection: &Connection) -> Outcome {
        let format = self.output.output;
        let mut which = self.which.clone();
        if let Some(name) = &self.name {
            which.object = format!("{}/{name}", which.object);
        }
        let agent = ["agent/", "agents/"].iter().find_map(|kind| which.object.strip_prefix(kind));
        if let Some(name) = agent {
            if connection.is_at_agent() {
                let message = "only the hub knows of agents, and --at-agent asks an agent";
                return Err(Failure::usage(message).hint("leave out --at-agent"));
            }
            let view = connection.client()?.agent(name).await?;
            return match format.is_table() {
                true => print::out(&agent_text(&view)),
                false => print::value(&view, format),
            };
        }
        let view = which.find(&connection.client()?, connection.is_at_agent()).await?;
        if !format.is_table() {
            return print::value(&view, format);
        }
        print::out(&text(&view))
    }
}

fn agent_text(view: &AgentView) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(out, "{:<14}{value}", format!("{name}:"));
    };
    let since = |at: Option<Time>| at.map_or(String::new(), |at| format!(" since {at}"));
    line("Agent", &view.name);
    line("Mode", view.mode.as_str());
    if let Some(to) = view.changing {
        let why = view.waiting.as_ref().map_or(String::new(), |w| format!(": {w}"));
        line("Changing", &format!("to {to}{why}"));
    }
    line(
        "Link",
        &match (view.revoked, view.connected, &view.certificate) {
            (revoked @ Some(_), ..) => format!("revoked{}", since(revoked)),
            (_, true, _) => format!("up{}", since(view.since)),
            (_, false, None) => "not joined".to_owned(),
            (_, false, Some(_)) => format!("down{}", since(view.since)),
        },
    );
    let mut known = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|v| !v.is_empty()) {
            line(name, &value);
        }
    };
    known("Transport", view.transport.clone());
    known("Last contact", view.last_contact.map(|at| at.to_string()));
    known("Last error", view.last_error.clone());
    known("Lag", view.lag.map(|lag| format!("{} revs down, {} revs up", lag.down, lag.up)));
    known("Version", view.version.clone());
    let of = &view.objects;
    let counts = [
        (of.synced, "synced"),
        (of.healthy, "healthy"),
        (of.degraded, "degraded"),
        (of.held, "held"),
    ];
    let counts: Vec<_> = counts.iter().map(|(n, what)| format!("{n} {what}")).collect();
    known("Objects", Some(format!("{}: {}", of.total, counts.join(", "))));
    let certificate = view.certificate.as_ref();
    known("Certificate", certificate.map(|c| format!("{}, until {}", c.serial, c.not_after)));
    let labels: Vec<_> = view.labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
    known("Labels", Some(labels.join(", ")));
    known("Keys", Some(view.kv_prefixes.join(", ")));
    let rules = (!view.rules.is_empty()).then(|| serde_json::to_string(&view.rules));
    known("Rules", rules.and_then(Result::ok));
    known("Created", Some(view.created.to_string()));
    known("Rev", Some(view.rev.to_string()));
    out
}

fn text(view: &ObjectView) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(out, "{:<12}{value}", format!("{name}:"));
    };
    line("Object", &view.key.to_string());
    line("Agent", &view.agent);
    line("Rev", &view.rev.to_string());
    line("Sync", view.sync().as_str());
    line("Health", view.health().as_str());
    if view.deleting {
        line("Deleting", "waits for the agent's word that it is gone");
    }
    if let Some(report) = &view.report {
        line("Message", &report.message);
        line("Since", &report.since.to_string());
        let of =
            if report.current { "this rev".to_owned() } else { format!("rev {}", report.of_rev) };
        line("Reported", &format!("{}, about {of}", report.reported));
        if let Some(o) = &report.operation {
            let ended = o.finished.map_or(String::new(), |at| format!(", ended {at}"));
            let message = match o.message.as_str() {
                "" => String::new(),
                text => format!(": {text}"),
            };
            let by = format!("by {}, began {}{ended}{message}", o.by, o.started);
            line("Operation", &format!("{} {} {by}", o.operation, o.phase));
        }
    }
    let _ = write!(out, "\n{}", bowline_resources::yaml(&view.object.to_value()));
    out
}
