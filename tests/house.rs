//! The rules of the house: who may know whom, which licences come in, how long files may be, and
//! that documents name only what exists.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Layers from the nouns up; a crate knows only crates of lower layers, and of its own where the
/// table in ARCHITECTURE.md says so.
const LAYERS: &[(&str, u32)] = &[
    ("bowline-types", 0),
    ("bowline-sync", 1),
    ("bowline-resources", 1),
    ("bowline-store", 2),
    ("bowline-identity", 2),
    ("bowline-kube", 2),
    ("bowline-wire", 2),
    ("bowline-argocd", 2),
    ("bowline-drive", 3),
    ("bowline-client", 3),
    ("bowline-hub", 4),
    ("bowline-agent", 4),
    ("bowline-sim", 4),
    ("bowline-load", 4),
    ("bowline", 5),
    ("bowline-bench", 6),
    ("bowline-ordeal", 6),
    ("bowline-testbed", 6),
    ("bowline-tests", 6),
];

/// Crates that only one of ours may name.
const WRAPPED: &[(&str, &[&str])] = &[
    ("rusqlite", &["bowline-store"]),
    ("tonic", &["bowline-wire", "bowline-bench"]),
    ("rcgen", &["bowline-identity", "bowline-wire"]),
    ("kube", &["bowline-kube"]),
    ("k8s-openapi", &["bowline-kube"]),
];

/// What the pure layer must not bring in.
const IMPURE: &[&str] = &["tokio", "mio", "rusqlite", "tonic", "hyper", "rand", "tracing"];

/// What the `clippy.toml` of a crate of layer 0 or 1 forbids.
const FORBIDDEN: &[(&str, &[&str])] = &[
    (
        "disallowed-methods",
        &["std::time::Instant::now", "std::time::SystemTime::now", "std::thread::spawn"],
    ),
    ("disallowed-types", &["std::collections::HashMap", "std::collections::HashSet"]),
];

