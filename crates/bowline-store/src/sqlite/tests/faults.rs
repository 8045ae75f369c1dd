//! Disks that fail, fill up and lose power while the store is running.

use std::process::Command;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::channel;

use bowline_types::Ticket;

use super::vfs::Faulty;
use super::*;
use crate::conformance::{Disk, all_faults};
use crate::{BackupOptions, Outcome, Store, Writer};

fn open_on(disk: &Faulty, dir: &Path) -> Result<Sqlite, Error> {
    Sqlite::open_with(dir, Options { vfs: Some(disk.name), ..Options::default() })
}

fn put(ticket: u64) -> Batch {
    let body = "v".repeat(2000);
    of(ticket, vec![write("hub/kv", Slot::Own, ticket, &[(&format!("k/{ticket}"), &body)])])
}

/// The image after these tickets.
fn after(tickets: std::ops::RangeInclusive<u64>) -> Image {
    let mut image = Image::default();
    tickets.for_each(|ticket| image.apply(put(ticket)).unwrap());
    image
}

fn reopened(dir: &Path) -> Image {
    Sqlite::open(dir).unwrap().image().unwrap()
}

#[test]
fn it_conforms_on_a_bad_disk() {
    let disk = Faulty::new(c"conforms");
    let mut dir = None;
    let mut open = |old: Option<Box<dyn Store>>| -> Box<dyn Store> {
        if old.is_none() {
            dir = Some(tempfile::tempdir().unwrap());
        }
        drop(old);
        Box::new(open_on(&disk, dir.as_ref().unwrap().path()).unwrap())
    };
    all_faults(&mut open, &mut |now| {
        let room = if now == Disk::Full { 0 } else { i64::MAX };
        disk.rules.room.store(room, Relaxed);
        disk.rules.no_sync.store(now == Disk::Broken, Relaxed);
    });
}

#[test]
fn after_a_failed_flush_the_store_does_nothing_more() {
    let (disk, dir) = (Faulty::new(c"fails-flush"), tempfile::tempdir().unwrap());
    let mut store = open_on(&disk, dir.path()).unwrap();
    store.commit(&[put(1)]).unwrap();
    disk.rules.no_sync.store(true, Relaxed);
    let failed = store.commit(&[put(2)]);
    assert!(matches!(failed, Err(Error::Database { .. })), "{failed:?}");
    disk.rules.no_sync.store(false, Relaxed);
    let later = store.commit(&[put(3)]);
    assert!(matches!(later, Err(Error::Stopped { .. })), "{later:?}");
    drop(store);
    let found = reopened(dir.path());
    assert!(found == after(1..=1) || found == after(1..=2), "{found:?}");
}

#[test]
fn after_a_failed_flush_the_writer_reports_once_and_does_nothing_more() {
    let (disk, dir) = (Faulty::new(c"fails-writer"), tempfile::tempdir().unwrap());
    let (said, heard) = channel();
    let store = open_on(&disk, dir.path()).unwrap();
    let writer = Writer::start(store, Box::new(move |outcome| said.send(outcome).unwrap()));
    writer.submit(put(1));
    assert!(matches!(heard.recv().unwrap(), Outcome::Persisted(Ticket(1))));
    disk.rules.no_sync.store(true, Relaxed);
    writer.submit(put(2));
    assert!(matches!(heard.recv().unwrap(), Outcome::Failed(Ticket(2), Error::Database { .. })));
    disk.rules.no_sync.store(false, Relaxed);
    writer.submit(put(3));
    writer.close();
    assert!(heard.recv().is_err(), "nothing comes after a failure");
    assert!(
        reopened(dir.path())
            .shelves
            .values()
            .all(|s| !s.slots[&Slot::Own].records.contains_key("k/3"))
    );
}

