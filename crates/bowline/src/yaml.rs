//! What is wrong with a YAML text, in one line, with the line of the file that it is on.

use serde_saphyr::{Error, RenderOptions, SnippetMode, UserMessageFormatter};

/// What is wrong; `above` lines of the file came before the text that was read.
pub fn problem(error: &Error, above: usize) -> String {
    let mut options = RenderOptions::default();
    options.formatter = &UserMessageFormatter;
    options.snippets = SnippetMode::Off;
    options.line_offset = above as u64;
    error.render_with_options(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_one_line_that_names_the_line_of_the_file() {
        let error = serde_saphyr::from_str::<serde_json::Value>("a: 1\nb: [x\n").unwrap_err();
        let told = problem(&error, 10);
        assert!(told.ends_with("at line 12, column 4"), "{told}");
        assert!(!told.contains("<input>") && !told.contains('\n'), "{told}");
        let twice = serde_saphyr::from_str::<serde_json::Value>("a: 1\na: 2\n").unwrap_err();
        let told = problem(&twice, 0);
        assert!(!told.contains("Policy") && told.contains("line 2"), "{told}");
    }
}
