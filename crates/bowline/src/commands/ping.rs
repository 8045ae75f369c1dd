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
            let bytes = bytes(self.bytes);
            print::out(&format!("{}: {bytes} there and back in {millis} ms\n", self.agent))?;
        }
        Ok(())
    }
}

/// A size with its unit, also where it is a bare number.
fn bytes(size: Size) -> String {
    if size.0.to_string() == size.to_string() { format!("{size} bytes") } else { size.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_its_unit() {
        assert_eq!((bytes(Size(64)), bytes(Size(2048))), ("64 bytes".into(), "2KiB".into()));
    }
}