const LICENCES: &[&str] = &[
    "MIT",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "BSL-1.0",
    "CC0-1.0",
    "0BSD",
    "Unlicense",
    "MIT-0",
    "CDLA-Permissive-2.0",
    "OpenSSL",
    "LLVM-exception",
    "Apache-2.0 WITH LLVM-exception",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn metadata() -> Value {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let out = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// Our packages with the normal and build dependencies that they name.
fn ours(metadata: &Value) -> BTreeMap<String, Vec<String>> {
    let packages = metadata["packages"].as_array().unwrap();
    let ours = packages.iter().filter(|p| p["source"].is_null());
    ours.map(|p| {
        let deps = p["dependencies"].as_array().unwrap().iter();
        let named = deps.filter(|d| text(d, "kind") != "dev").map(|d| text(d, "name").to_owned());
        (text(p, "name").to_owned(), named.collect())
    })
    .collect()
}

#[test]
fn arrows_point_up_the_table_only() {
    let layers: BTreeMap<_, _> = LAYERS.iter().copied().collect();
    for (name, deps) in ours(&metadata()) {
        let layer = layers.get(name.as_str());
        let layer = layer.unwrap_or_else(|| panic!("{name} has no layer: add it to the table"));
        for dep in deps.iter().filter_map(|d| Some((d, layers.get(d.as_str())?))) {
            let peers = matches!(
                (name.as_str(), dep.0.as_str()),
                // The codec speaks the frames of the core.
                ("bowline-wire", "bowline-sync")
                // The dialect speaks the wire's messages.
                | ("bowline-argocd", "bowline-wire")
                // Long runs play on the same clusters as tests.
                | ("bowline-ordeal", "bowline-testbed")
                // Measurements beside argocd-agent play on the same clusters as tests.
                | ("bowline-bench", "bowline-testbed")
            );
            assert!(dep.1 < layer || peers, "{name} may not know {}", dep.0);
        }
    }
}

#[test]
fn some_crates_have_one_door() {
    for (name, deps) in ours(&metadata()) {
        for (wrapped, doors) in WRAPPED {
            let named = deps.iter().any(|d| d == wrapped);
            assert!(!named || doors.contains(&name.as_str()), "{name} may not name {wrapped}");
        }
    }
}

/// Who names a crate, in tests too, of ours and of others.
fn users(metadata: &Value, of: &str) -> BTreeSet<String> {
    let packages = metadata["packages"].as_array().unwrap().iter();
    let names: BTreeMap<_, _> = packages.map(|p| (text(p, "id"), text(p, "name"))).collect();
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap().iter();
    let uses =
        |n: &&Value| n["deps"].as_array().unwrap().iter().any(|d| names[text(d, "pkg")] == of);
    nodes.filter(uses).map(|n| names[text(n, "id")].to_owned()).collect()
}

#[test]
fn cargo_deny_knows_the_same_doors() {
    let (metadata, deny) = (metadata(), std::fs::read_to_string(root().join("deny.toml")).unwrap());
    assert!(deny.contains("allow-wildcard-paths = true"), "our crates name each other by path");
    for (wrapped, _) in WRAPPED {
        let rule = deny.split_once(&format!("{{ crate = {wrapped:?}, wrappers = ["));
        let rule = rule.unwrap_or_else(|| panic!("deny.toml lets everybody name {wrapped}")).1;
        let listed = rule.split_once(']').unwrap().0.split('"').skip(1).step_by(2);
        let listed: BTreeSet<_> = listed.map(str::to_owned).collect();
        assert_eq!(listed, users(&metadata, wrapped), "who names {wrapped}");
    }
}

#[test]
fn the_pure_layer_brings_in_nothing_impure() {
    let metadata = metadata();
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    let by_id: BTreeMap<_, _> = nodes.iter().map(|n| (text(n, "id"), n)).collect();
    let names: BTreeMap<_, _> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| (text(p, "id"), text(p, "name")))
        .collect();
    for pure in LAYERS.iter().filter(|l| l.1 <= 1).map(|l| l.0) {
        let start = names.iter().find(|(_, n)| **n == pure).map(|(id, _)| *id).unwrap();
        let (mut seen, mut queue) = (BTreeSet::new(), vec![start]);
        while let Some(id) = queue.pop() {
            if !seen.insert(id) {
                continue;
            }
            let name = names[id];
            assert!(!IMPURE.contains(&name), "{pure} brings in {name}");
            for dep in by_id[id]["deps"].as_array().unwrap() {
                let kinds = dep["dep_kinds"].as_array().unwrap();
                if kinds.iter().any(|k| k["kind"].is_null()) {
                    queue.push(text(dep, "pkg"));
                }
            }
        }
    }
}

#[test]
fn the_pure_layer_forbids_clocks_and_hash_maps() {
    for (pure, _) in LAYERS.iter().filter(|l| l.1 <= 1) {
        let path = root().join("crates").join(pure).join("clippy.toml");
        let rules = std::fs::read_to_string(path).unwrap_or_default();
        for (list, names) in FORBIDDEN {
            let listed = rules.split_once(&format!("{list} = [\n"));
            let listed = listed.and_then(|(_, rest)| rest.split_once("\n]")).map(|l| l.0);
            let listed = listed.unwrap_or_else(|| panic!("{pure}: clippy.toml has no {list}"));
            for name in *names {
                let ban = format!("{{ path = {name:?}, ");
                let ban = listed.lines().any(|l| l.trim_start().starts_with(&ban));
                assert!(ban, "{pure}: clippy.toml does not forbid {name}");
            }
        }
    }
}

#[test]
fn every_licence_is_one_we_accept() {
    let metadata = metadata();
    let mut refused = vec![];
    for p in metadata["packages"].as_array().unwrap() {
        let licence = text(p, "license").replace('/', " OR ").replace(['(', ')'], "");
        let ok = licence
            .split(" OR ")
            .any(|choice| choice.split(" AND ").all(|l| LICENCES.contains(&l.trim())));
        if !ok {
            refused.push(format!("{} {}: {licence:?}", text(p, "name"), text(p, "version")));
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
}

fn sources(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            sources(&path, out);
        } else if name.ends_with(".rs") {
            out.push(path);
        }
    }
}

#[test]
fn files_fit_in_the_head() {
    let mut files = vec![];
    ["crates", "tests", "bench", "fuzz"]
        .iter()
        .map(|d| root().join(d))
        .filter(|d| d.is_dir())
        .for_each(|d| {
            sources(&d, &mut files);
        });
    let mut long = vec![];
    for file in files {
        let source = std::fs::read_to_string(&file).unwrap();
        let lines = source.lines().count();
        let tests = source
            .find("#[cfg(test)]\nmod tests {")
            .map_or(lines, |at| source[..at].lines().count());
        let is_test = file.components().any(|c| c.as_os_str() == "tests");
        if tests > 600 && !is_test {
            long.push(format!("{} has {tests} lines", file.display()));
        }
        assert!(source.is_ascii(), "{} is not ASCII", file.display());
        assert!(source.starts_with("//!"), "{} does not say what it is", file.display());
        if file.ends_with("src/main.rs") {
            assert!(lines < 100, "{} is a program of its own", file.display());
        }
    }
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn nothing_names_this_machine_or_a_registry() {
    let out = Command::new("git").args(["ls-files"]).current_dir(root()).output().unwrap();
    // Spelled in pieces, so that this file does not name them itself.
    let banned = [
        ["crates", ".io"],
        ["static.crates", ".io"],
        ["proxy.golang", ".org"],
        ["pypi", ".org"],
        ["/work", "/"],
    ];
    for file in String::from_utf8_lossy(&out.stdout).lines().filter(|f| !f.ends_with(".lock")) {
        let Ok(source) = std::fs::read_to_string(root().join(file)) else { continue };
        for name in banned.map(|b| b.concat()) {
            assert!(!source.contains(&name), "{file} names {name}");
        }
    }
}

/// The cells of the table rows of a document, without heading and rule.
fn rows(document: &str) -> Vec<Vec<String>> {
    let lines = document.lines().filter(|l| l.starts_with('|') && !l.starts_with("|--"));
    let cells = |l: &str| l.trim_matches('|').split('|').map(|c| c.trim().to_owned()).collect();
    lines.skip(1).map(cells).collect()
}

#[test]
fn every_dependency_is_argued_once_and_truly() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    let mut used: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for p in packages.iter().filter(|p| p["source"].is_null()) {
        let theirs = p["dependencies"].as_array().unwrap().iter().filter(|d| d["path"].is_null());
        for dep in theirs {
            used.entry(text(dep, "name")).or_default().insert(text(p, "name"));
        }
    }
    let document = std::fs::read_to_string(root().join("docs/dependencies.md")).unwrap();
    let mut argued = BTreeSet::new();
    for row in rows(&document) {
        let [name, users, why, licence] = &row[..] else { panic!("not four cells: {row:?}") };
        let name = name.trim_matches('`').to_owned();
        let real = used.get(name.as_str()).unwrap_or_else(|| panic!("nobody uses {name}"));
        for user in users.split(", ").map(|u| u.split(' ').next().unwrap_or(u)) {
            let known = real.contains(user) || real.contains(format!("bowline-{user}").as_str());
            assert!(known, "{user} does not use {name}");
        }
        assert!(!why.is_empty(), "{name} is not argued");
        let named = packages.iter().filter(|p| text(p, "name") == name);
        let licences: BTreeSet<_> = named.map(|p| text(p, "license")).collect();
        assert!(licences.contains(licence.as_str()), "{name} is under {licences:?}");
        assert!(argued.insert(name.clone()), "{name} is argued twice");
    }
    let missing: Vec<_> = used.keys().filter(|name| !argued.contains(**name)).collect();
    assert!(missing.is_empty(), "argue these in docs/dependencies.md: {missing:?}");
}

#[test]
fn the_workspace_lists_only_dependencies_that_somebody_uses() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let listed = manifest.split("[workspace.dependencies]").nth(1).unwrap();
    let listed = listed.split("\n[").next().unwrap();
    let listed = listed.lines().filter_map(|l| l.split_once(" = ")).map(|(name, _)| name);
    let metadata = metadata();
    let ours = metadata["packages"].as_array().unwrap().iter().filter(|p| p["source"].is_null());
    let used: BTreeSet<_> = ours
        .flat_map(|p| p["dependencies"].as_array().unwrap().iter().map(|d| text(d, "name")))
        .collect();
    let unused: Vec<_> = listed.filter(|name| !used.contains(name)).collect();
    assert!(unused.is_empty(), "nobody uses {unused:?}");
}

