//! Schedules as scripts, stepping through them, and making them short.

use bowline_sim::{Error, Failure, Op, Schedule, replay, run_seed, run_seeds, shrink, shrink_by};

#[test]
fn a_script_reads_back_as_what_was_written() {
    for seed in 0..20 {
        let schedule = Schedule::of(seed);
        let script = schedule.to_script();
        assert_eq!(Schedule::from_script(&script).unwrap(), schedule);
        assert_eq!(script.lines().count(), 1 + 2 * 400 + 2, "one op a line");
    }
}

#[test]
fn a_person_can_write_a_script() {
    let script = r#"
        # the last agent asks for a key while its link is down
        {"seed": 0}
        {"Up": 2}
        {"Propose": [3, "a/k1", "prop1", false]}
        "Rest"
        {"Restart": [0, "Kept"]}
    "#;
    let schedule = Schedule::from_script(script).unwrap();
    assert_eq!(schedule.rounds.len(), 2);
    assert_eq!(replay(&schedule, &mut |_| {}).unwrap().judged, 1);
}

#[test]
fn a_bad_line_is_named() {
    let bad = Schedule::from_script("{\"seed\":1}\n\n\"Fly\"\n");
    assert!(matches!(bad, Err(Error::BadLine { line: 3, .. })), "{bad:?}");
    assert!(matches!(Schedule::from_script("# nothing\n"), Err(Error::NoHeader)));
}

#[test]
fn a_replay_does_what_a_run_does_twice_the_same() {
    let schedule = Schedule::of(5);
    let mut scripts = vec![];
    for _ in 0..2 {
        let (mut steps, mut lines) = (0, vec![]);
        let tally = replay(&schedule, &mut |step| {
            assert_eq!(step.number, steps);
            steps += 1;
            lines.extend(step.lines);
            assert!(step.world.is_some());
        });
        assert_eq!(tally, run_seed(5));
        assert_eq!(steps, 2 * 400 + 2);
        scripts.push(lines);
    }
    assert!(scripts[0].len() > 1000);
    assert_eq!(scripts[0], scripts[1], "the same seed does the same");
}

#[test]
fn a_failing_schedule_becomes_short() {
    let wants = |s: &Schedule| {
        let restarts = s.rounds.iter().flatten().filter(|op| matches!(op, Op::Restart(..))).count();
        (restarts >= 2).then(|| Failure { seed: s.seed, says: "two restarts".into() })
    };
    let seed = (0..).find(|s| wants(&Schedule::of(*s)).is_some()).unwrap();
    let (short, failure) = shrink_by(&Schedule::of(seed), 5000, wants).unwrap();
    assert_eq!(failure.says, "two restarts");
    assert_eq!(short.rounds.iter().flatten().count(), 2);
    assert_eq!(shrink(&Schedule::of(0), 10), None, "what holds has nothing to shrink");
}

#[test]
fn two_hundred_seeds_hold() {
    let tally = run_seeds(0, 200, 2, &|_| {});
    let tally = tally.unwrap_or_else(|f| panic!("seed {}: {}", f.seed, f.says));
    assert_eq!(tally.seeds, 200);
    // A simulator that checks nothing would hold too.
    assert!(tally.checks > 10_000 && tally.promised > 5000 && tally.judged > 1000, "{tally:?}");
}

/// Schedules that once broke something, made short.
const BROKE: &[&str] = &[
    include_str!("scripts/torn_between_two_interests.script"),
    include_str!("scripts/a_twin_heard_of_during_an_adoption.script"),
];

#[test]
fn schedules_that_once_broke_something_hold() {
    for script in BROKE {
        let schedule = Schedule::from_script(script).unwrap();
        replay(&schedule, &mut |_| {}).unwrap();
    }
}
