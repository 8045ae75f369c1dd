//! `bowline bench` against a hub in another process.

use serde_json::Value;

use crate::stage::Stage;

/// The last line, which is for programs.
fn last_line(out: &str) -> Value {
    serde_json::from_str(out.lines().last().unwrap()).unwrap()
}

#[test]
fn simulated_agents_are_measured_and_leave_nothing_behind() {
    let stage = Stage::new("auto");
    for scenario in ["idle", "updates", "round-trip", "reconnect", "writes"] {
        let args = ["bench", scenario, "--agents", "4", "--clients", "4", "--lasting", "300ms"];
        let out = stage.ok(&args);
        let told = last_line(&out);
        assert_eq!(told["name"], scenario);
        assert!(out.starts_with("FIGURE"), "{out}");
        let value = told["value"].as_f64().unwrap();
        assert!(value > 0.0, "{scenario}: {out}");
    }
    let idle = stage.ok(&["bench", "idle", "--agents", "4", "--lasting", "100ms", "-o", "json"]);
    assert_eq!(idle.lines().count(), 1, "{idle}");
    let idle: Value = serde_json::from_str(&idle).unwrap();
    assert_eq!(idle["figures"]["connected"], 4.0);
    let left = stage.ok(&["agents", "list", "-o", "json"]);
    assert!(!left.contains("bench-0"), "{left}");
    let keys = stage.ok(&["kv", "list", "bench/", "-o", "json"]);
    assert!(!keys.contains("bench/0"), "{keys}");
}

#[test]
fn a_real_agent_is_never_taken_for_a_simulated_one() {
    let stage = Stage::new("auto");
    stage.ok(&["agents", "create", "bench-00001"]);
    let refused = stage.run(&["bench", "idle", "--agents", "2", "--lasting", "100ms"]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{told}");
    assert!(told.contains("bench-00001 is a real agent"), "{told}");
    assert!(stage.ok(&["agents", "list"]).contains("bench-00001"));
}
