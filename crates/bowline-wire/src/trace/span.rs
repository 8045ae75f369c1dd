//! One piece of work of one node, on its way to the collector.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use bowline_types::NodeId;
use tokio::sync::{mpsc, oneshot};

use super::TraceContext;

/// Where spans go, once telemetry runs in this process.
static OUT: OnceLock<Out> = OnceLock::new();

pub(crate) struct Out {
    pub(crate) jobs: mpsc::Sender<Job>,
    /// One of so many pieces of work that belong to no trace begins one; 0: none does.
    pub(crate) one_in: u32,
    /// Spans that found no room.
    pub(crate) lost: AtomicU64,
}

/// What the exporter is given.
pub(crate) enum Job {
    Span(Box<Record>),
    /// Send all there is, then say so.
    Flush(oneshot::Sender<()>),
}

/// What a span has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) node: NodeId,
    pub(crate) name: &'static str,
    pub(crate) trace: u128,
    pub(crate) id: u64,
    pub(crate) parent: Option<u64>,
    pub(crate) state: Option<String>,
    pub(crate) began: SystemTime,
    pub(crate) ended: SystemTime,
    pub(crate) about: Vec<(&'static str, String)>,
    pub(crate) error: Option<String>,
}

/// Whether telemetry runs in this process.
pub(crate) fn is_on() -> bool {
    OUT.get().is_some()
}

/// Lets spans go out; the first caller in a process has its way.
pub(crate) fn set_out(out: Out) -> bool {
    OUT.set(out).is_ok()
}

/// How many spans found no room so far.
pub(crate) fn lost() -> u64 {
    OUT.get().map_or(0, |out| out.lost.load(Ordering::Relaxed))
}

/// A piece of work that has begun. Dropped, it is not told; ended, it is.
#[derive(Debug)]
pub struct Span(Box<Record>);

impl Span {
    /// Begins a piece of work: a child of `parent` if somebody wants to see that trace, or, where
    /// there is none, the first of a new one if one is due. None: nobody looks.
    pub fn begin(node: &NodeId, name: &'static str, parent: Option<&TraceContext>) -> Option<Self> {
        let out = OUT.get()?;
        let (trace, above, state) = match parent {
            Some(parent) => {
                let trace = u128::from_str_radix(parent.trace_id(), 16).ok()?;
                let above = u64::from_str_radix(parent.span_id(), 16).ok()?;
                let wanted = parent.is_sampled();
                wanted.then_some((trace, Some(above), parent.state.clone()))?
            }
            None => {
                let due = out.one_in > 0 && rand::random_range(0..out.one_in) == 0;
                due.then(|| (rand::random::<u128>() | 1, None, None))?
            }
        };
        let now = SystemTime::now();
        Some(Self(Box::new(Record {
            node: node.clone(),
            name,
            trace,
            id: rand::random::<u64>() | 1,
            parent: above,
            state,
            began: now,
            ended: now,
            about: vec![],
            error: None,
        })))
    }

    /// It began earlier.
    pub fn since(&mut self, began: SystemTime) {
        self.0.began = began;
    }

    /// Says something about it.
    pub fn set(&mut self, key: &'static str, value: impl ToString) {
        self.0.about.push((key, value.to_string()));
    }

    /// It failed.
    pub fn fail(&mut self, why: impl ToString) {
        self.0.error = Some(why.to_string());
    }

    /// What its children have above them.
    pub fn context(&self) -> TraceContext {
        let parent = format!("00-{:032x}-{:016x}-01", self.0.trace, self.0.id);
        TraceContext { parent, state: self.0.state.clone() }
    }

    /// It is done: it goes out, unless there is no room.
    pub fn end(mut self) {
        self.0.ended = SystemTime::now();
        if let Some(out) = OUT.get()
            && out.jobs.try_send(Job::Span(self.0)).is_err()
        {
            out.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Has all that is on its way sent.
pub(crate) async fn flush() {
    let Some(out) = OUT.get() else { return };
    let (done, sent) = oneshot::channel();
    if out.jobs.send(Job::Flush(done)).await.is_ok() {
        let _ended = sent.await;
    }
}
