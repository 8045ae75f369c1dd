//! What the fuzzers share: where their seeds go, and one moment and name for all.

use std::path::PathBuf;

use bowline_types::{NodeId, Wall};

/// The moment at which everything here happens.
pub const NOW: Wall = Wall(1_794_787_200_000);

/// The agent that everything here is about.
pub fn agent() -> NodeId {
    NodeId::new("a1").expect("a valid name")
}

/// Writes valid inputs where `fuzz/run` asks for them, so that a short run begins behind the first
/// checks of a decoder instead of in front of them.
pub fn seed<T: AsRef<[u8]>>(inputs: impl IntoIterator<Item = T>) {
    let Some(folder) = std::env::var_os("BOWLINE_FUZZ_SEEDS").map(PathBuf::from) else { return };
    for (number, input) in inputs.into_iter().enumerate() {
        let path = folder.join(format!("seed-{number}"));
        std::fs::write(&path, input).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
}
