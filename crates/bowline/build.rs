//! Gathers the pages of `docs/errors/`, so that `src/hints.rs` knows each of them.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let here = env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?;
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    let folder = Path::new(&here).join("../../docs/errors");
    println!("cargo::rerun-if-changed={}", folder.display());
    let pages: io::Result<Vec<_>> = fs::read_dir(&folder)?.map(|e| Ok(e?.path())).collect();
    let mut pages = pages?;
    pages.sort();
    let mut text = String::from("&[\n");
    for page in pages.iter().filter(|p| p.extension().is_some_and(|e| e == "md")) {
        let code = page.file_stem().unwrap_or_default().to_string_lossy();
        let _ = writeln!(text, "    ({code:?}, {:?}),", fs::read_to_string(page)?);
    }
    text.push_str("]\n");
    fs::write(Path::new(&out).join("pages.rs"), text)
}
