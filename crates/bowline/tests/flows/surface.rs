//! What the API can do can be done from the command line.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::stage::{Stage, Stop, manifest};

#[test]
fn a_ca_is_rotated_step_by_step_from_the_command_line() {
    let stage = Stage::new("auto");
    let signs = |out: &str| -> Vec<bool> {
        let rows = out.lines().filter(|l| l.starts_with("bowline "));
        rows.map(|l| l.contains("   yes   ")).collect()
    };
    assert_eq!(signs(&stage.ok(&["pki", "rotate"])), [true, false]);
    assert_eq!(signs(&stage.ok(&["pki", "abandon"])), [true]);
    let early = stage.run(&["pki", "promote"]);
    let told = String::from_utf8_lossy(&early.stderr).into_owned();
    assert_eq!(early.status.code(), Some(4), "{told}");
    assert!(told.contains("BL-0138"), "{told}");
    stage.ok(&["pki", "rotate"]);
    let promoted = signs(&stage.ok(&["pki", "promote"]));
    assert_eq!(promoted.iter().filter(|s| **s).count(), 1, "{promoted:?}");
    assert_eq!(promoted.len(), 2);
    assert_eq!(signs(&stage.ok(&["pki", "retire"])), [true]);
}

#[test]
fn a_secret_is_hidden_from_viewers_and_sealed_on_disk() {
    let mut stage = Stage::new("auto");
    stage.ok(&["kv", "put", "db/password", "correct-horse-battery", "--secret"]);
    stage.ok(&["kv", "put", "db/name", "plain-as-day"]);
    let token = stage.ok(&["token", "create", "ann", "--role", "viewer"]);
    let token = token.trim();
    let seen = stage.run(&["kv", "get", "db/password", "--token", token]);
    let told = String::from_utf8_lossy(&seen.stderr).into_owned();
    assert!(!seen.status.success() && seen.stdout.is_empty(), "{told}");
    assert!(told.contains("is a secret"), "{told}");
    assert!(stage.ok(&["kv", "list", "--token", token]).contains("(redacted)"));
    assert_eq!(stage.ok(&["kv", "get", "db/name", "--token", token]), "plain-as-day");
    assert_eq!(stage.ok(&["kv", "get", "db/password"]), "correct-horse-battery");
    stage.drain_hub();
    let file = std::fs::read(stage.path("hub").join("store/bowline.db")).unwrap();
    let holds = |text: &str| file.windows(text.len()).any(|w| w == text.as_bytes());
    assert!(holds("plain-as-day") && !holds("correct-horse-battery"));
}

#[test]
fn an_agent_may_be_narrowed_to_some_keys() {
    let stage = Stage::new("auto");
    let bad = stage.run(&["agents", "create", "a1", "--kv-prefix", "/site"]);
    assert!(!bad.status.success());
    stage.ok(&["agents", "create", "a1", "--kv-prefix", "site/a/", "--kv-prefix", "common/"]);
    let shown = stage.ok(&["describe", "agent/a1"]);
    assert!(shown.contains("site/a/") && shown.contains("common/"), "{shown}");
    let a1 = stage.join("a1", "managed");
    a1.ok(&["kv", "put", "site/a/x", "1"]);
    let shown = stage.ok(&["describe", "agent/a1"]);
    for field in ["Mode:", "Version:", "Lag:", "Last contact:", "Certificate:", ", until "] {
        assert!(shown.contains(field), "{field} is missing: {shown}");
    }
    let refused = a1.run(&["kv", "put", "site/b/x", "1"]);
    assert!(!refused.status.success(), "another site's key");
    let audit = stage.ok(&["get", "audit", "-o", "json"]);
    assert!(audit.contains("site/a/x") && audit.contains("site/b/x"), "{audit}");
}

#[test]
fn an_agent_that_is_narrowed_while_it_is_connected_gives_keys_back() {
    let stage = Stage::new("auto");
    let a1 = stage.join("a1", "managed");
    for key in ["site/a/x", "site/b/x"] {
        stage.ok(&["kv", "put", key, "1"]);
        stage.until("it has the key", || a1.run(&["kv", "get", key]).status.success());
    }
    let held = || a1.ok(&["kv", "list", "-o", "json"]);
    stage.ok(&["agents", "set", "a1", "--kv-prefix", "site/a/", "--label", "env=prod"]);
    stage.until("it holds no more than it may", || !held().contains("site/b/x"));
    assert!(held().contains("site/a/x"));
    assert!(!a1.run(&["kv", "put", "site/b/x", "2"]).status.success(), "another site's key");
    assert_eq!(stage.ok(&["kv", "get", "site/b/x"]), "1");
    let prod = || stage.ok(&["agents", "list", "-l", "env=prod", "-o", "json"]);
    assert!(prod().contains("\"a1\""));
    stage.ok(&["agents", "set", "a1", "--every-key", "--label", "env-"]);
    stage.until("it has all again", || held().contains("site/b/x"));
    assert!(!prod().contains("\"a1\""));
    for wrong in [&["agents", "set", "a1"][..], &["agents", "set", "a1", "--label", "env"]] {
        assert_eq!(stage.run(wrong).status.code(), Some(2), "{wrong:?}");
    }
    let audit = stage.ok(&["get", "audit", "-o", "json"]);
    assert_eq!(audit.matches("agent.set").count(), 2, "{audit}");
}

