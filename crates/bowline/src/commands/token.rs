//! `bowline token`.

use bowline_client::api::{Role, TokenCreate};
use clap::{Args, Subcommand};

use super::Output;
use crate::connect::Connection;
use crate::failure::Outcome;
use crate::print;
use crate::quantity::Span;

#[derive(Args, Debug)]
pub(super) struct Token {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Make a token; it is shown this once
    Create {
        /// Who it is for; this is who the audit names
        name: String,
        /// viewer, operator or admin
        #[arg(long, default_value_t)]
        role: Role,
        /// Only for this agent; may be given several times
        #[arg(long = "agent", short = 'a')]
        agents: Vec<String>,
        /// Only for this namespace; may be given several times
        #[arg(long = "namespace", short = 'n')]
        namespaces: Vec<String>,
        /// How long it may be used; else until it is revoked
        #[arg(long)]
        ttl: Option<Span>,
        #[command(flatten)]
        output: Output,
    },
    /// List tokens
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Take a token back
    Revoke {
        /// Its id
        id: String,
    },
}

impl Token {
    pub(super) async fn run(&self, connection: &Connection) -> Outcome {
        let client = connection.client()?;
        match &self.verb {
            Verb::Create { name, role, agents, namespaces, ttl, output } => {
                let create = TokenCreate {
                    name: name.clone(),
                    role: *role,
                    agents: agents.clone(),
                    namespaces: namespaces.clone(),
                    ttl_seconds: ttl.map(|t| t.0.as_secs()),
                };
                let made = client.create_token(&create).await?;
                if !output.output.is_table() {
                    return print::value(&made, output.output);
                }
                print::note(&format!(
                    "{} for {}, id {}\n",
                    made.view.role, made.view.name, made.view.id
                ));
                print::out(&format!("{}\n", made.token))
            }
            Verb::List { output } => {
                let items = client.tokens().await?.items;
                print::list(&items, output.output, || print::tokens(&items, print::now()))
            }
            Verb::Revoke { id } => {
                client.revoke_token(id).await?;
                print::out(&format!("token {id} revoked\n"))
            }
        }
    }
}
