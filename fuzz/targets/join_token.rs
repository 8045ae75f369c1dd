//! A join token as a person pasted it: refused, or read and then written as the same token.

#![no_main]

use bowline_fuzz::{NOW, agent, seed};
use bowline_identity::{Fingerprint, JoinToken};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: seed(seeds()), |data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(token) = text.parse::<JoinToken>() {
        assert_eq!(token.to_string().parse::<JoinToken>().as_ref(), Ok(&token));
    }
});

fn seeds() -> Vec<String> {
    let pins = vec![Fingerprint::of(b"one"), Fingerprint::of(b"two")];
    let hubs = vec!["hub:8443".to_owned(), "[::1]:8443".to_owned()];
    [None, Some(agent())]
        .map(|node| JoinToken::mint(hubs.clone(), pins.clone(), node, NOW).expect("a token").0)
        .map(|token| token.to_string())
        .to_vec()
}
