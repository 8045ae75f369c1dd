//! Files that hold secrets: written whole or not at all, readable by their owner only.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

static TURN: AtomicU64 = AtomicU64::new(0);

/// A file that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{verb} {}", path.display())]
pub struct Error {
    verb: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl Error {
    fn new(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self { verb, path: path.into(), source }
    }

    /// Whether the file is simply not there.
    pub fn is_missing(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }
}

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Its owner: keys.
    Private,
    /// Everybody: certificates.
    Public,
}

/// Replaces a file: after a crash it holds the old bytes or the new ones, never a mixture.
pub fn write(path: &Path, bytes: &[u8], access: Access) -> Result<(), Error> {
    let parent = parent(path);
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    // Two writers of one file must not share what they write aside.
    let turn = TURN.fetch_add(1, Ordering::Relaxed);
    name.push(format!(".{}-{turn}.tmp", std::process::id()));
    let aside = parent.join(name);
    let done = fill(&aside, bytes, access).and_then(|()| fs::rename(&aside, path));
    if done.is_err() {
        // The error that counts is the first one; a file left aside holds nothing that is in use.
        let _ = fs::remove_file(&aside);
    }
    done.and_then(|()| sync(parent)).map_err(Error::new("cannot write", path))
}

fn fill(aside: &Path, bytes: &[u8], access: Access) -> io::Result<()> {
    let mode = match access {
        Access::Private => 0o600,
        Access::Public => 0o644,
    };
    // A process with this number may have died here before, and the mode counts for new files only.
    match fs::remove_file(aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(aside)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Removes a file, durably; one that is not there is removed already.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done.and_then(|()| sync(parent(path))).map_err(Error::new("cannot remove", path)),
    }
}

/// A file's text.
pub fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(Error::new("cannot read", path))
}

/// A file's text, or nothing when there is no such file.
pub fn read_if_there(path: &Path) -> Result<Option<String>, Error> {
    match read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes a folder that only its owner can enter.
pub fn make_dir(path: &Path) -> Result<(), Error> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(Error::new("cannot make", path))
}

/// The permission bits of a file.
pub fn mode(path: &Path) -> Result<u32, Error> {
    let meta = fs::metadata(path).map_err(Error::new("cannot read", path))?;
    Ok(meta.permissions().mode() & 0o777)
}

/// When a file was last written, by the clock of its file system.
pub fn written(path: &Path) -> Result<SystemTime, Error> {
    fs::metadata(path).and_then(|meta| meta.modified()).map_err(Error::new("cannot read", path))
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn sync(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// What tells one state of a file from another without reading it. The inode is in it, since an
/// atomic replacement always changes that, even within one tick of the file system's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp(Option<(u64, u64, i64, i64)>);

impl Stamp {
    /// The stamp of a file now; a file that is not there has one too.
    pub fn of(path: &Path) -> Self {
        // The metadata follows symbolic links: a mounted Kubernetes secret is swapped by one.
        let meta = fs::metadata(path).ok();
        Self(meta.map(|meta| (meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_keeps_its_permissions_and_leaves_nothing_aside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.key");
        write(&path, b"one", Access::Private).unwrap();
        write(&path, b"two", Access::Private).unwrap();
        assert_eq!(read(&path).unwrap(), "two");
        assert_eq!(mode(&path).unwrap(), 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_replacement_of_equal_size_changes_the_stamp() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.crt");
        let none = Stamp::of(&path);
        write(&path, b"one", Access::Public).unwrap();
        let one = Stamp::of(&path);
        write(&path, b"two", Access::Public).unwrap();
        assert!(none != one && one != Stamp::of(&path));
    }

    #[test]
    fn a_missing_file_is_told_from_an_unreadable_one() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read_if_there(&dir.path().join("nothing")).unwrap(), None);
        let error = read_if_there(dir.path()).unwrap_err();
        assert!(!error.is_missing());
        assert!(error.to_string().starts_with("cannot read"));
    }

    #[test]
    fn a_failed_write_leaves_the_old_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("folder");
        make_dir(&path.join("inner")).unwrap();
        assert!(write(&path, b"x", Access::Private).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(mode(&path).unwrap(), 0o700);
    }
}