/// The codes in a text: a prefix followed by so many digits and no more.
fn codes(text: &str, prefix: &str, digits: usize) -> BTreeSet<String> {
    let is_digit = |c: char| c.is_ascii_digit();
    let found = text.match_indices(prefix).filter_map(|(at, _)| {
        let number: String =
            text[at + prefix.len()..].chars().take_while(|c| is_digit(*c)).collect();
        (number.len() == digits).then(|| format!("{prefix}{number}"))
    });
    found.collect()
}

#[test]
fn codes_of_wire_and_protocol_have_their_pages_and_no_page_is_stale() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let mut needed = codes(&read("crates/bowline-wire/src/error.rs"), "\"W", 3);
    needed = needed.iter().map(|c| c.trim_matches('"').to_owned()).collect();
    assert!(!needed.is_empty(), "the wire has codes");
    for file in ["drive/src/links.rs", "drive/src/pressure.rs", "sync/src/propose.rs"] {
        let codes = codes(&read(&format!("crates/bowline-{file}")), "BL-", 4);
        assert!(!codes.is_empty(), "{file} has codes");
        needed.extend(codes);
    }
    for code in needed {
        let page = read(&format!("docs/errors/{code}.md"));
        assert!(page.starts_with(&format!("# {code}: ")), "{code}: begins with its name");
        assert!(page.contains("\n## What to do\n"), "{code} does not say what to do");
    }
    let mut files = vec![];
    sources(&root().join("crates"), &mut files);
    let code: String = files.iter().map(|f| std::fs::read_to_string(f).unwrap()).collect();
    for page in std::fs::read_dir(root().join("docs/errors")).unwrap().map(Result::unwrap) {
        let name = page.file_name().to_string_lossy().trim_end_matches(".md").to_owned();
        assert!(name == "README" || code.contains(&name), "no error is called {name}");
    }
}

#[test]
fn every_fuzz_target_is_built() {
    let manifest = std::fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
    for file in std::fs::read_dir(root().join("fuzz/targets")).unwrap().map(Result::unwrap) {
        let path = format!("path = \"targets/{}\"", file.file_name().to_string_lossy());
        assert!(manifest.contains(&path), "fuzz/Cargo.toml lacks {path}");
    }
}

#[test]
fn every_suite_is_run() {
    let script = std::fs::read_to_string(root().join("tests/all")).unwrap();
    assert!(script.contains("--lib --bins --examples --test '[!a]*'"), "the step of most tests");
    assert!(script.contains("--test argocd"), "the step beside it");
    let metadata = metadata();
    let packages =
        metadata["packages"].as_array().unwrap().iter().filter(|p| p["source"].is_null());
    let targets = packages.flat_map(|p| p["targets"].as_array().unwrap());
    let suites = targets.filter(|t| t["kind"][0] == "test").map(|t| text(t, "name"));
    let beside: Vec<_> = suites.filter(|name| name.starts_with('a')).collect();
    assert_eq!(beside, ["argocd"], "tests/all would not run a suite that begins like it");
}
