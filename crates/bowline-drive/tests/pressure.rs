//! A disk that is full or slow: what peers propose does not pile up in memory, and nothing else on
//! their links waits for it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "pair/stage.rs"]
mod stage;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_drive::{Handle, NO_MORE};
use bowline_store::{Error, Loaded, Memory, Store};
use bowline_sync::{Plan, Recovery};
use bowline_types::{Batch, Interest, Item, Verdict};
use tokio::sync::watch;

use stage::{Running, dial, kv, put, run, run_on, serve, until};

/// What the disk does with what it is given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Disk {
    Well,
    Full,
    /// Nothing comes of a commit until it is something else.
    Slow,
}

struct Switched {
    memory: Memory,
    disk: watch::Receiver<Disk>,
    /// Bytes of the commits that came while it was well again.
    most: Arc<Mutex<usize>>,
}

impl Store for Switched {
    fn commit(&mut self, batches: &[Batch]) -> Result<(), Error> {
        while *self.disk.borrow() == Disk::Slow {
            std::thread::sleep(Duration::from_millis(1));
        }
        if *self.disk.borrow() == Disk::Full {
            return Err(Error::Full { path: "memory".into() });
        }
        *self.most.lock().unwrap() += batches.iter().map(Batch::weight).sum::<usize>();
        self.memory.commit(batches)
    }

    fn load(&mut self, visit: &mut dyn FnMut(Loaded)) -> Result<(), Error> {
        self.memory.load(visit)
    }
}

/// A hub on a disk that can be switched, and an agent that holds its shelf.
struct Scene {
    hub: Running,
    agent: Running,
    disk: watch::Sender<Disk>,
    written: Arc<Mutex<usize>>,
    addr: std::net::SocketAddr,
    _server: bowline_wire::ServerHandle,
    _dir: tempfile::TempDir,
}

impl Scene {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (disk, switched) = watch::channel(Disk::Well);
        let written = Arc::new(Mutex::new(0));
        let store = Switched { memory: Memory::new(), disk: switched, most: written.clone() };
        let hub = run_on("hub", store);
        hub.handle.open(kv(), Plan::new(Recovery::Ask));
        hub.handle.write(&kv(), vec![], vec![put("there", "1")]).await.unwrap();
        let mut agent = run("a1", dir.path());
        agent.handle.interest(kv(), Interest::all());
        let (addr, server) = serve(&hub.handle);
        dial(addr, &agent.handle).await;
        until(&mut agent, |n| n >= 1).await;
        Self { hub, agent, disk, written, addr, _server: server, _dir: dir }
    }

    fn end(self) {
        self.disk.send_replace(Disk::Well);
        self.agent.drive.stop();
        self.hub.drive.stop();
    }
}

fn asking(agent: &Handle, item: Item) -> tokio::task::JoinHandle<Verdict> {
    let agent = agent.clone();
    let patience = Duration::from_secs(60);
    tokio::spawn(
        async move { agent.propose(&kv(), vec![], vec![item], None, patience).await.unwrap() },
    )
}

fn is_refused(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Refused { why, .. } if why == NO_MORE)
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_full_disk_a_new_proposal_is_refused_at_once_and_one_under_way_is_not() {
    let mut s = Scene::new().await;
    s.disk.send_replace(Disk::Full);
    let under_way = asking(&s.agent.handle, put("a", "1"));
    let full = async {
        while s.hub.handle.room().lacking().is_none() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), full).await.unwrap();
    let refused = asking(&s.agent.handle, put("b", "1")).await.unwrap();
    assert!(is_refused(&refused), "{refused:?}");
    // Over a new link what was under way is asked again: it may be taken yet, so it is not refused.
    dial(s.addr, &s.agent.handle).await;
    let refused = asking(&s.agent.handle, put("b", "2")).await.unwrap();
    assert!(is_refused(&refused), "{refused:?}");
    assert!(!under_way.is_finished());
    s.disk.send_replace(Disk::Well);
    assert!(matches!(under_way.await.unwrap(), Verdict::Taken { .. }));
    let roomy = async {
        while s.hub.handle.room().lacking().is_some() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), roomy).await.unwrap();
    let taken = asking(&s.agent.handle, put("b", "3")).await.unwrap();
    assert!(matches!(taken, Verdict::Taken { .. }), "{taken:?}");
    until(&mut s.agent, |n| n >= 3).await;
    s.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_slow_disk_no_more_than_a_bound_waits_and_the_rest_is_refused() {
    const EACH: usize = 1000 << 10;
    let s = Scene::new().await;
    s.disk.send_replace(Disk::Slow);
    let body = "v".repeat(EACH);
    let asked: Vec<_> =
        (0..48).map(|n| asking(&s.agent.handle, put(&format!("k{n}"), &body))).collect();
    let some_are_refused = async {
        while !asked.iter().any(tokio::task::JoinHandle::is_finished) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), some_are_refused).await.unwrap();
    let next = asking(&s.agent.handle, put("next", "1")).await.unwrap();
    assert!(is_refused(&next), "{next:?}");
    s.disk.send_replace(Disk::Well);
    let mut taken = 0;
    for ask in asked {
        match ask.await.unwrap() {
            Verdict::Taken { .. } => taken += 1,
            refused => assert!(is_refused(&refused), "{refused:?}"),
        }
    }
    let bound = (32 << 20) + EACH;
    assert!((16..=bound / EACH).contains(&taken), "{taken} were taken");
    assert!(*s.written.lock().unwrap() < bound + (1 << 20));
    let next = asking(&s.agent.handle, put("next", "2")).await.unwrap();
    assert!(matches!(next, Verdict::Taken { .. }), "{next:?}");
    s.end();
}
