//! The nouns of Bowline: who owns what, where in a history something stands, and what is written
//! to disk. No behaviour beyond what a noun must know of itself; no clock, no I/O.

mod batch;
mod digest;
mod head;
mod id;
mod image;
mod key;
mod lineage;
mod place;
mod proposal;
mod record;

pub use batch::{Batch, Durability, Meta, Slot, Start, Ticket, Write};
pub use digest::{Digest, Fingerprint};
pub use head::{Head, Over, Signature};
pub use id::{BadName, LinkId, Mono, NodeId, Now, ShelfId, ShelfName, Wall};
pub use image::{Image, Refused, ShelfImage, SlotImage};
pub use key::{BadKey, Interest, InterestId, Key, Prefix};
pub use lineage::{Cursor, Lineage, Rev, Term};
pub use place::{Have, Part, Place};
pub use proposal::{Guard, Proposal, ProposalId, Settled, Verdict, fitting};
pub use record::{Body, Change, Item, Record, Why};

/// The most records that one commit may hold: an etcd transaction.
pub const MAX_COMMIT_RECORDS: usize = 100;
/// The most bytes of keys and bodies that one commit may hold.
pub const MAX_COMMIT_BYTES: usize = 1 << 20;
