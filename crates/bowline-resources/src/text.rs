//! Objects as text: YAML for people, and the difference of two as a unified diff.

use std::fmt::Write as _;

use serde_json::Value;

use crate::Object;

/// A value as YAML, fields of objects in the usual order (apiVersion, kind, metadata, spec, ...).
pub fn yaml(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => mapping(&mut out, value, 0),
        Value::Array(list) if !list.is_empty() => sequence(&mut out, value, 0),
        other => {
            scalar(&mut out, other, 0);
            out.push('\n');
        }
    }
    out
}

/// How two objects differ, in lines of YAML with three lines of context; empty if they do not.
/// Only what a person means counts: status and what a server adds are left out.
pub fn diff_text(old: Option<&Object>, new: Option<&Object>) -> String {
    let text =
        |o: Option<&Object>| o.map_or(String::new(), |o| yaml(&o.intended().redacted().to_value()));
    let (old, new) = (text(old), text(new));
    unified(&old.lines().collect::<Vec<_>>(), &new.lines().collect::<Vec<_>>())
}

fn mapping(out: &mut String, value: &Value, indent: usize) {
    let Value::Object(map) = value else { return };
    let mut keys: Vec<&String> = map.keys().collect();
    keys.sort_by_key(|k| (rank(k, indent), k.as_str()));
    for (at, key) in keys.iter().enumerate() {
        if at > 0 || !out.ends_with("- ") {
            pad(out, indent);
        }
        out.push_str(&text_of(key));
        out.push(':');
        entry(out, &map[*key], indent + 2, indent);
    }
}

fn sequence(out: &mut String, value: &Value, indent: usize) {
    let Value::Array(list) = value else { return };
    for (at, item) in list.iter().enumerate() {
        if at > 0 || !out.ends_with("- ") {
            pad(out, indent);
        }
        out.push_str("- ");
        match item {
            Value::Object(map) if !map.is_empty() => mapping(out, item, indent + 2),
            Value::Array(inner) if !inner.is_empty() => sequence(out, item, indent + 2),
            other => {
                scalar(out, other, indent + 2);
                out.push('\n');
            }
        }
    }
}

/// What follows a key's colon. Sequences hang at the key's own depth, as everyone writes them.
fn entry(out: &mut String, value: &Value, deeper: usize, same: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            mapping(out, value, deeper);
        }
        Value::Array(list) if !list.is_empty() => {
            out.push('\n');
            sequence(out, value, same);
        }
        other => {
            out.push(' ');
            scalar(out, other, deeper);
            out.push('\n');
        }
    }
}

fn scalar(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::String(text) if is_block(text) => block(out, text, indent),
        Value::String(text) => out.push_str(&text_of(text)),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
        other => out.push_str(&other.to_string()),
    }
}

/// Whether a text of several lines may be written as a block.
fn is_block(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or(text);
    body.contains('\n')
        && !body.ends_with('\n')
        && !text.starts_with([' ', '\n', '\t'])
        && text.chars().all(|c| c == '\n' || (!c.is_control() && c.is_ascii()))
        && body.lines().all(|l| !l.ends_with(' '))
}

fn block(out: &mut String, text: &str, indent: usize) {
    out.push_str(if text.ends_with('\n') { "|" } else { "|-" });
    for line in text.lines() {
        out.push('\n');
        if !line.is_empty() {
            pad(out, indent);
            out.push_str(line);
        }
    }
}

/// Plain where no reader could take it for something else, else in double quotes as JSON has them.
fn text_of(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./ :@+,()".contains(c))
        && !text.contains(": ")
        && !text.ends_with([' ', ':'])
        && !is_word(text);
    if plain { text.to_owned() } else { Value::from(text).to_string() }
}

/// Words that some YAML reader takes for a boolean, null or number.
fn is_word(text: &str) -> bool {
    let words =
        ["true", "false", "yes", "no", "on", "off", "null", "y", "n", "nan", "inf", "infinity"];
    words.iter().any(|w| text.eq_ignore_ascii_case(w))
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

/// The usual order of an object's fields; the rest by name.
fn rank(key: &str, indent: usize) -> usize {
    let top = ["apiVersion", "kind", "metadata"];
    let bottom = ["spec", "status"];
    if indent > 0 && key == "name" {
        return 0;
    }
    let at = top.iter().position(|k| *k == key).map(|at| at + 1);
    at.or_else(|| bottom.iter().position(|k| *k == key).map(|at| at + 20)).unwrap_or(10)
}

const CONTEXT: usize = 3;
/// Beyond so many cells the middle is shown as replaced whole, rather than compared for long.
const MOST_CELLS: usize = 4_000_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Both,
    Old,
    New,
}

fn unified(old: &[&str], new: &[&str]) -> String {
    let lines = compare(old, new);
    let near = |at: usize| {
        let (from, to) = (at.saturating_sub(CONTEXT), (at + CONTEXT + 1).min(lines.len()));
        lines[from..to].iter().any(|(side, _)| *side != Side::Both)
    };
    let (mut out, mut hunk) = (String::new(), Hunk::default());
    let (mut old_at, mut new_at) = (1, 1);
    for (at, (side, line)) in lines.iter().enumerate() {
        if near(at) {
            hunk.add(*side, line, (old_at, new_at));
        } else {
            std::mem::take(&mut hunk).finish(&mut out);
        }
        old_at += usize::from(*side != Side::New);
        new_at += usize::from(*side != Side::Old);
    }
    hunk.finish(&mut out);
    out
}

