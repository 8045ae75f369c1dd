//! How long a start takes and how much memory it needs with 1,000,000 records of 500 bytes. Each
//! start is a process of its own.
//!
//! `cargo run --release -p bowline-store --example startup [-- DIR [RECORDS]]`

#![expect(clippy::print_stdout, reason = "an example prints its figures")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use bowline_store::{BackupOptions, Loaded, Sqlite, Store, backup, restore};
use bowline_types::Durability;

mod batch;

use batch::batch;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &*args.iter().map(String::as_str).collect::<Vec<_>>() {
        ["count", dir] => count(Path::new(dir)),
        ["keep", dir] => keep(Path::new(dir)),
        [] => measure(&std::env::temp_dir(), 1_000_000),
        [dir] => measure(Path::new(dir), 1_000_000),
        [dir, records, ..] => measure(Path::new(dir), records.parse()?),
    }
}

fn measure(base: &Path, records: u64) -> Result<(), Box<dyn Error>> {
    for (order, scatter) in [("key", 1), ("random", 7_919)] {
        let dir = tempfile::tempdir_in(base)?;
        let data = dir.path().join("data");
        let began = Instant::now();
        fill(&data, records, scatter)?;
        let size = std::fs::metadata(data.join("bowline.db"))?.len() >> 20;
        println!("{records} records written in {order} order: {:.2?}, {size} MiB", began.elapsed());
        start("count", &data)?;
        start("keep", &data)?;
        let (file, to): (PathBuf, PathBuf) = (dir.path().join("file"), dir.path().join("to"));
        let began = Instant::now();
        backup(&data, &file, BackupOptions::default())?;
        println!("  backup, checked: {:.2?}", began.elapsed());
        let began = Instant::now();
        restore(&file, &to)?;
        println!("  restore, checked: {:.2?}", began.elapsed());
    }
    Ok(())
}

fn start(what: &str, data: &Path) -> Result<(), Box<dyn Error>> {
    let done = Command::new(std::env::current_exe()?).arg(what).arg(data).status()?;
    if done.success() { Ok(()) } else { Err("a start failed".into()) }
}

fn count(data: &Path) -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    let (mut store, mut count) = (Sqlite::open(data)?, 0_u64);
    store.load(&mut |loaded| count += u64::from(matches!(loaded, Loaded::Record(_))))?;
    let took = began.elapsed();
    println!("  start, {count} records counted: {took:.2?}, {} MiB resident", resident());
    Ok(())
}

fn keep(data: &Path) -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    let (mut store, mut map) = (Sqlite::open(data)?, BTreeMap::new());
    store.load(&mut |loaded| {
        if let Loaded::Record(record) = loaded {
            map.insert(record.key.clone(), record);
        }
    })?;
    let took = began.elapsed();
    println!("  start, {} records kept: {took:.2?}, {} MiB resident", map.len(), resident());
    Ok(())
}

fn fill(data: &Path, records: u64, scatter: u64) -> Result<(), Box<dyn Error>> {
    let mut store = Sqlite::open(data)?;
    for from in (0..records).step_by(1000) {
        let to = records.min(from + 1000);
        let keys = (from..to).map(|n| n * scatter % records);
        store.commit(&[batch(from, keys, Durability::Written)])?;
    }
    store.close()?;
    Ok(())
}

/// Memory of this process, in MiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) >> 10
}
