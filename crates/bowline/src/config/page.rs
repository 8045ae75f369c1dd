//! Holds `docs/settings.md` against the settings that the code knows.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Agent, Hub, Layers, Role};

const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md"));

/// The rows under a heading: setting and default.
fn rows(heading: &str) -> BTreeMap<String, String> {
    let (_, rest) = PAGE.split_once(&format!("\n## {heading}\n")).expect("the heading is there");
    let section = rest.split("\n## ").next().unwrap_or_default();
    let mut rows = BTreeMap::new();
    for line in section.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<_> = line.trim_matches('|').splitn(3, " | ").map(str::trim).collect();
        let [name, default, meaning] = cells[..] else { panic!("three cells: {line}") };
        assert!(meaning.len() > 10, "a setting without a meaning: {line}");
        let bare = |cell: &str| cell.trim_matches('`').to_owned();
        let twice = rows.insert(bare(name), bare(default));
        assert!(twice.is_none(), "{name} is there twice");
    }
    rows
}

/// The settings of a role: name and default, as the page spells it.
fn known<R: Role>() -> BTreeMap<String, String> {
    let loaded = Layers::default().load::<R>().expect("the defaults are good");
    let spelled = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    loaded.all().map(|(path, value)| (path.to_owned(), spelled(value))).collect()
}

#[test]
fn the_page_has_every_setting_of_a_hub_with_its_default() {
    assert_eq!(rows("Hub"), known::<Hub>());
}

#[test]
fn the_page_has_every_setting_of_an_agent_with_its_default() {
    assert_eq!(rows("Agent"), known::<Agent>());
}
