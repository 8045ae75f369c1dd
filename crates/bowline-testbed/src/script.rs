//! The scripts in `testbed/`, run so that a person sees what they say while they say it.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder that holds a component: `kubectl`, `argocd-agent` and the like, as
/// `testbed/provide` names them. Builds it if need be, which takes minutes.
///
/// # Panics
///
/// In the words of the script, when it cannot be provided.
pub fn provide(what: &str) -> PathBuf {
    let out = run("provide", &["--paths", what]);
    let dir = out.trim_end().strip_prefix(what).map(str::trim_start);
    PathBuf::from(dir.unwrap_or_else(|| panic!("testbed/provide {what} printed {out:?}")))
}

/// What a script printed. Its words to the person go to our stderr as they come: a build of
/// minutes must not look like a test that hangs.
pub(crate) fn run(script: &str, args: &[&str]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testbed").join(script);
    let mut child = Command::new(&path)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("starting {}: {e}", path.display()));
    let words = child.stderr.take().map(passed_on).unwrap_or_default();
    let mut printed = String::new();
    let read = child.stdout.take().map(|mut out| out.read_to_string(&mut printed));
    let status = child.wait().unwrap_or_else(|e| panic!("waiting for testbed/{script}: {e}"));
    assert!(status.success(), "testbed/{script} {}: {status}\n{words}", args.join(" "));
    assert!(matches!(read, Some(Ok(_))), "testbed/{script} printed what is no text");
    printed
}

/// Everything that comes, once it has ended, and on stderr as it comes. Not by the macros, which
/// the test harness would hold back.
fn passed_on(from: impl Read) -> String {
    let mut words = String::new();
    for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        // Whoever closed our stderr does not want to see it.
        let _unseen = writeln!(std::io::stderr(), "{line}");
        words.push_str(&line);
        words.push('\n');
    }
    words
}