/// Lines that are shown together, and where they stand on either side.
#[derive(Default)]
struct Hunk {
    text: String,
    at: (usize, usize),
    count: (usize, usize),
}

impl Hunk {
    fn add(&mut self, side: Side, line: &str, at: (usize, usize)) {
        if self.text.is_empty() {
            self.at = at;
        }
        let mark = match side {
            Side::Both => ' ',
            Side::Old => '-',
            Side::New => '+',
        };
        let _ = writeln!(self.text, "{mark}{line}");
        self.count.0 += usize::from(side != Side::New);
        self.count.1 += usize::from(side != Side::Old);
    }

    fn finish(self, out: &mut String) {
        if self.text.is_empty() {
            return;
        }
        // A side that has no line of it stands at the line before, as everyone writes it.
        let start = |at: usize, count: usize| if count == 0 { at - 1 } else { at };
        let (old, new) = (start(self.at.0, self.count.0), start(self.at.1, self.count.1));
        let _ = writeln!(out, "@@ -{old},{} +{new},{} @@", self.count.0, self.count.1);
        out.push_str(&self.text);
    }
}

fn compare<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(Side, &'a str)> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (a, b) = (&old_rest[..old_rest.len() - tail], &new_rest[..new_rest.len() - tail]);
    let mut out: Vec<_> = old[..head].iter().map(|l| (Side::Both, *l)).collect();
    if a.len().saturating_mul(b.len()) > MOST_CELLS {
        out.extend(a.iter().map(|l| (Side::Old, *l)));
        out.extend(b.iter().map(|l| (Side::New, *l)));
    } else {
        walk(a, b, &mut out);
    }
    out.extend(old_rest[a.len()..].iter().map(|l| (Side::Both, *l)));
    out
}

/// The longest common subsequence, by the usual table.
fn walk<'a>(a: &[&'a str], b: &[&'a str], out: &mut Vec<(Side, &'a str)>) {
    let width = b.len() + 1;
    let mut longest = vec![0_u32; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            longest[i * width + j] = if a[i] == b[j] {
                longest[(i + 1) * width + j + 1] + 1
            } else {
                longest[(i + 1) * width + j].max(longest[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            out.push((Side::Both, a[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == b.len()
            || (i < a.len() && longest[(i + 1) * width + j] >= longest[i * width + j + 1])
        {
            out.push((Side::Old, a[i]));
            i += 1;
        } else {
            out.push((Side::New, b[j]));
            j += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rng::Rng;

    #[test]
    fn yaml_reads_as_people_write_it() {
        let value = json!({
            "spec": {"list": [{"name": "a", "args": ["-x", "two words"]}, [], [1, [2]]], "none": {}},
            "kind": "Pod", "apiVersion": "v1",
            "metadata": {"name": "web", "labels": {"on": "true", "x.io/y": ""}},
            "script": "one\n  two\n", "num": 1.5, "nothing": null,
        });
        let expected = "apiVersion: v1
kind: Pod
metadata:
  name: web
  labels:
    \"on\": \"true\"
    x.io/y: \"\"
nothing: null
num: 1.5
script: |
  one
    two
spec:
  list:
  - name: a
    args:
    - \"-x\"
    - two words
  - []
  - - 1
    - - 2
  none: {}
";
        assert_eq!(yaml(&value), expected);
    }

    fn object(image: &str) -> Object {
        Object::from_value(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "uid": "u"},
            "spec": {"a": 1, "b": 2, "c": 3, "image": image, "x": 1, "yy": 2, "z": 3, "zz": 4},
        }))
        .unwrap()
    }

    #[test]
    fn a_difference_is_shown_with_its_surroundings() {
        let text = diff_text(Some(&object("one")), Some(&object("two")));
        let expected = "@@ -6,7 +6,7 @@
   a: 1
   b: 2
   c: 3
-  image: one
+  image: two
   x: 1
   yy: 2
   z: 3
";
        assert_eq!(text, expected);
        assert_eq!(diff_text(Some(&object("one")), Some(&object("one"))), "");
        let new = diff_text(None, Some(&object("one")));
        assert_eq!(new.lines().next(), Some("@@ -0,0 +1,13 @@"), "all of it is new");
        assert!(new.lines().skip(1).all(|l| l.starts_with('+')));
    }

    #[test]
    fn secrets_do_not_show_in_a_difference() {
        let secret = |v: &str| {
            Object::from_value(json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": v}
            }))
            .unwrap()
        };
        assert!(!diff_text(None, Some(&secret("aHVzaA=="))).contains("aHVzaA"));
    }

    #[test]
    fn both_sides_can_be_read_back_from_a_comparison() {
        let mut rng = Rng(9);
        for _ in 0..500 {
            let mut lines =
                || (0..rng.below(12)).map(|_| rng.pick(&["a", "b", "c"])).collect::<Vec<_>>();
            let (old, new) = (lines(), lines());
            let merged = compare(&old, &new);
            let side = |not: Side| {
                merged.iter().filter(|(s, _)| *s != not).map(|(_, l)| *l).collect::<Vec<_>>()
            };
            assert_eq!((side(Side::New), side(Side::Old)), (old, new));
        }
    }
}
