//! `bowline revoke`.

use clap::Args;

use crate::connect::Connection;
use crate::failure::Outcome;
use crate::print;

#[derive(Args, Debug)]
pub(super) struct Revoke {
    /// The agent
    agent: String,
    /// Why, for the audit
    #[arg(long, default_value = "")]
    reason: String,
}

impl Revoke {
    pub(super) async fn run(&self, connection: &Connection) -> Outcome {
        let view = connection.client()?.revoke_agent(&self.agent, &self.reason).await?;
        print::out(&format!("agent {} revoked\n", view.name))?;
        print::note(&format!("hint: it can join anew with `bowline join-token {}`\n", view.name));
        Ok(())
    }
}
