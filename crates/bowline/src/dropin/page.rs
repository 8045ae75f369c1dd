//! `docs/argocd-agent-flags.md`, made from the tables.

use std::fmt::Write as _;

use super::flags::{AGENT, Effect, Flag, PRINCIPAL};

const HEAD: &str = "\
# Flags of argocd-agent, and what becomes of them

Under the name `argocd-agent` (a link to the `bowline` binary) the command lines and variables of
argocd-agent work as they stand; `bowline principal` takes the same flags. A flag beats its variable,
which beats the default. What is taken without effect is named at the start, with the reason; an unknown
flag is refused with the nearest name. This page is made from the table that reads the flags
(`crates/bowline/src/dropin/flags/`), and a test holds it to that.

Beside these, settings of Bowline's own are taken from `BOWLINE_*` variables (`docs/operations.md`):
`BOWLINE_DATA` is the folder of the store (`bowline-hub`, `bowline-agent` in the working folder), and
`BOWLINE_API` where `bowline` commands connect.
";

/// The whole page.
pub fn page() -> String {
    let mut out = HEAD.to_owned();
    section(&mut out, "principal", PRINCIPAL);
    section(&mut out, "agent", AGENT);
    out
}

fn section(out: &mut String, role: &str, table: &[Flag]) {
    let _ = write!(out, "\n## argocd-agent {role}\n\n");
    out.push_str("| flag | variable | default | what it does |\n|---|---|---|---|\n");
    for flag in table {
        let short = flag.short.map_or(String::new(), |c| format!(", `-{c}`"));
        let name =
            if flag.name.is_empty() { "-".to_owned() } else { format!("`--{}`{short}", flag.name) };
        let variable = if flag.env.is_empty() { "-".to_owned() } else { format!("`{}`", flag.env) };
        let default =
            if flag.default.is_empty() { String::new() } else { format!("`{}`", flag.default) };
        let words = match flag.effect {
            Effect::Same(words) => words.to_owned(),
            Effect::Nothing(why) => format!("**no effect**: {why}"),
            Effect::Missing { unless, why } => {
                format!("**no effect**: {why}; said at the start unless it is `{unless}`")
            }
        };
        let words = words.replace('|', "\\|");
        let _ = writeln!(out, "| {name} | {variable} | {default} | {words} |");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_says_what_the_tables_say() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/argocd-agent-flags.md");
        let page = super::page();
        if std::env::var_os("BOWLINE_WRITE").is_some() {
            std::fs::write(path, &page).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap();
        assert_eq!(written, page, "write the page with BOWLINE_WRITE=1 and this test");
    }
}