#[test]
fn a_dry_run_fails_where_the_write_would() {
    let stage = Stage::new("auto");
    stage.ok(&["agents", "create", "a1", "--mode", "autonomous"]);
    let file = stage.write("web", "v1");
    for (agent, told) in [("a2", "BL-0121"), ("a1", "BL-0134")] {
        let out = stage.run(&["apply", "--dry-run", "--agent", agent, "-f", &file]);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(!out.status.success() && said.contains(told), "{said}");
        assert!(out.stdout.is_empty());
    }
}

#[test]
fn a_mass_absence_is_held_until_a_person_approves_it() {
    let mut stage = Stage::new("auto");
    let m1 = stage.join("m1", "managed");
    stage.apply("m1", "kept", "v1");
    stage.healthy("m1", "kept", "v1");
    stage.drain_hub();
    stage.copy_hub("hub", "backup");
    stage.start_hub();
    for n in 0..4 {
        stage.apply("m1", &format!("extra{n}"), "v1");
    }
    for n in 0..4 {
        stage.healthy("m1", &format!("extra{n}"), "v1");
    }
    let early = stage.run(&["shelf", "approve", "hub/desired@m1"]);
    assert!(!early.status.success(), "nothing is held yet");
    stage.kill_hub();
    stage.copy_hub("backup", "hub");
    stage.start_hub();
    stage.until("the shelf stops", || stage.ok(&["shelf", "list"]).contains("stopped"));
    stage.ok(&["shelf", "discard", "hub/desired@m1"]);
    let held = |count: u64| {
        let agents = stage.ok(&["agents", "list", "-o", "json"]);
        let agents: serde_json::Value = serde_json::from_str(&agents).unwrap();
        agents["items"][0]["objects"]["held"] == count
    };
    stage.until("four objects are held", || held(4));
    let doctor = stage.run(&["doctor"]);
    let told = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(told.contains("bowline shelf approve hub/desired@m1"), "{told}");
    let asked = m1.ok(&["shelf", "list", "-o", "wide"]);
    assert!(asked.contains("approve lets them go"), "{asked}");
    let live = || m1.curl("/agent/live");
    assert!(live().contains("extra3"));
    let out = stage.ok(&["shelf", "approve", "hub/desired@m1"]);
    assert!(out.starts_with("4 objects"), "{out}");
    stage.until("none is held", || held(0));
    stage.until("they are gone", || !live().contains("extra"));
    assert!(live().contains("kept"));
    let audit = stage.ok(&["get", "audit", "-o", "json"]);
    assert!(audit.contains("shelf.approve"), "{audit}");
}

#[test]
fn a_hub_that_has_forgotten_stops_until_a_person_accepts_the_loss() {
    let mut stage = Stage::new("auto");
    for n in 0..20 {
        stage.ok(&["kv", "put", &format!("k{n}"), "v"]);
    }
    stage.kill_hub();
    let log = stage.path("hub").join("store/bowline.db-wal");
    let mut bytes = std::fs::read(&log).unwrap();
    bytes[40] ^= 0xff;
    std::fs::write(&log, &bytes).unwrap();
    let told = stage.hub_refuses();
    assert!(told.contains("BL-0206") && told.contains("hint:"), "{told}");
    assert_eq!(std::fs::read(&log).unwrap(), bytes, "it is left as it is");
    stage.start_hub_with(&["--accept-loss"]);
    assert!(!stage.ok(&["kv", "list", "-o", "json"]).contains("k19"));
    stage.drain_hub();
    std::fs::remove_dir_all(stage.path("hub").join("store")).unwrap();
    let told = stage.hub_refuses();
    assert!(told.contains("BL-0207") && told.contains("bowline restore"), "{told}");
}

