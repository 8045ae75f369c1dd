//! A stream of server-sent events, as a client of the API reads it: the messages are the same
//! however the bytes come, and no line break is left in an id.

#![no_main]

// Private to its crate, and good for nothing else: read from where it is.
#[path = "../../crates/bowline-client/src/sse.rs"]
mod sse;

use bowline_fuzz::seed;
use libfuzzer_sys::fuzz_target;
use sse::Decoder;

fuzz_target!(init: seed(SEEDS), |data: &[u8]| {
    let Some((step, text)) = data.split_first() else { return };
    let at_once = Decoder::default().push(text).expect("shorter than any limit");
    let mut decoder = Decoder::default();
    let parts = text.chunks(usize::from(*step) + 1);
    let bit_by_bit: Vec<_> = parts.flat_map(|p| decoder.push(p).expect("as short")).collect();
    assert_eq!(at_once, bit_by_bit);
    for message in at_once {
        assert!(!message.id.unwrap_or_default().contains(['\r', '\n']));
        assert!(!message.data.contains('\r'));
    }
});

const SEEDS: [&str; 3] = [
    "\u{3}: hello\n\nid: 7\nevent: kv\ndata: {\"a\":\ndata: 1}\n\n",
    "\u{1}id: 8\r\ndata:x\r\n\r\ndata: half",
    "\u{0}retry: 5\rdata\rdata:\r\rid\n\n",
];
