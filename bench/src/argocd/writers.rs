//! Clients that write side by side, as fast as they are answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

/// How many write at a time.
pub(crate) const WRITERS: usize = 8;

/// When everything was written.
pub(crate) struct Written {
    /// When the first write began.
    pub(crate) began: Instant,
    /// When each was begun, by number.
    pub(crate) each: Vec<Instant>,
    /// How long all of them took.
    pub(crate) took: Duration,
}

/// Has `write` called for each number below `count`, by so many at a time.
pub(crate) async fn write_all<W, F>(count: usize, writers: usize, write: W) -> Result<Written>
where
    W: Fn(usize) -> F + Send + Sync + 'static,
    F: Future<Output = Result<()>> + Send,
{
    let (next, write) = (Arc::new(AtomicUsize::new(0)), Arc::new(write));
    let began = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..writers {
        let (next, write) = (next.clone(), write.clone());
        tasks.spawn(async move {
            let mut done = vec![];
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return anyhow::Ok(done);
                }
                done.push((number, Instant::now()));
                write(number).await?;
            }
        });
    }
    let mut each = vec![began; count];
    while let Some(done) = tasks.join_next().await {
        for (number, at) in done?? {
            each[number] = at;
        }
    }
    Ok(Written { began, each, took: began.elapsed() })
}
