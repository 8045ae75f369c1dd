//! Files of objects: YAML with several documents, folders of them, or standard input.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use bowline_resources::Object;
use serde_json::Value;

use crate::failure::{Failure, Outcome};
use crate::{print, yaml};

/// One document and where it came from.
#[derive(Debug)]
pub struct Document {
    /// `hello.yaml, document 2 (line 14)`.
    pub place: String,
    /// What it says, or why it cannot be read.
    pub object: Result<Object, String>,
}

/// Reads all that a path means: `-` is standard input, a folder is its YAML and JSON files by name.
pub fn read(path: &Path) -> Outcome<Vec<Document>> {
    if path == Path::new("-") {
        let mut text = String::new();
        let read = std::io::stdin().read_to_string(&mut text);
        read.map_err(|e| Failure::new(format!("reading standard input: {e}")))?;
        return Ok(parse("standard input", &text));
    }
    let mut documents = vec![];
    for file in files(path)? {
        let text = std::fs::read_to_string(&file)
            .map_err(|e| Failure::new(format!("reading {}: {e}", file.display())))?;
        documents.extend(parse(&file.display().to_string(), &text));
    }
    Ok(documents)
}

fn files(path: &Path) -> Outcome<Vec<PathBuf>> {
    let failed = |e: std::io::Error| {
        let failure = Failure::new(format!("reading {}: {e}", path.display()));
        match e.kind() {
            std::io::ErrorKind::NotFound => Failure::not_found(failure.message),
            _ => failure,
        }
    };
    if !std::fs::metadata(path).map_err(failed)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let (mut found, mut skipped) = (vec![], vec![]);
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        if file.is_dir() {
            skipped.push(file.display().to_string());
        }
        let known = file.extension().is_some_and(|e| e == "yaml" || e == "yml" || e == "json");
        if known && file.is_file() {
            found.push(file);
        }
    }
    found.sort();
    skipped.sort();
    if !skipped.is_empty() {
        print::note(&format!("folders are not looked into: {}\n", skipped.join(", ")));
    }
    if found.is_empty() {
        return Err(Failure::not_found(format!("no YAML or JSON file in {}", path.display())));
    }
    Ok(found)
}

/// Takes a text apart. Each document stands alone, so that a bad one does not spoil the others.
pub fn parse(name: &str, text: &str) -> Vec<Document> {
    let mut out = vec![];
    for Part { line, above, text } in split(text) {
        let place = format!("{name}, document {} (line {line})", out.len() + 1);
        match serde_saphyr::from_str::<Value>(&text) {
            Ok(Value::Null) => {}
            Ok(value) => {
                out.extend(flatten(value).into_iter().map(|value| Document {
                    place: place.clone(),
                    object: Object::from_value(value).map_err(|e| e.to_string()),
                }));
            }
            Err(error) => out.push(Document { place, object: Err(yaml::problem(&error, above)) }),
        }
    }
    out
}

/// The items of a `kind: List`, else the value itself.
fn flatten(mut value: Value) -> Vec<Value> {
    let is_list = value.get("kind").and_then(Value::as_str).is_some_and(|k| k.ends_with("List"));
    match value.get_mut("items") {
        Some(Value::Array(items)) if is_list => std::mem::take(items),
        _ => vec![value],
    }
}

/// One document's text.
struct Part {
    /// The line on which it begins.
    line: usize,
    /// How many lines of the file are above its text; a divider is the first line of what follows.
    above: usize,
    text: String,
}

/// Documents with the line on which each begins. A `---` in the first column always divides.
fn split(text: &str) -> Vec<Part> {
    let mut parts = vec![Part { line: 1, above: 0, text: String::new() }];
    for (at, line) in text.lines().enumerate() {
        let rest = line.strip_prefix("---").filter(|r| r.is_empty() || r.starts_with([' ', '\t']));
        match (rest, parts.last_mut()) {
            (Some(rest), _) => {
                let text = format!("{}\n", rest.trim());
                parts.push(Part { line: at + 2, above: at, text });
            }
            (None, Some(part)) => {
                part.text.push_str(line);
                part.text.push('\n');
            }
            (None, None) => {}
        }
    }
    let is_empty = |part: &str| {
        part.lines()
            .all(|l| l.trim().is_empty() || l.trim_start().starts_with('#') || l.trim() == "...")
    };
    parts.retain(|part| !is_empty(&part.text));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "# a comment
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data:
  text: |
    --- not a divider
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: [broken
---
# nothing
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, labels: {on: yes}}
--- # the last
apiVersion: v1
kind: ConfigMapList
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}
";

    #[test]
    fn a_bad_document_does_not_spoil_the_others() {
        let found = parse("f.yaml", TWO);
        let names: Vec<_> =
            found.iter().map(|d| d.object.as_ref().map(|o| o.metadata.name.clone()).ok()).collect();
        assert_eq!(names[0].as_deref(), Some("a"));
        assert_eq!(names[1], None);
        assert_eq!(names[3].as_deref(), Some("c"));
        assert_eq!(found[1].place, "f.yaml, document 2 (line 10)");
        let told = found[1].object.as_ref().unwrap_err();
        assert!(told.ends_with("at line 13, column 9"), "{told}");
        let data = &found[0].object.as_ref().unwrap().rest["data"]["text"];
        assert_eq!(data, "--- not a divider\n");
    }

    #[test]
    fn folders_are_read_by_name_and_empty_ones_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(folder.path()).is_err());
        let object =
            |name: &str| format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\n");
        for name in ["b.yaml", "a.yml", "ignored.txt"] {
            std::fs::write(folder.path().join(name), object(&name[..1])).unwrap();
        }
        let found = read(folder.path()).unwrap();
        let names: Vec<_> =
            found.iter().map(|d| &d.object.as_ref().unwrap().metadata.name).collect();
        assert_eq!(names, ["a", "b"]);
        assert!(read(Path::new("no/such/file.yaml")).is_err());
    }

    #[test]
    fn our_own_yaml_reads_back_as_it_was() {
        let value = serde_json::json!({
            "on": "true", "list": [[], {}, [1, [2, {"a": "b: c"}]], "x # y", "- z", "~", "1e3", "0x1f"],
            "text": "two\nlines\n", "odd": " pad ", "tab": "a\tb", "num": -1.5, "key: x": null,
            "quote": "it's \"so\"", "empty": "", "last": "no newline\nat end", "12": "y", "date": "2020-01-01",
        });
        let text = bowline_resources::yaml(&value);
        let back: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(back, value, "{text}");
    }
}
