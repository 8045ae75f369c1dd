//! A session token: whatever is accepted says what the one token said that was ever signed.

#![no_main]

use std::sync::LazyLock;
use std::time::Duration;

use bowline_fuzz::{NOW, agent, seed};
use bowline_identity::{Claims, Fingerprint, TokenSigner};
use libfuzzer_sys::fuzz_target;

struct Stage {
    signer: TokenSigner,
    token: String,
    claims: Claims,
}

static STAGE: LazyLock<Stage> = LazyLock::new(|| {
    let signer = TokenSigner::generate().expect("a signer");
    let life = Duration::from_secs(600);
    let token = signer.mint(&agent(), Some("managed"), certificate(), life, NOW).expect("a token");
    let claims = signer.verify(&token, certificate(), NOW).expect("our own token");
    Stage { signer, token, claims }
});

fn certificate() -> Fingerprint {
    Fingerprint::of(b"a certificate")
}

fuzz_target!(init: seed([&STAGE.token]), |data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(claims) = STAGE.signer.verify(text, certificate(), NOW) {
        assert_eq!(claims, STAGE.claims);
    }
});
