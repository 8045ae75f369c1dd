//! What a person is told who asks for something in a way that cannot work.

use std::process::Command;

use crate::stage::{Role, Stage};

#[test]
fn what_cannot_work_is_told_with_what_to_do() {
    let stage = Stage::new("auto");
    stage.ok(&["agents", "create", "a1"]);
    stage.apply("a1", "web", "v1");
    let file = stage.write("lost", "v1");
    let told = |args: &[&str]| {
        let out = stage.run(args);
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let cases: &[(&[&str], i32, &[&str])] = &[
        (&["get", "apps"], 3, &["kind \"app\"", "hint: there are: Service"]),
        (&["get", "Service/nope"], 3, &["no object \"nope\""]),
        (&["get", "kv", "nope"], 3, &["no key begins with \"nope\""]),
        (&["kv", "get", "nope"], 3, &["BL-0123", "hint: see `bowline kv list"]),
        (&["kv", "put", "", "x"], 2, &["the key is empty"]),
        (&["kv", "put", "x", "@/no/such"], 1, &["reading /no/such"]),
        (&["shelf", "adopt", "kv"], 2, &["hint: write OWNER/NAME"]),
        (&["shelf", "adopt", "hub/nope"], 3, &["BL-0125", "hint: "]),
        (&["token", "revoke", "nope"], 3, &["BL-0124", "hint: "]),
        (&["agents", "create", "a1"], 4, &["BL-0132", "hint: "]),
        (&["delete", "-f", &file], 2, &["lost.yaml, document 1", "hint: give --agent"]),
        (&["--token", "nonsense", "kv", "list"], 1, &["BL-0102", "hint: "]),
        (&["--context", "nope", "kv", "list"], 3, &["hint: there are: hub"]),
        (&["--at-agent=127.0.0.1:1", "doctor"], 5, &["hint: is the agent running"]),
    ];
    for (args, code, words) in cases {
        let (ended, text) = told(args);
        assert_eq!(ended, Some(*code), "{args:?}: {text}");
        words.iter().for_each(|word| assert!(text.contains(word), "{args:?} lacks {word}: {text}"));
    }
    assert!(stage.ok(&["get", "Service/web"]).contains("web"));
    assert!(stage.ok(&["describe", "agent", "a1"]).starts_with("Agent:        a1\nMode:"));
    assert!(stage.ok(&["help"]).contains("Usage: bowline"));
}

#[test]
fn a_context_that_hides_another_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "contexts:\n- name: x\n  server: http://127.0.0.1:1\n").unwrap();
    };
    let run = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
        command.args(["kv", "list"]).current_dir(folder.path());
        command.env("XDG_CONFIG_HOME", folder.path().join("own"));
        for name in ["BOWLINE_DATA", "BOWLINE_CONFIG", "BOWLINE_SERVER", "BOWLINE_CONTEXT"] {
            command.env_remove(name);
        }
        String::from_utf8(command.output().unwrap().stderr).unwrap()
    };
    write("bowline-dev/config.yaml");
    assert!(!run().contains("note:"), "there is no other");
    write("own/bowline/config.yaml");
    assert!(run().contains("note: bowline-dev/config.yaml is used, not "), "{}", run());
}

#[test]
fn dev_ends_without_a_word_about_the_lines_that_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (data, log) = (folder.path().join("dev"), folder.path().join("log"));
    let ports = ["--listen", "127.0.0.1:0", "--api", "127.0.0.1:0"];
    let args: Vec<_> = ["dev", "--data", data.to_str().unwrap()].into_iter().chain(ports).collect();
    let dev = Role::start(&args, &log);
    let before = std::fs::read_to_string(&log).unwrap();
    dev.drain();
    assert_eq!(std::fs::read_to_string(&log).unwrap(), before);
}
