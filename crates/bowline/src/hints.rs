//! What to do about a coded error: the first words of its page under `docs/errors/`.

/// Each code and its page, gathered by `build.rs`: hints and pages never differ.
const PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// What to do about an error whose text bears a code. Of several the hub's and the agent's own
/// count before those of the wire, which only say how it broke.
pub(crate) fn of(message: &str) -> Option<String> {
    let words = || message.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let page = |word: &str| PAGES.iter().find(|(code, _)| *code == word).map(|(_, page)| *page);
    let ours = words().filter(|word| word.starts_with("BL-")).find_map(page);
    first_sentence(ours.or_else(|| words().find_map(page))?)
}

/// The first sentence of what to do, as it reads behind `hint: `.
fn first_sentence(page: &str) -> Option<String> {
    let (_, advice) = page.split_once("## What to do\n")?;
    let paragraph = advice.trim_start().split("\n\n").next()?;
    let words: Vec<_> = paragraph.trim_start_matches("- ").split_whitespace().collect();
    let text = words.join(" ");
    let sentence = text.split(". ").next()?.trim_end_matches('.');
    let mut letters = sentence.chars();
    let first = letters.next()?.to_lowercase();
    Some(first.chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_gives_a_hint() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors");
        for page in std::fs::read_dir(folder).unwrap() {
            let name = page.unwrap().file_name().into_string().unwrap();
            let code = name.trim_end_matches(".md");
            let hint = of(&format!("it failed ({code})"));
            assert!(hint.is_some_and(|h| h.len() > 5 && !h.contains('\n')), "{code} lacks a hint");
        }
    }

    #[test]
    fn the_hint_is_about_the_innermost_of_our_codes() {
        assert_eq!(of("no code here"), None);
        let key = of("there is no such key: \"x\" (BL-0123)");
        assert_eq!(key.as_deref(), Some("see `bowline kv list PREFIX`"));
        let joined = of("joining: refused by the peer (W201): BL-0312: it has expired (BL-1003)");
        assert_eq!(joined.as_deref(), Some("make another: `bowline join-token NAME`"));
    }
}
