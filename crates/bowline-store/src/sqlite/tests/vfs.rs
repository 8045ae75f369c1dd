//! A file system for SQLite that fails on command and remembers what was flushed.

#![expect(unsafe_code, reason = "a SQLite file system is a table of C functions; tests only")]

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use rusqlite::ffi;

/// What goes wrong from now on.
pub(crate) struct Rules {
    /// Every flush fails.
    pub(crate) no_sync: AtomicBool,
    /// This many writes work, then each writes half of what it should and fails.
    pub(crate) writes_left: AtomicI64,
    /// This many bytes may files grow by, then the disk is full.
    pub(crate) room: AtomicI64,
    /// Each file as it was when last flushed: all that a power loss must leave.
    pub(crate) flushed: Mutex<BTreeMap<PathBuf, Vec<u8>>>,
}

/// A file system of its own for each test, so that tests may run side by side.
pub(crate) struct Faulty {
    pub(crate) name: &'static str,
    pub(crate) rules: &'static Rules,
}

impl Faulty {
    pub(crate) fn new(name: &'static CStr) -> Self {
        let rules = Rules {
            no_sync: AtomicBool::new(false),
            writes_left: AtomicI64::new(i64::MAX),
            room: AtomicI64::new(i64::MAX),
            flushed: Mutex::default(),
        };
        // Never freed: SQLite keeps pointers to both as long as the process lives.
        let rules: &'static Rules = Box::leak(Box::new(rules));
        // SAFETY: the default file system is there for good; the new one lives for good.
        unsafe {
            let real = ffi::sqlite3_vfs_find(ptr::null());
            let app = Box::leak(Box::new(App { real, rules }));
            let vfs = ffi::sqlite3_vfs {
                iVersion: 2,
                szOsFile: (*real).szOsFile + size_of::<File>() as c_int,
                zName: name.as_ptr(),
                pAppData: ptr::from_mut(app).cast(),
                xOpen: Some(open),
                xDelete: Some(delete),
                xDlOpen: None,
                xDlError: None,
                xDlSym: None,
                xDlClose: None,
                pNext: ptr::null_mut(),
                xAccess: Some(access),
                xFullPathname: Some(full_path),
                xRandomness: Some(randomness),
                xSleep: Some(sleep),
                xCurrentTime: Some(current_time),
                xGetLastError: Some(last_error),
                xCurrentTimeInt64: Some(current_time_int),
                ..*real
            };
            let vfs = Box::leak(Box::new(vfs));
            assert_eq!(ffi::sqlite3_vfs_register(vfs, 0), ffi::SQLITE_OK);
        }
        Self { name: name.to_str().unwrap(), rules }
    }

    /// Writes what a power loss would leave of the files in one folder to another.
    pub(crate) fn power_loss(&self, from: &Path, to: &Path) {
        for (path, bytes) in &*self.rules.flushed.lock().unwrap() {
            if path.parent() == Some(from) {
                std::fs::write(to.join(path.file_name().unwrap()), bytes).unwrap();
            }
        }
    }
}

struct App {
    real: *mut ffi::sqlite3_vfs,
    rules: &'static Rules,
}

/// What SQLite takes for its file; the real one lies behind it.
#[repr(C)]
struct File {
    base: ffi::sqlite3_file,
    app: *const App,
    /// Null for temporary files.
    path: *mut c_char,
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(reserved),
    xFileControl: Some(control),
    xSectorSize: Some(sector),
    xDeviceCharacteristics: Some(device),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite gives a block of szOsFile bytes: ours first, the real file's behind.
    unsafe {
        let app = (*vfs).pAppData.cast::<App>();
        let (ours, behind) = (file.cast::<File>(), real(file));
        (*ours).base.pMethods = ptr::null();
        let rc = (*(*app).real).xOpen.unwrap()((*app).real, name, behind, flags, out);
        if !(*behind).pMethods.is_null() {
            (*ours).base.pMethods = &METHODS;
            (*ours).app = app;
            (*ours).path = ptr::null_mut();
            if !name.is_null() {
                (*ours).path = CStr::from_ptr(name).to_owned().into_raw();
            }
        }
        rc
    }
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: SQLite closes a file that open() filled, and uses it no more.
    unsafe {
        let path = (*file.cast::<File>()).path;
        if !path.is_null() {
            drop(CString::from_raw(path));
        }
        (*(*real(file)).pMethods).xClose.unwrap()(real(file))
    }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    data: *const c_void,
    count: c_int,
    at: i64,
) -> c_int {
    // SAFETY: as SQLite's own call of the real file's function.
    unsafe {
        let rules = rules(file);
        let put = |count| (*(*real(file)).pMethods).xWrite.unwrap()(real(file), data, count, at);
        if rules.writes_left.fetch_sub(1, Ordering::Relaxed) <= 0 {
            put(count / 2);
            return ffi::SQLITE_IOERR_WRITE;
        }
        let mut now = 0;
        size(file, &raw mut now);
        let grows = (at + i64::from(count) - now).max(0);
        if rules.room.fetch_sub(grows, Ordering::Relaxed) < grows {
            rules.room.fetch_add(grows, Ordering::Relaxed);
            return ffi::SQLITE_FULL;
        }
        put(count)
    }
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: the path was made by open() and lives until close().
    unsafe {
        let (rules, path) = (rules(file), (*file.cast::<File>()).path);
        if rules.no_sync.load(Ordering::Relaxed) {
            return ffi::SQLITE_IOERR_FSYNC;
        }
        if !path.is_null() {
            let path = PathBuf::from(CStr::from_ptr(path).to_str().unwrap());
            let bytes = std::fs::read(&path).unwrap();
            rules.flushed.lock().unwrap().insert(path, bytes);
        }
        (*(*real(file)).pMethods).xSync.unwrap()(real(file), flags)
    }
}

