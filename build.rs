//! Collects `src/classify/providers/*.rs` into one table, sorted by the providers' names, so that a new provider is one
//! new file and touches nothing else. A file holds one `PROVIDER` whose `name: "…"` stands on a line of its own.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("src/classify/providers");
    println!("cargo::rerun-if-changed={}", dir.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(&dir)? {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|s| s.to_str()).unwrap_or_default().to_owned();
        if path.extension().is_none_or(|e| e != "rs") || stem == "mod" {
            continue;
        }
        let text = fs::read_to_string(&path)?;
        let name = text
            .lines()
            .find_map(|line| line.trim().strip_prefix("name: \"")?.strip_suffix("\","))
            .ok_or_else(|| format!("{}: no line `name: \"…\",`", path.display()))?
            .to_owned();
        found.push((name, stem, path));
    }
    found.sort();
    let mut code = String::new();
    for (_, stem, path) in &found {
        writeln!(code, "#[path = {:?}]\nmod {stem};", path.display().to_string())?;
    }
    writeln!(code, "static ALL: [&Provider; {}] = [", found.len())?;
    for (_, stem, _) in &found {
        writeln!(code, "    &{stem}::PROVIDER,")?;
    }
    writeln!(code, "];")?;
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("providers.rs"), code)?;
    Ok(())
}
