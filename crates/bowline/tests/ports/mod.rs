//! Ports for roles that are killed and come back: below those that the system hands out, so that nobody
//! else is given one meanwhile, and below those of the test bed.

use std::net::{TcpListener, UdpSocket};
use std::sync::Mutex;

/// Where the search begins and ends; argocd-agent takes none above 32767.
const FIRST: u32 = 5_000;
const LAST: u32 = 19_999;

/// Marks of what this process has been given: other suites, which run beside it, cannot bind the same.
static MARKS: Mutex<Vec<UdpSocket>> = Mutex::new(Vec::new());

/// A port that is this process's for as long as it lives.
pub(crate) fn free_port() -> u16 {
    let mut marks = MARKS.lock().unwrap();
    // Anywhere, so that suites seldom meet.
    let first = std::process::id() * 97;
    let all = LAST - FIRST + 1;
    for n in 0..all {
        let port = u16::try_from(FIRST + (first + n) % all).unwrap();
        let Ok(mark) = UdpSocket::bind(("127.0.0.1", port)) else { continue };
        if TcpListener::bind(("0.0.0.0", port)).is_ok() {
            marks.push(mark);
            return port;
        }
    }
    panic!("no port is free from {FIRST} to {LAST}");
}
