//! Shelves on disk. The only crate that names a database.
//!
//! A [`Store`] performs [`bowline_types::Batch`]es and hands back what it holds; it decides
//! nothing. What it must behave like is [`bowline_types::Image`]; [`conformance`] holds every
//! store to it. [`Sqlite`] is the store of a node, [`Memory`] that of a test, and a [`Writer`] is
//! the one thread that owns either.
//!
//! ```
//! use bowline_store::{Outcome, Sqlite, Store, Writer};
//!
//! let dir = std::env::temp_dir().join(format!("bowline-doc-{}", std::process::id()));
//! let mut store = Sqlite::open(&dir)?;
//! store.load(&mut |loaded| println!("{loaded:?}"))?;
//! let writer = Writer::start(
//!     store,
//!     Box::new(|outcome| match outcome {
//!         Outcome::Persisted(ticket) => println!("on disk up to {ticket:?}"),
//!         Outcome::Waiting(ticket, path) => println!("{ticket:?} waits for room in {path:?}"),
//!         Outcome::Failed(ticket, error) => println!("{ticket:?} is not on disk: {error}"),
//!     }),
//! );
//! writer.close();
//! # std::fs::remove_dir_all(&dir)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backup;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod error;
mod folder;
mod mark;
mod memory;
mod seal;
mod sqlite;
mod store;
mod writer;

pub use backup::{BackupOptions, Manifest, backup, inspect, restore, restore_with_key};
pub use error::Error;
pub use memory::Memory;
pub use seal::SealKey;
pub use sqlite::{FORMAT, Options, Sqlite};
pub use store::{Loaded, Store};
pub use writer::{Group, Outcome, Writer};
