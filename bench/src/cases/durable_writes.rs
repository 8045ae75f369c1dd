//! 256 clients write keys through the API, each waiting until its write and its audit entry are
//! on disk.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use bowline_client::Client;
use bytes::Bytes;

use crate::outcome::{Better, Figure, Outcome};
use crate::stage::{Stage, quantile, say, scaled};

const CLIENTS: usize = 256;
const BYTES: usize = 200;

pub(crate) async fn run() -> Result<Outcome> {
    let lasting = Duration::from_secs(scaled(10).max(3) as u64);
    let stage = Stage::set(1).await?;
    say("disk: group-committed appends");
    let limit = appends(&stage.file("appends"), lasting / 2)?;
    say(&format!("  {limit:.0} a second; hub: {CLIENTS} clients"));
    let hub = stage.hub(0)?;
    let client = stage.client(&hub)?;
    let done = Arc::new(AtomicU64::new(0));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|n| tokio::spawn(write(client.clone(), n, done.clone(), lasting)))
        .collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (before, cpu, began) = (done.load(Ordering::Relaxed), hub.cpu()?, Instant::now());
    tokio::time::sleep(lasting).await;
    let (count, took) = (done.load(Ordering::Relaxed) - before, began.elapsed().as_secs_f64());
    let busy = (hub.cpu()? - cpu) / took;
    let mut all = vec![];
    for client in clients {
        all.extend(client.await??);
    }
    let p99 = quantile(&mut all, 0.99);
    let audited = client.audit(&bowline_client::api::AuditQuery::default()).await?;
    audited.items.first().context("the writes left no audit entry")?;
    let rate = count as f64 / took;
    let figure =
        Figure { value: rate, unit: "writes a second", goal: 10_000.0, better: Better::More };
    let peer = "256 appends an fdatasync, a second";
    Ok(Outcome::new("durable-writes", &figure, peer, limit).note(format!(
        "{CLIENTS} clients, each write with its audit entry; p99 {:.1} ms; hub used {busy:.2} cores",
        p99.as_secs_f64() * 1000.0
    )))
}

async fn write(
    client: Client,
    number: usize,
    done: Arc<AtomicU64>,
    lasting: Duration,
) -> Result<Vec<Duration>> {
    let until = Instant::now() + lasting + Duration::from_secs(2);
    let (value, mut took) = (Bytes::from(vec![b'x'; BYTES]), vec![]);
    let mut turn = 0;
    while Instant::now() < until {
        let began = Instant::now();
        client.kv_put(&format!("bench/{number:03}/{}", turn % 100), value.clone(), None).await?;
        took.push(began.elapsed());
        done.fetch_add(1, Ordering::Relaxed);
        turn += 1;
    }
    Ok(took)
}

/// What the disk can do for as many writers that share every flush.
fn appends(path: &Path, lasting: Duration) -> Result<f64> {
    let mut file = File::create(path)?;
    let (group, began, mut count) = (vec![b'x'; CLIENTS * BYTES], Instant::now(), 0u64);
    while began.elapsed() < lasting {
        file.write_all(&group)?;
        file.sync_data()?;
        count += CLIENTS as u64;
    }
    Ok(count as f64 / began.elapsed().as_secs_f64())
}