#[test]
fn a_restored_store_says_that_it_lacks_the_key_of_its_secrets() {
    let stage = Stage::new("auto");
    stage.ok(&["kv", "put", "password", "hunter2", "--secret"]);
    let path = |name: &str| stage.path(name).to_str().unwrap().to_owned();
    stage.ok(&["backup", &path("file")]);
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(path("file")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "only its owner may read a backup");
    let (to, key) = (path("to"), path("hub/store/seal.key"));
    let restored = stage.run(&["restore", &path("file"), "--to", &to]);
    let told = String::from_utf8_lossy(&restored.stderr).into_owned();
    assert!(restored.status.success() && told.contains("seal.key"), "{told}");
    let again = stage.run(&["restore", &path("file"), "--to", &path("to2"), "--seal-key", &key]);
    let told = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(again.status.success() && !told.contains("seal.key"), "{told}");
    std::fs::write(path("wrong"), format!("{}\n", "0".repeat(64))).unwrap();
    let wrong =
        stage.run(&["restore", &path("file"), "--to", &path("to3"), "--seal-key", &path("wrong")]);
    assert!(!wrong.status.success(), "another key");
}

#[test]
fn the_audit_and_keys_are_watched_and_what_cannot_be_says_so() {
    let stage = Stage::new("auto");
    stage.ok(&["kv", "put", "site/a", "1"]);
    stage.watch(&["get", "audit", "-w"], |line| {
        if line.contains("site/a ") {
            stage.ok(&["kv", "put", "site/b", "1"]);
        }
        line.contains("site/b ")
    });
    stage.watch(&["get", "kv", "site/", "-w"], |line| {
        if line.starts_with("site/b ") {
            stage.ok(&["kv", "put", "site/c", "1"]);
        }
        line.starts_with("site/c ")
    });
    stage.watch(&["get", "agents", "-w"], |line| {
        if line.starts_with("NAME ") {
            stage.ok(&["agents", "create", "late"]);
        }
        line.starts_with("late ") && line.contains("managed")
    });
    let refused = stage.run(&["get", "tokens", "-w"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn a_viewer_sees_the_events_that_it_may_see() {
    let stage = Stage::new("auto");
    let token = stage.ok(&["token", "create", "ann", "--role", "viewer"]);
    // When the stream begins is not told: keys are written until one shows.
    let seen = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = Stop(&seen);
        scope.spawn(|| {
            while !seen.load(Ordering::SeqCst) {
                stage.ok(&["kv", "put", "greeting", "hello"]);
            }
        });
        stage.watch(&["get", "events", "--token", token.trim()], |line| {
            assert!(!line.contains("audit"), "{line}");
            line.contains("kv put greeting")
        });
    });
}

#[test]
fn an_agent_is_found_by_its_folder() {
    let stage = Stage::new("auto");
    stage.ok(&["kv", "put", "greeting", "hello"]);
    let a1 = stage.join("a1", "managed");
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
        command.arg("--data").arg(stage.path("a1")).args(args).output().unwrap()
    };
    stage.until("the key is there", || {
        run(&["--at-agent", "kv", "get", "greeting"]).stdout == b"hello"
    });
    let mut usage = Command::new(env!("CARGO_BIN_EXE_bowline"));
    let usage = usage.env("BOWLINE_DATA", stage.path("a1")).args(["kv", "put"]).output().unwrap();
    let told = String::from_utf8_lossy(&usage.stderr).into_owned();
    assert!(told.contains("<KEY> <VALUE>") && !told.contains("--data"), "{told}");
    let hubless = run(&["kv", "list"]);
    let told = String::from_utf8_lossy(&hubless.stderr).into_owned();
    assert!(told.contains("--at-agent"), "{told}");
    drop(a1);
}

#[test]
fn logs_are_json_line_by_line_where_that_is_wished() {
    let mut stage = Stage::new("auto");
    stage.drain_hub();
    std::fs::remove_file(stage.path("hub.log")).unwrap();
    stage.start_hub_with(&["--log-format", "json", "--log-level", "warn,bowline_drive=info"]);
    let _a1 = stage.join("a1", "managed");
    stage.drain_hub();
    let log = std::fs::read_to_string(stage.path("hub.log")).unwrap();
    let lines: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!lines.is_empty());
    for line in &lines {
        for key in ["timestamp", "level", "target"] {
            assert!(line[key].is_string(), "{key} is missing: {line}");
        }
        assert!(line["fields"]["message"].is_string(), "{line}");
        let of_links = line["target"].as_str().unwrap().starts_with("bowline_drive");
        let grave = ["WARN", "ERROR"].contains(&line["level"].as_str().unwrap());
        assert!(of_links || grave, "the filter lets it through: {line}");
    }
    let up = |line: &serde_json::Value| {
        line["fields"]["message"] == "link up" && line["fields"]["peer"] == "a1"
    };
    assert!(lines.iter().any(up), "it is not told that the agent came: {log}");
}