#[test]
fn whichever_write_fails_and_tears_nothing_acknowledged_is_lost() {
    let disk = Faulty::new(c"tears-writes");
    for allowed in 0..60 {
        let dir = tempfile::tempdir().unwrap();
        disk.rules.writes_left.store(i64::MAX, Relaxed);
        let mut store = open_on(&disk, dir.path()).unwrap();
        store.commit(&[put(1)]).unwrap();
        disk.rules.writes_left.store(allowed, Relaxed);
        let mut acknowledged = 1;
        while acknowledged < 30 && store.commit(&[put(acknowledged + 1)]).is_ok() {
            acknowledged += 1;
        }
        assert!(acknowledged < 30, "the fault came");
        drop(store);
        let found = reopened(dir.path());
        let (sure, maybe) = (after(1..=acknowledged), after(1..=acknowledged + 1));
        assert!(found == sure || found == maybe, "write {allowed} failed");
    }
}

#[test]
fn checkpoints_that_fail_lose_nothing() {
    let disk = Faulty::new(c"tears-checkpoints");
    let dir = tempfile::tempdir().unwrap();
    let mut store = open_on(&disk, dir.path()).unwrap();
    // Enough that the log was moved into the file at least once, and is again soon.
    let mut acknowledged = 0;
    while acknowledged < 400 {
        store.commit(&[put(acknowledged + 1)]).unwrap();
        acknowledged += 1;
    }
    disk.rules.writes_left.store(900, Relaxed);
    while store.commit(&[put(acknowledged + 1)]).is_ok() {
        acknowledged += 1;
    }
    drop(store);
    let found = reopened(dir.path());
    assert!(found == after(1..=acknowledged) || found == after(1..=acknowledged + 1));
}

#[test]
fn whichever_write_fails_while_a_store_is_made_it_can_be_made_later() {
    let disk = Faulty::new(c"fails-making");
    let mut failures = 0;
    for allowed in 0.. {
        let dir = tempfile::tempdir().unwrap();
        disk.rules.writes_left.store(allowed, Relaxed);
        let done = open_on(&disk, dir.path()).and_then(|mut store| store.commit(&[put(1)]));
        disk.rules.writes_left.store(i64::MAX, Relaxed);
        let mut store = open_on(&disk, dir.path()).unwrap();
        if done.is_ok() {
            assert_eq!(store.image().unwrap(), after(1..=1));
            break;
        }
        failures += 1;
        store.commit(&[put(2)]).unwrap();
    }
    assert!(failures > 5, "{failures}");
}

#[test]
fn a_power_loss_takes_nothing_that_was_flushed() {
    let (disk, dir) = (Faulty::new(c"loses-power"), tempfile::tempdir().unwrap());
    let mut store = open_on(&disk, dir.path()).unwrap();
    // The new file was flushed under its first name.
    let path = dir.path().join("bowline.db");
    let new = fs::read(&path).unwrap();
    disk.rules.flushed.lock().unwrap().insert(path, new);
    let mut flushed = 0;
    for ticket in 1..=600 {
        let mut batch = put(ticket);
        if ticket % 3 == 0 {
            flushed = ticket;
        } else {
            batch.writes[0].durability = Durability::Written;
        }
        store.commit(&[batch]).unwrap();
        if ticket % 25 < 3 {
            let left = tempfile::tempdir().unwrap();
            disk.power_loss(dir.path(), left.path());
            let found = reopened(left.path());
            let count: usize =
                found.shelves.values().map(|s| s.slots[&Slot::Own].records.len()).sum();
            let count = u64::try_from(count).unwrap();
            assert!((flushed..=ticket).contains(&count), "{count} of {flushed} flushed");
            assert!(found == after(1..=count), "not a state that was");
        }
    }
}

