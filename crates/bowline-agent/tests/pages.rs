//! Every code that an operator can meet has a page.

use std::path::Path;

#[test]
fn every_code_of_the_local_api_has_its_page() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    let started = (1001..=1011).map(|n| format!("BL-{n}"));
    for code in bowline_agent::Code::ALL.iter().map(|c| c.as_str().to_owned()).chain(started) {
        assert!(pages.join(format!("{code}.md")).is_file(), "{code} has no page");
    }
}
