//! Sets `WOLLEMI_COMMIT` to the commit that the program is built from.

use std::process::Command;

/// The sources of the program, relative to this package's directory.
const SOURCES: [&str; 5] = [
    "../../crates",
    "../../lab",
    "../../papers",
    "../../Cargo.toml",
    "../../Cargo.lock",
];

fn main() {
    let commit = git(&["rev-parse", "--short=12", "HEAD"]);
    let commit = commit.map(|commit| {
        let differ = git(&[
            &["status", "--porcelain", "--untracked-files=no", "--"],
            &SOURCES[..],
        ]
        .concat());
        match differ {
            Some(files) if files.is_empty() => commit,
            _ => commit + "-dirty",
        }
    });
    println!(
        "cargo::rustc-env=WOLLEMI_COMMIT={}",
        commit.as_deref().unwrap_or("unknown")
    );
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
    }
    // The reflog grows with each commit and each checkout.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"]);
    if let Some(log) = log.filter(|log| std::path::Path::new(log).exists()) {
        println!("cargo::rerun-if-changed={log}");
    }
}

/// Runs git and returns its output; `None` without git or outside a checkout.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
