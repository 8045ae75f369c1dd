//! Every flow about state, over real processes and TLS: managed, autonomous, restarts of either
//! side, partitions, `kill -9` in the middle of traffic. Each over HTTP/2 and over WebSocket.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bench;
mod dev;
mod follow;
mod rotation;
mod settings;
#[allow(dead_code, reason = "shared with another suite, which uses the rest")]
mod stage;
mod surface;
mod words;
mod writer;

use std::sync::atomic::{AtomicBool, Ordering};

use stage::{Stage, Stop};
use writer::Writer;

/// One test for each transport.
macro_rules! over_both {
    ($($name:ident),* $(,)?) => {
        mod over_http2 {
            $(#[test] fn $name() { super::$name("http2"); })*
        }
        mod over_websocket {
            $(#[test] fn $name() { super::$name("websocket"); })*
        }
    };
}

over_both! {
    managed_flow,
    autonomous_flow,
    agent_restart,
    hub_restart_in_both_modes,
    network_partition,
    kill_9_of_either_side_amid_traffic,
}

fn managed_flow(transport: &'static str) {
    let stage = Stage::new(transport);
    let _a1 = stage.join("a1", "managed");
    stage.apply("a1", "web", "v1");
    stage.healthy("a1", "web", "v1");
    stage.apply("a1", "web", "v2");
    stage.healthy("a1", "web", "v2");
    let pinged = stage.ok(&["ping", "a1", "--bytes", "1MiB", "-c", "2"]);
    assert_eq!(pinged.matches("a1: 1MiB there and back in ").count(), 2, "{pinged}");
    stage.ok(&["sync", "Service/web", "--agent", "a1", "-n", "default"]);
    stage.ok(&["delete", "Service/web", "--agent", "a1", "-n", "default"]);
    stage.gone("a1", "web");
}

fn autonomous_flow(transport: &'static str) {
    let stage = Stage::new(transport);
    let a1 = stage.join("a1", "autonomous");
    a1.apply("web", "v1");
    stage.healthy("a1", "web", "v1");
    a1.apply("web", "v2");
    stage.healthy("a1", "web", "v2");
    // The hub shows it and may ask for operations, but does not write it.
    stage.ok(&["refresh", "Service/web", "--agent", "a1", "-n", "default"]);
    let refused = stage.run(&["delete", "Service/web", "--agent", "a1", "-n", "default"]);
    assert!(!refused.status.success(), "the hub may not delete what an autonomous agent owns");
    a1.ok(&["delete", "Service/web", "-n", "default"]);
    stage.gone("a1", "web");
}

fn agent_restart(transport: &'static str) {
    let stage = Stage::new(transport);
    let mut a1 = stage.join("a1", "managed");
    stage.apply("a1", "one", "v1");
    stage.healthy("a1", "one", "v1");
    a1.drain();
    stage.apply("a1", "one", "v2");
    stage.apply("a1", "two", "v1");
    a1.restart();
    stage.healthy("a1", "one", "v2");
    stage.healthy("a1", "two", "v1");
    a1.kill();
    stage.ok(&["delete", "Service/one", "--agent", "a1", "-n", "default"]);
    a1.restart();
    stage.gone("a1", "one");
    stage.healthy("a1", "two", "v1");
}

fn hub_restart_in_both_modes(transport: &'static str) {
    let mut stage = Stage::new(transport);
    let _managed = stage.join("m1", "managed");
    let autonomous = stage.join("u1", "autonomous");
    stage.apply("m1", "web", "v1");
    autonomous.apply("web", "v1");
    stage.healthy("m1", "web", "v1");
    stage.healthy("u1", "web", "v1");
    for clean in [true, false] {
        if clean {
            stage.drain_hub();
        } else {
            stage.kill_hub();
        }
        let image = if clean { "v2" } else { "v3" };
        autonomous.apply("web", image);
        stage.start_hub();
        stage.apply("m1", "web", image);
        stage.healthy("m1", "web", image);
        stage.healthy("u1", "web", image);
    }
}

fn network_partition(transport: &'static str) {
    let stage = Stage::new(transport);
    let m1 = stage.join("m1", "managed");
    let u1 = stage.join("u1", "autonomous");
    stage.apply("m1", "web", "v1");
    u1.apply("web", "v1");
    stage.ok(&["kv", "put", "region", "north"]);
    stage.healthy("m1", "web", "v1");
    stage.healthy("u1", "web", "v1");
    stage.until("m1 has the key", || {
        String::from_utf8_lossy(&m1.run(&["kv", "get", "region"]).stdout).contains("north")
    });
    m1.line.cut();
    u1.line.cut();
    stage.connected("m1", false);
    // Both sides go on: reads are local, what is written waits for the line.
    assert!(m1.ok(&["kv", "get", "region"]).contains("north"));
    stage.apply("m1", "web", "v2");
    stage.apply("m1", "new", "v1");
    u1.apply("web", "v2");
    m1.line.heal();
    u1.line.heal();
    stage.healthy("m1", "web", "v2");
    stage.healthy("m1", "new", "v1");
    stage.healthy("u1", "web", "v2");
}

fn kill_9_of_either_side_amid_traffic(transport: &'static str) {
    let mut stage = Stage::new(transport);
    let mut m1 = stage.join("m1", "managed");
    let mut u1 = stage.join("u1", "autonomous");
    let hub = stage.path("hub").to_str().unwrap().to_owned();
    let at_hub = Writer::new(&["--data", &hub, "--agent", "m1"], &stage.path("to-hub"));
    let at_u1 = Writer::new(&[&u1.flag()], &stage.path("to-u1"));
    let stop = AtomicBool::new(false);
    let (wanted, own) = std::thread::scope(|scope| {
        let _stop = Stop(&stop);
        let wanted = scope.spawn(|| at_hub.write_until(|| stop.load(Ordering::SeqCst)));
        let own = scope.spawn(|| at_u1.write_until(|| stop.load(Ordering::SeqCst)));
        for round in 0..6 {
            // Both are writing, and go on while one is killed.
            for writer in [&at_hub, &at_u1] {
                let so_far = writer.acknowledged.load(Ordering::SeqCst);
                stage.until("it writes", || writer.acknowledged.load(Ordering::SeqCst) > so_far);
            }
            match round % 3 {
                0 => {
                    stage.kill_hub();
                    stage.start_hub();
                }
                1 => {
                    m1.kill();
                    m1.restart();
                }
                _ => {
                    u1.kill();
                    u1.restart();
                }
            }
        }
        stop.store(true, Ordering::SeqCst);
        (wanted.join().unwrap(), own.join().unwrap())
    });
    // What was acknowledged is never lost, whoever was killed next.
    stage.all_healthy("m1", &wanted);
    stage.all_healthy("u1", &own);
}

#[test]
fn a_hub_restored_from_an_old_backup_deletes_nothing_and_asks() {
    let mut stage = Stage::new("auto");
    let m1 = stage.join("m1", "managed");
    stage.apply("m1", "old", "v1");
    stage.healthy("m1", "old", "v1");
    stage.drain_hub();
    stage.copy_hub("hub", "backup");
    stage.start_hub();
    stage.apply("m1", "new", "v1");
    stage.healthy("m1", "new", "v1");
    stage.kill_hub();
    stage.copy_hub("backup", "hub");
    stage.start_hub();
    stage.connected("m1", true);
    stage.until("the operator is told what to do", || {
        let shelves = stage.ok(&["shelf", "list"]);
        shelves.to_lowercase().contains("stopped")
    });
    // Nothing was deleted: the agent still runs what the hub has forgotten.
    let held = m1.ok(&["get", "objects", "-A", "-o", "json"]);
    assert!(held.contains("\"old\"") && held.contains("\"new\""), "{held}");
    // The shelf that forgot takes no writes, and says what to do; others go on.
    let file = stage.write("late", "v1");
    let refused = stage.run(&["apply", "--agent", "m1", "-f", &file]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "the hub was reached: {told}");
    assert!(told.contains("adopt") && told.contains("late.yaml, document 1"), "{told}");
    assert_eq!(told.matches("has stopped").count(), 1, "{told}");
    stage.ok(&["kv", "put", "x", "y"]);
    stage.ok(&["shelf", "adopt", "hub/desired@m1"]);
    stage.healthy("m1", "new", "v1");
    stage.healthy("m1", "old", "v1");
}
