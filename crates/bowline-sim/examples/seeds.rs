//! `cargo run --release --example seeds -- FROM COUNT [THREADS]`: runs seeds, shrinks the first that
//! fails unless `--no-shrink` is given.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for a terminal")]

use bowline_sim::{Schedule, hush, run_seeds, shrink};

fn main() {
    let mut args = std::env::args().skip(1).filter_map(|a| a.parse::<u64>().ok());
    let short = std::env::args().any(|a| a == "--no-shrink");
    let (from, count) = (args.next().unwrap_or(0), args.next().unwrap_or(1000));
    hush();
    let threads = args.next().and_then(|n| usize::try_from(n).ok()).unwrap_or(2);
    match run_seeds(from, count, threads, &|_| {}) {
        Ok(tally) => println!("{tally:?}"),
        Err(failure) => {
            println!("seed {} failed: {}", failure.seed, failure.says);
            if short {
                std::process::exit(1);
            }
            let Some((short, failure)) = shrink(&Schedule::of(failure.seed), 3000) else { return };
            println!("{}", short.to_script());
            eprintln!("{}", failure.says);
            std::process::exit(1);
        }
    }
}
