//! Turns every file under `proto/` into Rust code, and into the descriptor set that server reflection serves.
//!
//! The compiler is written in Rust (protox), so no `protoc` is needed.

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
};

use prost::Message;

/// Root of all protos; import paths start below it.
const ROOT: &str = "proto";

/// What clients never see: the conversation between nodes is not part of the reflected API.
const PEER_PACKAGE: &str = "nomina.peer.";

fn main() -> Result<(), Box<dyn Error>> {
    let mut protos = Vec::new();
    collect(Path::new(ROOT), &mut protos)?;
    protos.sort();

    let mut set = protox::compile(&protos, [ROOT])?;
    tonic_prost_build::configure().btree_map(".").compile_fds(set.clone())?;

    set.file.retain(|file| !file.package().starts_with(PEER_PACKAGE));
    for file in &mut set.file {
        file.source_code_info = None;
    }
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("client_api.bin"), set.encode_to_vec())?;
    Ok(())
}

/// Adds the `.proto` files below `dir` to `found`, and asks cargo to run this again when one changes or is added.
fn collect(dir: &Path, found: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={}", dir.display());
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "proto") {
            println!("cargo::rerun-if-changed={}", path.display());
            found.push(path);
        }
    }
    Ok(())
}
