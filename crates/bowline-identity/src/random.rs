//! Random bytes from the system, for ids, secrets and serial numbers.

/// `N` unpredictable bytes.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut out = [0; N];
    // A system that cannot give random bytes must not go on and make keys.
    aws_lc_rs::rand::fill(&mut out).expect("the system's random number generator works");
    out
}
