//! `bowline sync`, `refresh` and `terminate`.

use bowline_client::api::OperationCreate;
use bowline_resources::Operation;
use clap::Args;

use super::Output;
use crate::connect::Connection;
use crate::failure::Outcome;
use crate::print;
use crate::select::Which;

#[derive(Args, Debug)]
pub(super) struct Operate {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    output: Output,
}

impl Operate {
    pub(super) async fn run(&self, connection: &Connection, operation: Operation) -> Outcome {
        let client = connection.client()?;
        let view = self.which.find(&client, connection.is_at_agent()).await?;
        let asked = OperationCreate { operation, id: None };
        let state = client.operate(&view.agent, &view.key, &asked).await?;
        if !self.output.output.is_table() {
            return print::value(&state, self.output.output);
        }
        let (what, phase) = (state.operation.as_str().to_lowercase(), state.phase);
        print::out(&format!("{} {what} {phase} ({})\n", view.key, state.id))
    }
}
