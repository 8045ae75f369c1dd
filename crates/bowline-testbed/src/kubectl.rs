//! `kubectl`, as somebody uses it by hand.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::provide;

/// Runs `kubectl` by a kubeconfig, with this on its stdin: what it printed.
///
/// # Errors
///
/// What it complained of.
///
/// # Panics
///
/// When it cannot be provided or started.
pub fn kubectl(kubeconfig: &Path, args: &[&str], input: Option<&str>) -> Result<String, String> {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| provide("kubectl").join("kubectl"));
    let mut command = Command::new(program);
    command.arg("--kubeconfig").arg(kubeconfig).arg("--request-timeout=60s").args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("kubectl starts");
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        // One that refuses its arguments does not wait for the rest.
        let _unread = stdin.write_all(input.as_bytes());
    }
    let out = child.wait_with_output().expect("kubectl ends");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    if out.status.success() { Ok(text(out.stdout)) } else { Err(text(out.stderr)) }
}