unsafe fn real(file: *mut ffi::sqlite3_file) -> *mut ffi::sqlite3_file {
    // SAFETY: the block that SQLite gave has room for both.
    unsafe { file.cast::<File>().add(1).cast() }
}

unsafe fn rules(file: *mut ffi::sqlite3_file) -> &'static Rules {
    // SAFETY: open() has set it, and it lives for good.
    unsafe { (*(*file.cast::<File>()).app).rules }
}

macro_rules! pass_to_file {
    ($($name:ident = $method:ident($($arg:ident: $type:ty),*);)*) => {$(
        unsafe extern "C" fn $name(file: *mut ffi::sqlite3_file, $($arg: $type),*) -> c_int {
            // SAFETY: as SQLite's own call of the real file's function.
            unsafe { (*(*real(file)).pMethods).$method.unwrap()(real(file), $($arg),*) }
        }
    )*};
}

pass_to_file! {
    read = xRead(data: *mut c_void, count: c_int, at: i64);
    truncate = xTruncate(size: i64);
    size = xFileSize(size: *mut i64);
    lock = xLock(level: c_int);
    unlock = xUnlock(level: c_int);
    reserved = xCheckReservedLock(out: *mut c_int);
    control = xFileControl(op: c_int, arg: *mut c_void);
    sector = xSectorSize();
    device = xDeviceCharacteristics();
    shm_map = xShmMap(page: c_int, size: c_int, extend: c_int, out: *mut *mut c_void);
    shm_lock = xShmLock(offset: c_int, count: c_int, flags: c_int);
    shm_unmap = xShmUnmap(delete: c_int);
}

unsafe extern "C" fn shm_barrier(file: *mut ffi::sqlite3_file) {
    // SAFETY: as SQLite's own call of the real file's function.
    unsafe { (*(*real(file)).pMethods).xShmBarrier.unwrap()(real(file)) }
}

unsafe extern "C" fn delete(vfs: *mut ffi::sqlite3_vfs, name: *const c_char, dir: c_int) -> c_int {
    // SAFETY: as SQLite's own call of the real function, with a path of its own.
    unsafe {
        let app = (*vfs).pAppData.cast::<App>();
        let path = Path::new(CStr::from_ptr(name).to_str().unwrap());
        (*app).rules.flushed.lock().unwrap().remove(path);
        (*(*app).real).xDelete.unwrap()((*app).real, name, dir)
    }
}

macro_rules! pass_to_system {
    ($($name:ident = $method:ident($($arg:ident: $type:ty),*);)*) => {$(
        unsafe extern "C" fn $name(vfs: *mut ffi::sqlite3_vfs, $($arg: $type),*) -> c_int {
            // SAFETY: as SQLite's own call of the real function.
            unsafe {
                let real = (*(*vfs).pAppData.cast::<App>()).real;
                (*real).$method.unwrap()(real, $($arg),*)
            }
        }
    )*};
}

pass_to_system! {
    access = xAccess(name: *const c_char, flags: c_int, out: *mut c_int);
    full_path = xFullPathname(name: *const c_char, count: c_int, out: *mut c_char);
    randomness = xRandomness(count: c_int, out: *mut c_char);
    sleep = xSleep(micros: c_int);
    current_time = xCurrentTime(out: *mut f64);
    last_error = xGetLastError(count: c_int, out: *mut c_char);
    current_time_int = xCurrentTimeInt64(out: *mut i64);
}
