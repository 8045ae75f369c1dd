//! `cargo run --release --example seeds -- FROM COUNT`: runs seeds, shrinks the first that fails.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for a terminal")]

use bowline_sim::{Schedule, run_seeds, shrink};

fn main() {
    let mut args = std::env::args().skip(1).filter_map(|a| a.parse::<u64>().ok());
    let (from, count) = (args.next().unwrap_or(0), args.next().unwrap_or(1000));
    std::panic::set_hook(Box::new(|_| {}));
    match run_seeds(from, count, 2, &|_| {}) {
        Ok(tally) => println!("{tally:?}"),
        Err(failure) => {
            println!("seed {} failed: {}", failure.seed, failure.says);
            let Some((short, failure)) = shrink(&Schedule::of(failure.seed), 3000) else { return };
            for op in short.rounds.iter().flatten() {
                println!("  {op:?}");
            }
            eprintln!("{}", failure.says);
            std::process::exit(1);
        }
    }
}