/// Writes until there is no room, then finds everything that was acknowledged.
fn fill_up(mut store: Sqlite, make_room: impl FnOnce(), dir: &Path) {
    let mut acknowledged = 0;
    let error = loop {
        match store.commit(&[put(acknowledged + 1)]) {
            Ok(()) => acknowledged += 1,
            Err(error) => break error,
        }
        assert!(acknowledged < 100_000, "the disk never filled up");
    };
    assert!(matches!(error, Error::Full { .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("free space"));
    assert!(acknowledged > 10, "{acknowledged}");
    // Nothing of what had no room is there, and the same is refused again until there is some.
    assert_eq!(store.image().unwrap(), after(1..=acknowledged));
    let again = store.commit(&[put(acknowledged + 1)]);
    assert!(matches!(again, Err(Error::Full { .. })), "{again:?}");
    make_room();
    store.commit(&[put(acknowledged + 1)]).unwrap();
    acknowledged += 1;
    store.close().unwrap();
    let mut store = Sqlite::open(dir).unwrap();
    assert_eq!(store.image().unwrap(), after(1..=acknowledged));
    store.commit(&[put(acknowledged + 1)]).unwrap();
}

#[test]
fn a_full_disk_is_an_error_that_says_so_and_loses_nothing() {
    let (disk, dir) = (Faulty::new(c"is-full"), tempfile::tempdir().unwrap());
    let store = open_on(&disk, dir.path()).unwrap();
    disk.rules.room.store(6 << 20, Relaxed);
    fill_up(store, || disk.rules.room.store(i64::MAX, Relaxed), dir.path());
}

#[test]
fn the_first_secret_that_has_no_room_is_sealed_once_there_is() {
    let (disk, dir) = (Faulty::new(c"no-room-for-secrets"), tempfile::tempdir().unwrap());
    let mut store = open_on(&disk, dir.path()).unwrap();
    let mut batch = put(1);
    for record in &mut batch.writes[0].puts {
        record.body.as_mut().unwrap().secret = true;
    }
    disk.rules.room.store(0, Relaxed);
    let refused = store.commit(std::slice::from_ref(&batch));
    assert!(matches!(refused, Err(Error::Full { .. })), "{refused:?}");
    disk.rules.room.store(i64::MAX, Relaxed);
    store.commit(std::slice::from_ref(&batch)).unwrap();
    let was = store.image().unwrap();
    store.close().unwrap();
    assert_eq!(reopened(dir.path()), was);
}

/// Unmounts when dropped.
struct Mounted(tempfile::TempDir);

impl Mounted {
    /// A small file system in memory, where this process may mount one.
    fn new() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let options = ["-t", "tmpfs", "-o", "size=12m", "tmpfs"];
        let done = Command::new("mount").args(options).arg(dir.path()).output();
        done.is_ok_and(|done| done.status.success()).then_some(Self(dir))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _done = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_tmpfs_loses_nothing_or_where_none_can_be_mounted_a_full_quota() {
    let Some(mounted) = Mounted::new() else {
        let (disk, dir) = (Faulty::new(c"is-full-too"), tempfile::tempdir().unwrap());
        let store = open_on(&disk, dir.path()).unwrap();
        disk.rules.room.store(9 << 20, Relaxed);
        return fill_up(store, || disk.rules.room.store(i64::MAX, Relaxed), dir.path());
    };
    // Others fill it too: the space that they free later is what makes the store go on.
    let (dir, ballast) = (mounted.0.path().join("data"), mounted.0.path().join("ballast"));
    fs::write(&ballast, vec![1; 4 << 20]).unwrap();
    fill_up(Sqlite::open(&dir).unwrap(), || fs::remove_file(ballast).unwrap(), &dir);
}

#[test]
fn a_backup_without_room_leaves_no_file() {
    let (disk, dir) = (Faulty::new(c"no-room-to-copy"), tempfile::tempdir().unwrap());
    let data = dir.path().join("data");
    let mut store = open_on(&disk, &data).unwrap();
    (1..50).for_each(|ticket| store.commit(&[put(ticket)]).unwrap());
    disk.rules.room.store(50_000, Relaxed);
    let failed = store.backup(&dir.path().join("backup"), BackupOptions::default());
    assert!(matches!(failed, Err(Error::Full { .. })), "{failed:?}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    disk.rules.room.store(i64::MAX, Relaxed);
    store.commit(&[put(50)]).unwrap();
    store.backup(&dir.path().join("backup"), BackupOptions::default()).unwrap();
}
