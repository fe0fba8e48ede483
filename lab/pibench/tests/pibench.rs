//! Tests that a C++ program can use the library as PiBench does: every ordered index except ablations, both headers,
//! files and memory.

use std::path::{Path, PathBuf};
use std::process::Command;
use wollemi::indexes::IndexKind;

/// Returns the shared library that Cargo has built for this test, beside the test or one directory above.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let places = test.ancestors().skip(1).take(2);
    let name = format!("libwollemi_pibench{}", std::env::consts::DLL_SUFFIX);
    let mut found = places.map(|place| place.join(&name)).filter(|path| path.exists());
    found.next().expect("the shared library")
}

fn compile(directory: &Path, name: &str, more: &[&str]) -> PathBuf {
    let program = directory.join(name);
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pibench.cc");
    let status = Command::new(std::env::var_os("CXX").unwrap_or("c++".into()))
        .args(["-std=c++17", "-O1", "-o"])
        .arg(&program)
        .args(more)
        .arg(source)
        .arg("-ldl")
        .status()
        .expect("a C++ compiler");
    assert!(status.success());
    program
}

/// PiBench finds what it inserted, for every ordered index except ablations, header and location of the pool.
#[test]
fn pibench_loads_every_index() {
    let directory = tempfile::tempdir().expect("a directory");
    let plain = compile(directory.path(), "plain", &[]);
    let bulk_load = compile(directory.path(), "bulk-load", &["-DBULK_LOAD"]);
    let pool = directory
        .path()
        .join("a pool with a name that is too long for a string's own buffer");
    for index in IndexKind::ALL
        .iter()
        .filter(|index| !index.is_ablation() && index.is_ordered())
    {
        for (program, flag) in [(&plain, "0"), (&bulk_load, "1")] {
            for path in [Path::new(""), &pool] {
                let output = Command::new(program)
                    .arg(library())
                    .arg(path)
                    .env("WOLLEMI_INDEX", index.name())
                    .env("WOLLEMI_PIBENCH_BULK_LOAD", flag)
                    .output()
                    .expect("the program");
                assert!(
                    output.status.success(),
                    "{index} {flag} {}: {output:?}",
                    path.display()
                );
                // The file exists only for a pool in a file; the next run creates its own.
                let _ = std::fs::remove_file(&pool);
            }
        }
    }
}
