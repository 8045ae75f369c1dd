//! Durable records a second, by batch size and order of keys, and through a writer with clients
//! that wait for their answers.
//!
//! `cargo run --release -p bowline-store --example speed [-- DIR]`

#![expect(clippy::print_stdout, reason = "an example prints its figures")]

use std::error::Error;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bowline_store::{Outcome, Sqlite, Store, Writer};
use bowline_types::{Durability, Ticket};

mod batch;

use batch::batch;

const LOADED: u64 = 100_000;
const LASTS: Duration = Duration::from_secs(3);

fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args().nth(1).map_or_else(std::env::temp_dir, Into::into);
    println!(
        "{:>10} {:>12} {:>10} {:>8} {:>9} {:>9}",
        "batch", "keys", "durability", "rec/s", "p50", "p99"
    );
    for durability in [Durability::Flushed, Durability::Written] {
        for order in [Order::Sequential, Order::Random] {
            for size in [1, 100, 1000] {
                batches(&dir, durability, order, size)?;
            }
        }
    }
    for clients in [1, 16, 64, 256] {
        clients_that_wait(&dir, clients)?;
    }
    Ok(())
}

#[derive(Clone, Copy, Debug)]
enum Order {
    Sequential,
    Random,
}

fn batches(
    dir: &Path,
    durability: Durability,
    order: Order,
    size: u64,
) -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir_in(dir)?;
    let mut store = loaded(dir.path())?;
    let (mut rng, mut at, mut took) = (7, LOADED, vec![]);
    let began = Instant::now();
    while began.elapsed() < LASTS {
        let keys = (0..size).map(|n| match order {
            Order::Sequential => at + n,
            Order::Random => random(&mut rng) % LOADED,
        });
        let batch = batch(at, keys, durability);
        at += size;
        let started = Instant::now();
        store.commit(&[batch])?;
        took.push(started.elapsed());
    }
    let rate = (at - LOADED) as f64 / began.elapsed().as_secs_f64();
    took.sort();
    let at = |share: f64| took[(took.len() as f64 * share) as usize];
    let order = format!("{order:?}");
    let durability = format!("{durability:?}");
    println!(
        "{size:>10} {order:>12} {durability:>10} {rate:>8.0} {:>9.2?} {:>9.2?}",
        at(0.5),
        at(0.99)
    );
    Ok(())
}

/// Who waits for which ticket.
type Waiting = Arc<Mutex<Vec<(u64, Sender<()>)>>>;

/// Each client writes one random key and waits until it is flushed.
fn clients_that_wait(dir: &Path, clients: u64) -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir_in(dir)?;
    let store = loaded(dir.path())?;
    let waiting: Waiting = Arc::default();
    let woken = waiting.clone();
    let writer = Writer::start(
        store,
        Box::new(move |outcome| {
            let Outcome::Persisted(Ticket(up_to)) = outcome else { panic!("{outcome:?}") };
            let mut waiting = woken.lock().expect("no client panics");
            for (_, answer) in waiting.extract_if(.., |(ticket, _)| *ticket <= up_to) {
                let _gone = answer.send(());
            }
        }),
    );
    let next = Mutex::new(LOADED);
    let began = Instant::now();
    let mut took: Vec<Duration> = std::thread::scope(|scope| {
        let client = |id: u64| {
            let (next, waiting, writer) = (&next, &waiting, &writer);
            move || {
                let (mut rng, mut took) = (id, vec![]);
                let (answer, answered) = channel();
                while began.elapsed() < LASTS {
                    let started = Instant::now();
                    let key = random(&mut rng) % LOADED;
                    {
                        // One lock over both, so that tickets are submitted in order.
                        let mut next = next.lock().expect("no client panics");
                        *next += 1;
                        let mut waiting = waiting.lock().expect("no client panics");
                        waiting.push((*next, answer.clone()));
                        writer.submit(batch(*next, [key], Durability::Flushed));
                    }
                    answered.recv().expect("every batch is answered");
                    took.push(started.elapsed());
                }
                took
            }
        };
        let threads: Vec<_> = (0..clients).map(|id| scope.spawn(client(id))).collect();
        threads.into_iter().flat_map(|t| t.join().expect("no client panics")).collect()
    });
    let rate = took.len() as f64 / began.elapsed().as_secs_f64();
    took.sort();
    let at = |share: f64| took[(took.len() as f64 * share) as usize];
    println!(
        "{clients:>3} clients {:>12} {:>10} {rate:>8.0} {:>9.2?} {:>9.2?}",
        "Random",
        "Flushed",
        at(0.5),
        at(0.99)
    );
    writer.close();
    Ok(())
}

fn loaded(dir: &Path) -> Result<Sqlite, Box<dyn Error>> {
    let mut store = Sqlite::open(dir)?;
    for from in (0..LOADED).step_by(1000) {
        store.commit(&[batch(from, from..from + 1000, Durability::Written)])?;
    }
    Ok(store)
}

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 20
}
