//! A peer's event: the CloudEvents envelope, compression, the native frame. What can be read must
//! survive the way back. Seeds are the recorded frames of each version.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(
    init: bowline_fuzz::seed(recorded()),
    |data: &[u8]| bowline_wire::fuzz_decode(data)
);

fn recorded() -> Vec<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/bowline-wire/tests/frames");
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| std::fs::read(file.path()).ok()).collect()
}
