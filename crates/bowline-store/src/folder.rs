//! The data folder: who may read it, and who has it open.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::Error;

/// The database's file.
pub(crate) const DATABASE: &str = "bowline.db";
/// The key of sealed bodies.
pub(crate) const SEAL_KEY: &str = "seal.key";
/// How many commits the database must hold at least.
pub(crate) const MARK: &str = "commits";
/// Held, and naming its holder, while a process has the folder open.
pub(crate) const LOCK: &str = "lock";

/// A folder that nobody else has open; free again when dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    lock: File,
}

impl Drop for Folder {
    /// Not by closing alone: a child that another thread is just starting has our files open until it
    /// becomes another program.
    fn drop(&mut self) {
        let _gone_with_the_file = self.lock.unlock();
    }
}

impl Folder {
    /// Makes the folder if need be, and takes it.
    pub(crate) fn take(path: &Path) -> Result<Self, Error> {
        make(path)?;
        let lock_path = path.join(LOCK);
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&lock_path)
            .map_err(Error::io("opening", &lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                // Who holds it is a courtesy: the refusal stands without it.
                let _unread = lock.read_to_string(&mut pid);
                return Err(Error::Locked { path: path.into(), pid: pid.trim().parse().ok() });
            }
            Err(TryLockError::Error(e)) => return Err(Error::io("locking", &lock_path)(e)),
        }
        // A full disk must not keep a store from being opened: the name in the lock is a courtesy.
        let _unnamed = lock
            .set_len(0)
            .and_then(|()| lock.rewind())
            .and_then(|()| writeln!(lock, "{}", std::process::id()));
        Ok(Self { path: path.into(), lock })
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path.join(DATABASE)
    }
}

/// Makes a folder that only its owner may enter; one that is there keeps its rights.
pub(crate) fn make(path: &Path) -> Result<(), Error> {
    if path.is_dir() {
        return Ok(());
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(Error::io("making", path))?;
    path.parent().map_or(Ok(()), flush_folder)
}

/// Makes the names in a folder survive a power loss.
pub(crate) fn flush_folder(path: &Path) -> Result<(), Error> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    File::open(path).and_then(|f| f.sync_all()).map_err(Error::io("flushing", path))
}

/// A new file that only its owner may read.
pub(crate) fn create_private(path: &Path) -> Result<File, Error> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(Error::io("making", path))
}

/// Takes from everyone else the right to read a file.
pub(crate) fn make_private(path: &Path) -> Result<(), Error> {
    let mode = fs::metadata(path).map_err(Error::io("reading", path))?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(Error::io("restricting", path))
}

/// Writes a private file so that it is there whole or not at all.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let part = path.with_extension("part");
    remove_if_there(&part)?;
    let mut file = create_private(&part)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(Error::io("writing", &part))?;
    fs::rename(&part, path).map_err(Error::io("renaming", &part))?;
    path.parent().map_or(Ok(()), flush_folder)
}

/// Removes a file that a crash may have left.
pub(crate) fn remove_if_there(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io("removing", path)(e)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_free_when_it_is_dropped_though_a_child_has_its_files() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::take(dir.path()).unwrap();
        assert!(matches!(Folder::take(dir.path()), Err(Error::Locked { .. })));
        let at_the_child = folder.lock.try_clone().unwrap();
        drop(folder);
        Folder::take(dir.path()).unwrap();
        drop(at_the_child);
    }
}