#[test]
fn the_mode_of_an_agent_that_never_came_changes_at_once() {
    let stage = Stage::new("auto");
    stage.ok(&["agents", "create", "a1", "--mode", "autonomous"]);
    for mode in ["managed", "autonomous", "managed"] {
        stage.ok(&["agents", "mode", "a1", mode]);
        stage.until("its mode has changed", || {
            let agents = stage.ok(&["agents", "list", "-o", "json"]);
            let agents: serde_json::Value = serde_json::from_str(&agents).unwrap();
            let a1 = &agents["items"][0];
            a1["mode"] == mode && a1["changing"].is_null()
        });
    }
}

#[test]
fn settings_of_a_cluster_that_is_not_reached_are_refused_and_no_cluster_is_told() {
    let stage = Stage::new("auto");
    let file = stage.path("agent.yaml");
    std::fs::write(&file, "kubernetes: {namespaces: [web]}\n").unwrap();
    let refused = stage.run(&["agent", "--config", file.to_str().unwrap(), "--check-config"]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && told.contains("kubernetes.reach"), "{told}");
    let _a1 = stage.join("a1", "managed");
    let said = std::fs::read_to_string(stage.path("a1.log")).unwrap();
    assert!(said.contains("objects live inside this agent"), "{said}");
}

#[test]
fn objects_are_compared_selected_and_shown_in_every_form() {
    let stage = Stage::new("auto");
    stage.ok(&["agents", "create", "a1"]);
    let file = |name: &str, tier: &str, image: &str| {
        let path = stage.path(&format!("{name}-{image}.yaml"));
        let labels = format!("name: {name}\n  labels: {{tier: {tier}}}");
        let text = manifest(name, image).replace(&format!("name: {name}"), &labels);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (old, new) = (file("web", "front", "v1"), file("web", "front", "v2"));
    let dry = |file: &str| stage.ok(&["apply", "--dry-run", "--agent", "a1", "-f", file]);
    let audited = || stage.ok(&["get", "audit", "-o", "json"]).matches("\"object.").count();
    let lines = |text: &str, of: &str| text.lines().any(|line| line == of);

    let told = dry(&old);
    assert!(told.contains("would be created") && lines(&told, "+  image: v1"), "{told}");
    assert_eq!((stage.objects("a1").len(), audited()), (0, 0), "nothing was written");
    stage.ok(&["apply", "--agent", "a1", "-f", &old]);
    let told = dry(&new);
    assert!(told.contains("would be configured"), "{told}");
    assert!(lines(&told, "-  image: v1") && lines(&told, "+  image: v2"), "{told}");
    assert!(dry(&old).ends_with("unchanged\n"));
    let yaml = stage.ok(&["get", "objects", "-o", "yaml"]);
    assert!(yaml.contains("image: v1") && !yaml.contains("image: v2"), "{yaml}");
    assert_eq!(audited(), 1, "one write, and it was no dry run");

    stage.ok(&["apply", "--agent", "a1", "-f", &file("db", "back", "v1")]);
    let names = |args: &[&str]| {
        let out = stage.ok(&[&["get", "objects"], args].concat());
        let rows = out.lines().skip(1).map(|row| row.split_whitespace().nth(3).unwrap().to_owned());
        rows.collect::<Vec<_>>()
    };
    assert_eq!(names(&[]), ["db", "web"]);
    assert_eq!(names(&["-l", "tier=front"]), ["web"]);
    assert_eq!(names(&["-l", "tier!=front"]), ["db"]);
    assert_eq!(names(&["--field-selector", "metadata.name=db"]), ["db"]);
    assert_eq!(names(&["--field-selector", "status.health=Healthy"]), [""; 0]);
    let plain = stage.ok(&["get", "objects"]);
    let wide = stage.ok(&["get", "objects", "-o", "wide"]);
    for column in ["OWNER", "REV", "OPERATION", "MESSAGE"] {
        let (head, short) = (wide.lines().next().unwrap(), plain.lines().next().unwrap());
        assert!(head.contains(column) && !short.contains(column), "{wide}{plain}");
    }
}

#[test]
fn a_shell_takes_the_completion() {
    let script = Command::new(env!("CARGO_BIN_EXE_bowline")).args(["completion", "bash"]).output();
    let script = String::from_utf8(script.unwrap().stdout).unwrap();
    assert!(script.contains("join-token"), "it knows the commands");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bowline.bash");
    std::fs::write(&file, script + "\ncomplete -p bowline\n").unwrap();
    let out = Command::new("bash").arg(&file).output().unwrap();
    let (told, wrong) =
        (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success() && told.contains("complete"), "{told}{wrong}");
}
