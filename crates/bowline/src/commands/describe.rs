//! `bowline describe`: all that is known of one thing.

use std::fmt::Write as _;

use bowline_client::api::ObjectView;
use clap::Args;

use super::Output;
use crate::connect::Connection;
use crate::failure::Outcome;
use crate::print;
use crate::select::Which;

#[derive(Args, Debug)]
pub(super) struct Describe {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    output: Output,
}

impl Describe {
    pub(super) async fn run(&self, connection: &Connection) -> Outcome {
        let (client, format) = (connection.client()?, self.output.output);
        if let Some(name) = self.which.object.strip_prefix("agent/") {
            let view = client.agent(name).await?;
            return print::value(
                &view,
                if format.is_table() { print::Format::Yaml } else { format },
            );
        }
        let view = self.which.find(&client, connection.is_at_agent()).await?;
        if !format.is_table() {
            return print::value(&view, format);
        }
        print::out(&text(&view))
    }
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
            let text = format!(
                "{} {} by {}, began {}{ended} {}",
                o.operation, o.phase, o.by, o.started, o.message
            );
            line("Operation", text.trim_end());
        }
    }
    let _ = write!(out, "\n{}", bowline_resources::yaml(&view.object.to_value()));
    out
}
