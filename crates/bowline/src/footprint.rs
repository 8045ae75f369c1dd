//! How much memory a role takes when it has nothing to do: most of it is the program itself.

use std::time::Duration;

/// By then a role has started, and what it goes on doing is another part of the program.
const STARTED: Duration = Duration::from_secs(5);

/// Hands back, once a role has started, the pages of the program that only starting took. What is used
/// again is mapped again from the page cache, at the cost of a minor fault for each 64 KiB.
pub(crate) async fn settle() {
    tokio::time::sleep(STARTED).await;
    #[cfg(target_os = "linux")]
    if let Err(error) = program::hand_back() {
        tracing::debug!(%error, "the pages of the start stay mapped");
    }
}

#[cfg(target_os = "linux")]
mod program {
    use std::ffi::c_void;
    use std::io;

    /// Unmaps the pages of the program's code.
    pub(super) fn hand_back() -> io::Result<()> {
        let program = std::fs::read_link("/proc/self/exe")?;
        let program = program.to_string_lossy();
        for line in std::fs::read_to_string("/proc/self/maps")?.lines() {
            if let Some((start, len)) = code(line, &program) {
                forget(start, len)?;
            }
        }
        Ok(())
    }

    /// Where code of the program is mapped, if a line of `maps` says so: never what can be written, nor
    /// what was written before it was made read-only, since that would be lost.
    pub(super) fn code(line: &str, program: &str) -> Option<(usize, usize)> {
        let (range, rest) = line.split_once(' ')?;
        if !rest.starts_with("r-xp ") || !rest.ends_with(program) {
            return None;
        }
        let (start, end) = range.split_once('-')?;
        let (start, end) =
            (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
        Some((start, end.checked_sub(start)?))
    }

    #[expect(unsafe_code, reason = "no safe call gives pages back")]
    fn forget(start: usize, len: usize) -> io::Result<()> {
        let at = std::ptr::with_exposed_provenance_mut::<c_void>(start);
        // SAFETY: a whole mapping of a file that is executed and never written: the kernel maps each page
        // again, with the same bytes, when it is next used.
        unsafe { rustix::mm::madvise(at, len, rustix::mm::Advice::LinuxDontNeed)? };
        Ok(())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::program::{code, hand_back};

    #[test]
    fn only_code_of_the_program_is_handed_back() {
        let at = |rights: &str, file: &str| {
            code(&format!("1000-3000 {rights} 004f0000 fe:00 59 {file}"), "/bin/bowline")
        };
        assert_eq!(at("r-xp", "/bin/bowline"), Some((0x1000, 0x2000)));
        for rights in ["r--p", "rw-p", "rwxp"] {
            assert_eq!(at(rights, "/bin/bowline"), None, "{rights}");
        }
        assert_eq!(at("r-xp", "/lib/libc.so.6"), None);
        assert_eq!(code("1000-3000 r-xp 0 00:00 0 [vdso]", "/bin/bowline"), None);
    }

    #[test]
    fn the_program_goes_on_with_less_memory() {
        let resident = || {
            let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
            let program = std::fs::read_link("/proc/self/exe").unwrap();
            let mut lines =
                smaps.lines().skip_while(|l| code(l, &program.to_string_lossy()).is_none());
            let rss = lines.find_map(|l| l.strip_prefix("Rss:")).unwrap();
            rss.trim().trim_end_matches(" kB").parse::<usize>().unwrap()
        };
        let before = resident();
        hand_back().unwrap();
        assert!(resident() < before, "from {before} kB");
    }
}
