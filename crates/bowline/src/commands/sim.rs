//! `bowline sim`: a fleet on virtual time, thousands of schedules, and one of them step by step.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use bowline_sim::{Schedule, hush, run_seeds, shrink};
use clap::Args;

use crate::failure::{Failure, Outcome};
use crate::print;

/// Run random schedules of faults against the replication core
#[derive(Args, Debug)]
pub(super) struct Sim {
    /// How many seeds to run
    #[arg(long, value_name = "N", default_value_t = 1000)]
    seeds: u64,
    /// The first seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    from: u64,
    /// How many threads; all cores if not said
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Step through a script that a failing seed was shrunk to
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seeds", "from"])]
    replay: Option<PathBuf>,
    /// Wait for a key press after each step of a replay
    #[arg(long, requires = "replay")]
    step: bool,
    /// Where a failing seed's script is written
    #[arg(long, value_name = "FILE", default_value = "failing-schedule.txt")]
    script: PathBuf,
}

impl Sim {
    pub(super) fn run(self) -> Outcome {
        if let Some(file) = &self.replay {
            return replay(file, self.step);
        }
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let began = Instant::now();
        let bar = Mutex::new(print::Progress::start("seeds"));
        // What the checks say is in the result; a backtrace for each would drown it.
        hush();
        let result = run_seeds(self.from, self.seeds, self.threads.unwrap_or(cores), &|done| {
            if let Ok(mut bar) = bar.lock() {
                bar.at(done, Some(self.seeds));
            }
        });
        drop(bar);
        match result {
            Ok(t) => {
                let seconds = began.elapsed().as_secs_f64();
                print::out(&format!(
                    "{} seeds from {} held: {} copies checked, {} writes and {} proposals answered \
                     ({:.0} seeds/s)\n",
                    t.seeds,
                    self.from,
                    t.checks,
                    t.promised,
                    t.judged,
                    f64::from(u32::try_from(t.seeds).unwrap_or(u32::MAX)) / seconds
                ))
            }
            Err(failure) => Err(self.shrunk(&failure)),
        }
    }

    /// Makes a failing seed short, prints it and writes it down.
    fn shrunk(&self, failure: &bowline_sim::Failure) -> Failure {
        let seed = failure.seed;
        let Some((short, says)) = shrink(&Schedule::of(seed), 3000) else {
            return Failure::new(format!("seed {seed}: {}", failure.says));
        };
        let script = short.to_script();
        // Where it cannot be printed, the file has it.
        let _closed = print::out(&script);
        Failure::new(format!("seed {seed}: {}", says.says)).hint(self.write(&script))
    }

    /// Writes a script down; what to do with it.
    fn write(&self, script: &str) -> String {
        let file = self.script.display();
        match std::fs::write(&self.script, script) {
            Ok(()) => format!("bowline sim --replay {file}"),
            Err(error) => format!(
                "{file} could not be written ({error}): put what was printed into a file, and give that to \
                 bowline sim --replay"
            ),
        }
    }
}

fn replay(file: &std::path::Path, step: bool) -> Outcome {
    let text = std::fs::read_to_string(file)
        .map_err(|e| Failure::new(format!("reading {}: {e}", file.display())))?;
    let schedule = Schedule::from_script(&text)
        .map_err(|e| Failure::new(format!("{} is not a schedule: {e}", file.display())))?;
    hush();
    let mut closed = false;
    let result = bowline_sim::replay(&schedule, &mut |s| {
        let op = s.op.map_or_else(|| "rest".to_owned(), |op| format!("{op:?}"));
        let mut told = format!("{}: {op}\n", s.number);
        s.lines.iter().for_each(|line| told.push_str(&format!("    {line}\n")));
        closed |= print::out(&told).is_err();
        if step && !closed {
            // Any line goes on; the end of input runs to the end.
            let _end = std::io::stdin().read_line(&mut String::new());
        }
    });
    match result {
        Ok(_) => print::out("the schedule holds\n"),
        Err(failure) => Err(Failure::new(failure.says)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_cannot_be_written_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let at = |script: PathBuf| Sim {
            seeds: 1,
            from: 0,
            threads: None,
            replay: None,
            step: false,
            script,
        };
        let file = folder.path().join("failing.txt");
        let told = at(file.clone()).write("a step");
        assert_eq!(told, format!("bowline sim --replay {}", file.display()));
        assert_eq!(std::fs::read_to_string(file).unwrap(), "a step");
        let told = at(folder.path().join("none").join("x.txt")).write("a step");
        assert!(
            told.contains("could not be written") && told.contains("what was printed"),
            "{told}"
        );
    }
}
