//! `RESULTS.md`: what was measured last, when, where and how.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;

use crate::outcome::Outcome;

/// Writes the table anew.
pub(crate) fn write(outcomes: &[Outcome]) -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("RESULTS.md");
    std::fs::write(path, table(outcomes)?)?;
    Ok(())
}

fn table(outcomes: &[Outcome]) -> Result<String> {
    let mut text = String::from(
        "# Results\n\nWritten by `bench/run --all`; what each line means is in `README.md`.\n\n",
    );
    writeln!(text, "- date: {}", bowline_resources::rfc3339(crate::seed::now()))?;
    writeln!(text, "- machine: {}", machine())?;
    writeln!(text, "- command: `bench/run --all`")?;
    let scale = crate::stage::scale();
    if scale < 1.0 {
        writeln!(text, "- **made smaller**: BOWLINE_BENCH_SCALE={scale}")?;
    }
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
    text.push('\n');
    for o in outcomes.iter().filter(|o| !o.note.is_empty()) {
        writeln!(text, "- `{}`: {}", o.name, o.note)?;
    }
    Ok(text)
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
