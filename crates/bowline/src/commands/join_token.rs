//! `bowline join-token`.

use bowline_client::api::JoinTokenCreate;
use bowline_resources::Mode;
use clap::Args;

use super::Output;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};
use crate::print;
use crate::quantity::Span;

#[derive(Args, Debug)]
pub(super) struct JoinToken {
    /// The agent that may join with it
    #[arg(required_unless_present_any = ["list", "revoke"])]
    agent: Option<String>,
    /// How long it may be used
    #[arg(long, default_value = "1h")]
    ttl: Span,
    /// The agent's mode, if it is not in the roster yet
    #[arg(long, default_value_t)]
    mode: Mode,
    /// The agent's labels, if it is not in the roster yet
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = super::pair)]
    labels: Vec<(String, String)>,
    /// List those that can still be used
    #[arg(long, conflicts_with = "agent")]
    list: bool,
    /// Take one back
    #[arg(long, value_name = "ID", conflicts_with_all = ["agent", "list"])]
    revoke: Option<String>,
    #[command(flatten)]
    output: Output,
}

impl JoinToken {
    pub(super) async fn run(&self, connection: &Connection) -> Outcome {
        let (client, format) = (connection.client()?, self.output.output);
        if self.list {
            let items = client.join_tokens().await?.items;
            return print::list(&items, format, || print::join_tokens(&items, print::now()));
        }
        if let Some(id) = &self.revoke {
            client.revoke_join_token(id).await?;
            return print::out(&format!("join token {id} revoked\n"));
        }
        let agent = self.agent.clone().ok_or_else(|| Failure::usage("no agent is named"))?;
        let labels = self.labels.iter().cloned().collect();
        let ttl_seconds = self.ttl.0.as_secs();
        let create = JoinTokenCreate { agent, mode: self.mode, labels, ttl_seconds };
        let made = client.create_join_token(&create).await?;
        if !format.is_table() {
            return print::value(&made, format);
        }
        print::note(&format!("for agent {}, once, until {}\n", made.view.agent, made.view.expires));
        print::out(&format!("{}\n", made.token))
    }
}
