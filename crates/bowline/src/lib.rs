//! The face of Bowline: commands, printers, contexts, and the configuration of the roles.

pub mod commands;
pub mod config;
pub mod connect;
pub mod context;
pub mod failure;
pub mod manifest;
pub mod print;
pub mod quantity;
mod select;
pub mod yaml;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

/// Runs one command line; the code is documented in `docs/cli.md`.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match commands::Cli::try_parse_from(args) {
        Ok(cli) => cli,
        // Help and version are no errors; clap knows where each goes.
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match cli.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
