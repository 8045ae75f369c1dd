//! `bowline version`.

use clap::Args;

use super::Output;
use crate::failure::Outcome;
use crate::print;

#[derive(Args, Debug)]
pub(super) struct Version {
    #[command(flatten)]
    output: Output,
}

impl Version {
    pub(super) fn run(&self) -> Outcome {
        let version = env!("CARGO_PKG_VERSION");
        if self.output.output.is_table() {
            return print::out(&format!("bowline {version}\n"));
        }
        let api = bowline_client::api::VERSION;
        print::value(&serde_json::json!({ "version": version, "api": api }), self.output.output)
    }
}
