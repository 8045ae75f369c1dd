//! The command line itself.

use super::*;

#[test]
fn the_command_line_makes_sense() {
    Cli::definition().debug_assert();
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

fn help(command: &str) -> String {
    let args = ["bowline", command, "--help"].map(OsString::from);
    Cli::read(&args).unwrap_err().to_string()
}

#[test]
fn flags_about_a_server_show_only_where_they_mean_something() {
    assert!(help("get").contains("--server") && help("get").contains("--data"));
    assert!(!help("hub").contains("--at-agent") && help("hub").contains("--data"));
    for alone in ALONE {
        assert!(!help(alone).contains("--token"), "{alone}");
    }
    let args = ["bowline", "hub", "--data", "here"].map(OsString::from);
    let data = Cli::read(&args).unwrap().connection.data;
    assert_eq!(data.as_deref(), Some(std::path::Path::new("here")));
    assert!(Cli::read(&["bowline", "help"].map(OsString::from)).unwrap_err().exit_code() == 0);
}

#[test]
fn a_command_for_the_hub_is_not_sent_to_an_agent() {
    let run = |args: &[&str]| {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        Cli::read(&args).unwrap().run().unwrap_err()
    };
    for args in
        [&["bowline", "--at-agent", "pki", "show"], &["bowline", "--at-agent", "get", "audit"]]
    {
        let told = run(args);
        assert_eq!(told.hint.as_deref(), Some("leave out --at-agent"), "{}", told.message);
    }
}
