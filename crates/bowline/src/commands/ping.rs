//! `bowline ping`.

use bowline_client::api::PingRequest;
use clap::Args;

use super::Output;
use crate::connect::Connection;
use crate::failure::Outcome;
use crate::print;
use crate::quantity::Size;

#[derive(Args, Debug)]
pub(super) struct Ping {
    /// The agent
    agent: String,
    /// How many bytes each way
    #[arg(long, default_value = "64")]
    bytes: Size,
    /// How often
    #[arg(long, short = 'c', default_value_t = 1)]
    count: u32,
    #[command(flatten)]
    output: Output,
}

impl Ping {
    pub(super) async fn run(&self, connection: &Connection) -> Outcome {
        let request = PingRequest { bytes: self.bytes.0, count: self.count };
        let report = connection.client()?.ping(&self.agent, &request).await?;
        if !self.output.output.is_table() {
            return print::value(&report, self.output.output);
        }
        for micros in &report.micros {
            let millis = format!("{}.{:03}", micros / 1000, micros % 1000);
            print::out(&format!("{}: {} there and back in {millis} ms\n", self.agent, self.bytes))?;
        }
        Ok(())
    }
}
