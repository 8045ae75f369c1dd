//! A watch whose line is cut while objects go, and whose server may be another when it comes back.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline_kube::{Deleted, Heard, Watch};
use bowline_resources::Object;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch::{self, Sender};
use tokio::task::JoinSet;

use crate::bed;
use crate::stage::{PATIENCE, Stage, connect, hear, heard, uid, watch};

/// A cluster that only this test uses, since it kills the server.
struct OwnCluster {
    folder: tempfile::TempDir,
    kubeconfig: PathBuf,
}

impl OwnCluster {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = up(folder.path());
        Self { folder, kubeconfig }
    }

    /// Kills the API server, without a chance to say goodbye, and starts another on its data.
    fn restart(&self) {
        let pid = std::fs::read_to_string(self.folder.path().join("pid/apiserver-1")).unwrap();
        let pid = pid.split_whitespace().next().unwrap().to_owned();
        assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
        let dead = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.is_empty() || stat.contains(") Z ")
        };
        let began = Instant::now();
        while !dead() {
            assert!(began.elapsed() < Duration::from_secs(30), "it is killed and does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
        up(self.folder.path());
    }
}

impl Drop for OwnCluster {
    fn drop(&mut self) {
        script(self.folder.path(), &["down"]);
    }
}

fn up(folder: &Path) -> PathBuf {
    script(folder, &["up", "1"]).lines().next().unwrap().into()
}

fn script(folder: &Path, args: &[&str]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testbed/clusters");
    let mut command = Command::new(&path);
    let out = command.args(args).env("BOWLINE_TESTBED_RUN", folder).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// A line to the server that can be cut.
struct Line {
    open: Arc<Sender<bool>>,
    kubeconfig: PathBuf,
    _folder: tempfile::TempDir,
    _task: JoinSet<()>,
}

impl Line {
    async fn to(kubeconfig: &Path) -> Self {
        let text = std::fs::read_to_string(kubeconfig).unwrap();
        let address = text.split("https://").nth(1).unwrap();
        let address: String =
            address.chars().take_while(|c| c.is_ascii_digit() || ".:".contains(*c)).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap().to_string();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        std::fs::write(&path, text.replace(&address, &own)).unwrap();
        let (open, is_open) = watch::channel(true);
        let mut task = JoinSet::new();
        task.spawn(relay(listener, address, is_open));
        Self { open: Arc::new(open), kubeconfig: path, _folder: folder, _task: task }
    }

    fn cut(&self) {
        self.open.send_replace(false);
    }

    fn mend(&self) {
        self.open.send_replace(true);
    }
}

async fn relay(listener: TcpListener, to: String, is_open: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        let (mut near, _) = listener.accept().await.unwrap();
        let (to, mut is_open) = (to.clone(), is_open.clone());
        connections.spawn(async move {
            let through = async {
                if let Ok(mut far) = TcpStream::connect(&to).await {
                    let _ended = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                }
            };
            tokio::select! {
                () = through => {}
                _ = is_open.wait_for(|open| !open) => {}
            }
        });
    }
}

/// What was told until both went and the new one came, and whether `c`, which nobody touched, was
/// told again: then the place was lost, and the watch listed anew.
async fn told_after(watch: &mut Watch, gone: [&Object; 2], made: &Object) -> bool {
    let (mut uids, mut there, mut anew) = (vec![], false, false);
    let deadline = Instant::now() + PATIENCE;
    while uids.len() < 2 || !there {
        assert!(Instant::now() < deadline, "told {uids:?} in time, and the new one: {there}");
        match heard(watch).await {
            Heard::Gone { uid, .. } | Heard::Missed { uid, .. } => uids.push(uid),
            Heard::Put(object) => {
                there |= object.metadata.uid == made.metadata.uid;
                anew |= object.metadata.name == "c";
            }
            Heard::Listed | Heard::Trouble(_) => {}
        }
    }
    uids.sort();
    let mut expected = gone.map(uid);
    expected.sort();
    assert_eq!(uids, expected);
    anew
}

/// Objects `a` to `d`, a watch over a line that can be cut, and what it told at first.
async fn watched(stage: &Stage, line: &Line) -> ([Object; 2], Watch) {
    let (a, b) = (stage.create("a", &json!({})).await, stage.create("b", &json!({})).await);
    stage.create("c", &json!({})).await;
    let distant = connect(&line.kubeconfig, "bowline").await;
    let mut watch = watch(&distant, &stage.config_maps, stage.scope()).await;
    stage.create("d", &json!({})).await;
    assert_eq!(hear(&mut watch).await, "put d");
    ([a, b], watch)
}

/// Cuts the line; meanwhile `a` goes, and `b` goes and comes again.
async fn change_unseen(stage: &Stage, line: &Line, watch: &mut Watch) -> Object {
    line.cut();
    assert!(matches!(heard(watch).await, Heard::Trouble(_)));
    stage.delete("a").await;
    stage.delete("b").await;
    stage.create("b", &json!({})).await
}

#[tokio::test]
async fn deletions_behind_a_cut_line_are_told_from_where_the_watch_was() {
    let stage = Stage::new().await;
    let line = Line::to(&bed::clusters(1).kubeconfigs[0]).await;
    let ([a, b], mut watch) = watched(&stage, &line).await;
    let again = change_unseen(&stage, &line, &mut watch).await;
    line.mend();
    assert!(!told_after(&mut watch, [&a, &b], &again).await, "the place is kept");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deletions_are_told_though_the_server_restarted_and_forgot_where_the_watch_was() {
    let own = Arc::new(tokio::task::spawn_blocking(OwnCluster::start).await.unwrap());
    let stage = Stage::at(&own.kubeconfig).await;
    let line = Line::to(&own.kubeconfig).await;
    let ([a, b], mut watch) = watched(&stage, &line).await;
    let again = change_unseen(&stage, &line, &mut watch).await;
    let server = own.clone();
    tokio::task::spawn_blocking(move || server.restart()).await.unwrap();
    line.mend();
    assert!(told_after(&mut watch, [&a, &b], &again).await, "the place is lost");
    // And it goes on from there.
    assert_eq!(stage.delete("d").await, Deleted::Gone);
    let gone = async { while !hear(&mut watch).await.starts_with("gone d ") {} };
    tokio::time::timeout(PATIENCE, gone).await.expect("to go on from there");
    tokio::task::spawn_blocking(move || drop(own)).await.unwrap();
}
