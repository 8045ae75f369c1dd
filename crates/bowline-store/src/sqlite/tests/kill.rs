//! `kill -9` in the middle of writing: what was acknowledged is there, whatever its durability.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use super::*;

const DIR: &str = "BOWLINE_STORE_TEST_DIR";

/// Not a test of its own: the process that is killed. Says each ticket when it is persisted.
#[test]
#[ignore = "it is started by the test below, to be killed"]
fn writes_until_it_is_killed() {
    let dir = std::env::var(DIR).expect("the parent names a folder");
    let mut store = Sqlite::open(Path::new(&dir)).unwrap();
    for ticket in 1.. {
        let mut w = write("hub/kv", Slot::Own, ticket, &[(&format!("k/{ticket}"), "v")]);
        if ticket % 3 != 0 {
            w.durability = Durability::Written;
        }
        store.commit(&[of(ticket, vec![w])]).unwrap();
        println!("\npersisted {ticket}");
    }
}

#[test]
fn nothing_acknowledged_is_lost_by_a_killed_process() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..5 {
        let dir = dir.path().join(round.to_string());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture"])
            .arg("sqlite::tests::kill::writes_until_it_is_killed")
            .env(DIR, &dir)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut tickets = lines.filter_map(|l| l.strip_prefix("persisted ")?.parse::<u64>().ok());
        let enough = 50 + round * 37;
        let mut last = tickets.by_ref().find(|ticket| *ticket >= enough).unwrap();
        child.kill().unwrap();
        last = tickets.last().unwrap_or(last);
        child.wait().unwrap();
        let image = Sqlite::open(&dir).unwrap().image().unwrap();
        let records = &image.shelves.values().next().unwrap().slots[&Slot::Own].records;
        for ticket in 1..=last {
            assert!(records.contains_key(&*format!("k/{ticket}")), "{ticket} of {last} is gone");
        }
        assert!(records.len() as u64 <= last + 1, "more than was ever under way");
    }
}
