//! The command line itself.

use clap::CommandFactory as _;

use super::*;

#[test]
fn the_command_line_makes_sense() {
    Cli::command().debug_assert();
}

#[test]
fn an_agent_may_be_named_without_swallowing_the_command() {
    let cli = Cli::try_parse_from(["bowline", "--at-agent", "get", "objects"]).unwrap();
    assert!(cli.connection.is_at_agent());
    let cli = Cli::try_parse_from(["bowline", "get", "objects", "--at-agent=alpha"]).unwrap();
    assert_eq!(cli.connection.at_agent.as_deref(), Some("alpha"));
}

#[test]
fn usage_errors_are_told_apart() {
    for bad in [
        vec!["bowline", "kv", "put"],
        vec!["bowline", "get"],
        vec!["bowline", "agents", "mode", "alpha", "sleepy"],
        vec!["bowline", "join-token"],
        vec!["bowline", "sync", "a", "-o", "xml"],
    ] {
        assert_eq!(Cli::try_parse_from(bad).unwrap_err().exit_code(), 2);
    }
}

#[test]
fn labels_are_pairs() {
    assert_eq!(pair("a=b=c").unwrap(), ("a".to_owned(), "b=c".to_owned()));
    assert!(pair("a").is_err());
}
