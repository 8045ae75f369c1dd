//! What every store must do when its disk is full or fails.

use bowline_types::{Batch, Image, Slot};

use super::{Opener, large, of, same, write};
use crate::{Error, Store};

/// How the disk under a store is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Disk {
    /// As it should be.
    #[default]
    Well,
    /// There is no room for anything more.
    Full,
    /// Nothing that is written can be made durable.
    Broken,
}

/// Makes the disk so, under the store that was opened last.
pub type Faults<'a> = dyn FnMut(Disk) + 'a;

/// Every check that needs a disk which fails on command.
pub fn all_faults(open: &mut Opener<'_>, disk: &mut Faults<'_>) {
    for group in groups() {
        what_there_is_no_room_for_leaves_nothing_and_may_be_tried_again(open, disk, &group);
        a_failed_commit_leaves_whole_batches_or_none_and_ends_the_store(open, disk, &group);
    }
}

/// One batch, several that are one commit, and one that is more than a commit may hold.
fn groups() -> [Vec<Batch>; 3] {
    let body = "v".repeat(100_000);
    let put = |ticket, rev: u64| {
        let own = write("hub/kv", Slot::Own, rev, &[("a", &body), (&format!("k{rev}"), &body)]);
        of(ticket, vec![own, write("a1/run", Slot::Main, rev, &[("b", &body)])])
    };
    let several = vec![put(2, 2), put(3, 3), put(4, 4)];
    [vec![put(2, 2)], several, vec![of(2, vec![large(2, "a")])]]
}

/// A store that holds something, and what it holds.
fn begun(open: &mut Opener<'_>) -> (Box<dyn Store>, Image) {
    let (mut store, mut model) = (open(None), Image::default());
    let first = of(1, vec![write("hub/kv", Slot::Own, 1, &[("a", "1"), ("b", "1")])]);
    store.commit(std::slice::from_ref(&first)).unwrap();
    model.apply(first).unwrap();
    (store, model)
}

/// For want of room nothing of a group is done, however often it is tried; with room all of it is.
fn what_there_is_no_room_for_leaves_nothing_and_may_be_tried_again(
    open: &mut Opener<'_>,
    disk: &mut Faults<'_>,
    group: &[Batch],
) {
    let (mut store, mut model) = begun(open);
    disk(Disk::Full);
    for _ in 0..3 {
        let full = store.commit(group);
        assert!(matches!(full, Err(Error::Full { .. })), "{full:?}");
        same(&mut *store, &model, "without room");
    }
    disk(Disk::Well);
    store.commit(group).unwrap();
    group.iter().for_each(|b| model.apply(b.clone()).unwrap());
    same(&mut *store, &model, "with room again");
    same(&mut *open(Some(store)), &model, "with room again, opened again");
}

/// Whatever is there after a failure, it is never a part of a batch; until the store is opened anew
/// it takes nothing more.
fn a_failed_commit_leaves_whole_batches_or_none_and_ends_the_store(
    open: &mut Opener<'_>,
    disk: &mut Faults<'_>,
    group: &[Batch],
) {
    let (mut store, mut model) = begun(open);
    disk(Disk::Broken);
    let failed = store.commit(group);
    assert!(
        !matches!(failed, Ok(()) | Err(Error::Full { .. } | Error::Fenced { .. })),
        "{failed:?}"
    );
    disk(Disk::Well);
    let later = of(9, vec![write("hub/kv", Slot::Own, 9, &[("later", "1")])]);
    assert!(store.commit(std::slice::from_ref(&later)).is_err(), "it is not known what is there");
    let mut store = open(Some(store));
    let found = store.image().unwrap();
    let mut known = found == model;
    for batch in group {
        model.apply(batch.clone()).unwrap();
        known |= found == model;
    }
    assert!(known, "a part of a batch is there: {found:#?}");
    store.commit(&[later]).unwrap();
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::{Loaded, Memory};

    /// Memory with what a disk would say.
    struct Pretended {
        memory: Memory,
        disk: Arc<Mutex<Disk>>,
        ended: bool,
    }

    impl Store for Pretended {
        fn commit(&mut self, batches: &[Batch]) -> Result<(), Error> {
            let stopped = || Error::Stopped { path: "memory".into() };
            match *self.disk.lock().unwrap() {
                _ if self.ended => Err(stopped()),
                Disk::Well => self.memory.commit(batches),
                Disk::Full => Err(Error::Full { path: "memory".into() }),
                Disk::Broken => {
                    self.ended = true;
                    Err(stopped())
                }
            }
        }

        fn load(&mut self, visit: &mut dyn FnMut(Loaded)) -> Result<(), Error> {
            self.memory.load(visit)
        }
    }

    #[test]
    fn memory_conforms_on_a_bad_disk() {
        let disk = Arc::new(Mutex::new(Disk::Well));
        let mut open = |old: Option<Box<dyn Store>>| -> Box<dyn Store> {
            let held = old.map(|mut old| old.image().unwrap()).unwrap_or_default();
            Box::new(Pretended { memory: held.into(), disk: disk.clone(), ended: false })
        };
        all_faults(&mut open, &mut |now| *disk.lock().unwrap() = now);
    }
}
