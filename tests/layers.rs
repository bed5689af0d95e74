//! The layers of the crate: an import points to the same folder or to a layer that the importing one may use.
//!
//! Reads every `use crate::…` of `src`, and every path `crate::…` outside of one.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Module, and the modules that it may import. Ground modules stand first; a module that is not here fails the test.
const LAYERS: &[(&str, &[&str])] = &[
    // Ground: nothing of ours.
    ("error", &[]),
    ("clock", &[]),
    ("quiet", &[]),
    ("shutdown", &["quiet"]),
    ("setting", &[]),
    ("readiness", &[]),
    ("machine", &[]),
    ("stop", &[]),
    // The registry core: no I/O, no wire format.
    ("registry", &["error", "clock", "shutdown", "setting"]),
    // Wire forms.
    ("wire", &["error", "clock", "registry"]),
    // Between nodes.
    ("cluster", &["error", "clock", "quiet", "shutdown", "setting", "readiness", "registry", "wire"]),
    // Pushes.
    ("push", &["error", "clock", "shutdown", "setting", "registry", "wire"]),
    // The use cases.
    ("naming", &["error", "clock", "shutdown", "setting", "registry", "wire", "push", "cluster"]),
    // Front ends.
    (
        "api",
        &[
            "error",
            "clock",
            "quiet",
            "shutdown",
            "setting",
            "readiness",
            "machine",
            "registry",
            "wire",
            "push",
            "naming",
        ],
    ),
    // Edges.
    ("data_dir", &[]),
    ("listen", &[]),
    ("telemetry", &["setting", "registry", "api"]),
    ("config", &["setting", "registry", "cluster", "push", "api", "telemetry"]),
    (
        "node",
        &[
            "api",
            "clock",
            "cluster",
            "config",
            "data_dir",
            "listen",
            "machine",
            "naming",
            "push",
            "readiness",
            "registry",
            "shutdown",
            "stop",
            "telemetry",
        ],
    ),
    ("cli", &["config", "node", "telemetry", "setting"]),
    ("main", &[]),
    ("lib", &[]),
];

/// Parts of the registry that only it itself, the use cases and pushes may hold: front ends go through `naming`.
const STORES: &[&str] = &["RegistryHandle", "store::"];

#[test]
fn imports_never_run_from_a_lower_layer_to_a_higher_one() {
    let allowed: BTreeMap<_, BTreeSet<_>> =
        LAYERS.iter().map(|(module, uses)| (*module, uses.iter().copied().collect())).collect();
    let mut wrong = Vec::new();
    for file in sources(Path::new("src")) {
        let module = module_of(&file);
        let uses = allowed.get(module.as_str()).unwrap_or_else(|| panic!("{module} is in no layer"));
        for (line, import) in imports(&file) {
            if import != module && !uses.contains(import.as_str()) {
                wrong.push(format!("{}:{line}: {module} imports {import}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn front_ends_hold_no_store() {
    let mut wrong = Vec::new();
    for file in sources(Path::new("src/api")) {
        for (number, line) in without_tests(&fs::read_to_string(&file).unwrap()).lines().enumerate() {
            if STORES.iter().any(|store| line.contains(store)) {
                wrong.push(format!("{}:{}: {}", file.display(), number + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// `src/registry/key.rs` and `src/registry.rs` are of the module `registry`.
fn module_of(file: &Path) -> String {
    let inside = file.strip_prefix("src").unwrap();
    let first = inside.components().next().unwrap().as_os_str().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
}

/// The top-level modules that a file names, with their lines. Unit tests may import what they like.
fn imports(file: &Path) -> Vec<(usize, String)> {
    let text = fs::read_to_string(file).unwrap();
    let text = without_tests(&text);
    let mut found = Vec::new();
    let mut rest = text.as_str();
    let mut offset = 0;
    while let Some(at) = rest.find("crate::") {
        let line = text[..offset + at].lines().count().max(1);
        let after = &rest[at + "crate::".len()..];
        if let Some(group) = after.strip_prefix('{') {
            found.extend(heads_of_group(group).into_iter().map(|head| (line, head)));
        } else {
            found.push((line, head(after)));
        }
        offset += at + "crate::".len();
        rest = after;
    }
    let comment = |line: usize| text.lines().nth(line - 1).is_some_and(|text| text.trim_start().starts_with("//"));
    found.retain(|(line, head)| !head.is_empty() && !comment(*line));
    found
}

fn without_tests(text: &str) -> String {
    text.split("#[cfg(test)]").next().unwrap_or_default().to_owned()
}

/// The first names of a braced import: those at the depth of its own brace.
fn heads_of_group(group: &str) -> Vec<String> {
    let (mut heads, mut depth, mut fresh) = (Vec::new(), 0, true);
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => fresh = true,
            letter if fresh && depth == 0 && letter.is_ascii_lowercase() => {
                heads.push(head(&group[at..]));
                fresh = false;
            }
            _ => {}
        }
    }
    heads
}

fn head(path: &str) -> String {
    path.chars().take_while(|character| character.is_ascii_alphanumeric() || *character == '_').collect()
}
