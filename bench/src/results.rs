//! `RESULTS.md`: what was measured last, when, where and how.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::outcome::Outcome;

/// Where the part begins that is measured beside argocd-agent.
const ARGOCD: &str = "## Beside argocd-agent";

/// Which part of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A hub and simulated agents.
    Fleet,
    /// Beside argocd-agent, on real API servers.
    Argocd,
}

impl Part {
    /// How it is asked for.
    pub(crate) fn command(self) -> &'static str {
        match self {
            Self::Fleet => "bench/run --all",
            Self::Argocd => "bench/run --argocd",
        }
    }
}

/// Which code is measured. `bench/run` has just built it from these files, so this is to be asked
/// before the first case: they may change while cases run.
pub(crate) fn commit() -> String {
    let git = |args: &[&str]| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let said = Command::new("git").arg("-C").arg(root).args(args).output().ok()?;
        said.status.success().then(|| String::from_utf8_lossy(&said.stdout).trim().to_owned())
    };
    let head = git(&["rev-parse", "--short=12", "HEAD"]);
    // The part that was written before is no change of the code.
    let changes = git(&["status", "--porcelain", "--", ".", ":!bench/RESULTS.md"]);
    named(head.as_deref(), changes.as_deref())
}

/// A commit and what `git status` says beside it, in words.
fn named(head: Option<&str>, changes: Option<&str>) -> String {
    match (head, changes) {
        (Some(head), Some("")) => format!("`{head}`"),
        (Some(head), Some(changes)) => {
            let files = changes.lines().count();
            format!("`{head}` and **changes that are in no commit**, in {files} files")
        }
        _ => "**unknown**: these are not files of a git repository".into(),
    }
}

/// Writes one part anew, and leaves the other as it is.
pub(crate) fn write(part: Part, commit: &str, outcomes: &[Outcome]) -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("RESULTS.md");
    let old = std::fs::read_to_string(&path).unwrap_or_default();
    std::fs::write(path, renewed(&old, part, &text(part, commit, outcomes)?))?;
    Ok(())
}

fn renewed(old: &str, part: Part, new: &str) -> String {
    let at = old.find(ARGOCD).unwrap_or(old.len());
    let (fleet, argocd) = old.split_at(at);
    match part {
        Part::Fleet => format!("{new}\n{argocd}").trim_end().to_owned() + "\n",
        Part::Argocd => format!("{}\n\n{new}", fleet.trim_end()),
    }
}

fn text(part: Part, commit: &str, outcomes: &[Outcome]) -> Result<String> {
    let mut text = match part {
        Part::Fleet => String::from("# Results\n\nWhat each line means is in `README.md`.\n\n"),
        Part::Argocd => format!("{ARGOCD}\n\n"),
    };
    writeln!(text, "- date: {}", bowline_resources::rfc3339(crate::seed::now()))?;
    writeln!(text, "- commit: {commit}")?;
    writeln!(text, "- machine: {}", machine())?;
    writeln!(text, "- command: `{}`", part.command())?;
    let scale = crate::stage::scale();
    if scale < 1.0 {
        writeln!(text, "- **made smaller**: BOWLINE_BENCH_SCALE={scale}")?;
    }
    match part {
        Part::Fleet => table(&mut text, outcomes)?,
        Part::Argocd => text.push_str(&rows(outcomes)),
    }
    text.push('\n');
    for o in outcomes.iter().filter(|o| !o.note.is_empty()) {
        writeln!(text, "- `{}`: {}", o.name, o.note)?;
    }
    Ok(text)
}

/// Every figure of these cases that has a goal, as a table.
pub(crate) fn rows(outcomes: &[Outcome]) -> String {
    let mut text = String::from(
        "\n| name | figure | unit | goal | ours | met | argocd-agent v0.9.0 | ours / its | by hand |\n",
    );
    text.push_str("|---|---|---|---|---|---|---|---|---|\n");
    for (o, row) in outcomes.iter().flat_map(|o| o.rows.iter().map(move |row| (o, row))) {
        let met = if row.met { "yes" } else { "**no**" };
        let shown = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
        let (limit, go) = (shown(row.limit), shown(row.go));
        let ratio = row.go.filter(|go| *go != 0.0).map(|go| format!("{:.2}", row.ours / go));
        let ratio = ratio.unwrap_or_default();
        let (what, unit, goal, ours) = (row.what, row.unit, row.goal, row.ours);
        let line = format!(
            "| `{}` | {what} | {unit} | {goal} | {ours} | {met} | {go} | {ratio} | {limit} |\n",
            o.name
        );
        text.push_str(&line);
    }
    text
}

fn table(text: &mut String, outcomes: &[Outcome]) -> Result<()> {
    text.push_str("\n| name | value | unit | goal | met | peer | peer's value | ratio |\n");
    text.push_str("|---|---|---|---|---|---|---|---|\n");
    for o in outcomes {
        let met = if o.met { "yes" } else { "**no**" };
        writeln!(
            text,
            "| `{}` | {} | {} | {} | {met} | {} | {} | {} |",
            o.name, o.value, o.unit, o.goal, o.peer, o.peer_value, o.ratio
        )?;
    }
    Ok(())
}

/// Processors and memory, as far as the system says.
fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|l| l.starts_with(name)).map(str::to_owned);
        line.and_then(|l| Some(l.split_once(':')?.1.trim().to_owned())).unwrap_or_default()
    };
    let cpu = field(&read("/proc/cpuinfo"), "model name");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = field(&read("/proc/meminfo"), "MemTotal");
    let kernel = read("/proc/sys/kernel/osrelease");
    let busy = read("/proc/loadavg");
    let busy = busy.split_whitespace().next().unwrap_or("?").to_owned();
    format!(
        "{cores} cores of {cpu}, {memory} of memory, Linux {}; both ends on this machine, load \
         average {busy} at the end",
        kernel.trim()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_part_is_written_and_the_other_stays() {
        let old = "# Results\n\none\n\n## Beside argocd-agent\n\ntwo\n";
        let fleet = renewed(old, Part::Fleet, "# Results\n\nthree\n");
        assert_eq!(fleet, "# Results\n\nthree\n\n## Beside argocd-agent\n\ntwo\n");
        let argocd = renewed(old, Part::Argocd, "## Beside argocd-agent\n\nfour\n");
        assert_eq!(argocd, "# Results\n\none\n\n## Beside argocd-agent\n\nfour\n");
        let first = renewed("# Results\n\none\n", Part::Argocd, "## Beside argocd-agent\n");
        assert_eq!(first, "# Results\n\none\n\n## Beside argocd-agent\n");
        assert_eq!(renewed("", Part::Fleet, "# Results\n"), "# Results\n");
    }

    #[test]
    fn results_name_the_commit_and_whether_it_is_all() {
        assert_eq!(named(Some("59f6c824d146"), Some("")), "`59f6c824d146`");
        let changed = named(Some("59f6c824d146"), Some(" M a.rs\n?? b.rs"));
        assert_eq!(changed, "`59f6c824d146` and **changes that are in no commit**, in 2 files");
        assert!(named(None, None).contains("unknown"));
        for part in [Part::Fleet, Part::Argocd] {
            let text = text(part, "`59f6c824d146`", &[]).unwrap();
            assert!(text.contains("\n- commit: `59f6c824d146`\n"), "{text}");
        }
    }
}
