//! A person's token as it came in a header: only the one that was minted opens.

#![no_main]

use std::sync::LazyLock;

use bowline_fuzz::seed;
use bowline_identity::{ApiToken, ApiTokenHash};
use libfuzzer_sys::fuzz_target;

static TOKEN: LazyLock<(String, ApiTokenHash)> =
    LazyLock::new(|| ApiToken::mint("fuzz").expect("a token"));

fuzz_target!(init: seed([&TOKEN.0]), |data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    assert_eq!(ApiToken::verify(text, &TOKEN.1), text == TOKEN.0);
});
