//! Settings of a role that runs, and what is no setting of it.

use std::path::Path;

use crate::stage::{Role, Stage};

/// A role that reads its settings from a file, which changes while it runs.
struct Changing<'a> {
    stage: &'a Stage,
    role: Role,
    file: &'a Path,
    log: &'a Path,
}

impl Changing<'_> {
    /// Whether its log has both words on one line.
    fn said(&self, level: &str, words: &str) -> bool {
        let log = std::fs::read_to_string(self.log).unwrap();
        log.lines().any(|line| line.contains(level) && line.contains(words))
    }

    fn says(&self, level: &str, words: &str) {
        self.stage.until(&format!("{level}: {words}"), || self.said(level, words));
    }

    fn becomes(&self, settings: &str) {
        std::fs::write(self.file, settings).unwrap();
        self.role.hang_up();
    }

    /// `waits` is a line of settings that is not taken before the next start, `name` what it sets.
    fn is_told_of_changes(&self, waits: &str, name: &str) {
        assert!(!self.said("INFO", ""), "it was to log warnings only");
        self.becomes(&format!("log: {{level: info}}\n{waits}"));
        self.says("INFO", "settings read again");
        self.says("WARN", "changed settings need a restart");
        self.says("WARN", name);
        self.says("INFO", "certificates read again");
        assert!(!self.said("WARN", "log.level"), "that one is taken");
        self.becomes("log: {level: 'info,bowline_hub=loud'}\n");
        self.says("ERROR", "settings kept as they were");
        self.says("ERROR", "log.level (from file)");
    }
}

#[test]
fn a_hub_takes_a_level_while_it_runs_and_names_what_needs_a_restart() {
    let stage = Stage::new("auto");
    let (file, log) = (stage.path("other.yaml"), stage.path("other.log"));
    std::fs::write(&file, "log: {level: warn}\n").unwrap();
    let (config, data) = (file.to_str().unwrap(), stage.path("other"));
    let mut args = vec!["hub", "--config", config, "--data", data.to_str().unwrap()];
    args.extend(["--listen=127.0.0.1:0", "--api=127.0.0.1:0", "--metrics=off", "--health=off"]);
    let role = Role::start_plain(&args, &log);
    let hub = Changing { stage: &stage, role, file: &file, log: &log };
    let name = "limits.requests-per-second";
    hub.is_told_of_changes("limits: {requests-per-second: 5}\n", name);
    hub.role.drain();
}

#[test]
fn an_agent_takes_a_level_while_it_runs_and_its_labels_from_the_roster() {
    let stage = Stage::new("auto");
    let (file, log) = (stage.path("a1.yaml"), stage.path("a1.log"));
    let token = stage.ok(&["join-token", "a1", "--mode=autonomous", "--label=site=north"]);
    std::fs::write(&file, "log: {level: warn}\n").unwrap();
    let (config, data) = (file.to_str().unwrap(), stage.path("a1"));
    let mut args = vec!["agent", "--config", config, "--data", data.to_str().unwrap()];
    let hub = format!("localhost:{}", stage.hub_port());
    args.extend(["--join", token.trim(), "--hub", &hub]);
    args.extend(["--api=127.0.0.1:0", "--metrics=off", "--health=off"]);
    let role = Role::start_plain(&args, &log);
    let api = role.ready.split_once("API on ").unwrap().1.trim().to_owned();
    let agent = Changing { stage: &stage, role, file: &file, log: &log };
    let doctor = stage.run(&[&format!("--at-agent={api}"), "doctor"]);
    let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(doctor.contains("mode autonomous (site=north)"), "{doctor}");
    agent.is_told_of_changes("absence-share: 20\n", "absence-share");
    agent.role.drain();
}
