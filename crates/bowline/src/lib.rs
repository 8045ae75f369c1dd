//! The face of Bowline: commands, printers, contexts, and the configuration of the roles.

pub mod commands;
pub mod config;
pub mod connect;
pub mod context;
pub mod dropin;
pub mod failure;
mod footprint;
mod hints;
pub mod manifest;
pub mod print;
pub mod quantity;
mod select;
pub mod yaml;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Runs one command line; the code is documented in `docs/cli.md`.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    match commands::run_named(&args) {
        Some(Ok(Ok(()))) => return ExitCode::SUCCESS,
        Some(Ok(Err(failure))) => return failure.report(),
        Some(Err(error)) => {
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
        None => {}
    }
    let cli = match commands::Cli::read(&args) {
        Ok(cli) => cli,
        // Help and version are no errors; clap knows where each goes.
        Err(error) => {
            let _ = error.print();
            if let Some(name) = swallowed(&args, &error) {
                print::note(&format!("\nhint: write --at-agent={name}\n"));
            }
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match cli.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// The agent that was named behind `--at-agent` with a space, where a command was expected.
fn swallowed(args: &[OsString], error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let named = args.windows(2).any(|two| two[0] == "--at-agent" && two[1] == name.as_str());
    (error.kind() == ErrorKind::InvalidSubcommand && named).then(|| name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_named_with_a_space_is_told_apart_from_a_command() {
        let told = |args: &[&str]| {
            let args: Vec<OsString> = args.iter().map(OsString::from).collect();
            swallowed(&args, &commands::Cli::read(&args).unwrap_err())
        };
        let agent = told(&["bowline", "--at-agent", "alpha", "kv", "list"]);
        assert_eq!(agent.as_deref(), Some("alpha"));
        assert_eq!(told(&["bowline", "alpha", "kv"]), None);
    }
}
