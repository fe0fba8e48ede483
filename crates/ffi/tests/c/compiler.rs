//! Compiling C programs against the library that Cargo has built for these tests.

use std::path::{Path, PathBuf};
use std::process::Command;

pub const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// The folder with `libwollemi.so` and `libwollemi.a`: beside this test or above.
pub fn libraries() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let mut places = test.ancestors().skip(1).take(2);
    let found = places.find(|place| place.join("libwollemi.so").exists());
    found.expect("the shared library").to_owned()
}

/// Whether the machine has this program.
pub fn has(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
}

/// The C compilers that the machine has: the one that Rust links with, at least.
pub fn compilers() -> Vec<&'static str> {
    let found: Vec<_> = ["cc", "gcc", "clang"]
        .into_iter()
        .filter(|name| has(name))
        .collect();
    assert!(!found.is_empty(), "a C compiler, which Rust needs too");
    found
}

/// What the machine lacks is told, not failed for.
pub fn left_out(what: &str) {
    eprintln!("left out: {what}");
}

#[derive(Clone, Copy, Default)]
pub struct Build {
    pub is_static: bool,
    /// Under the address sanitizer.
    pub sanitized: bool,
}

/// Compiles a program of this crate. `None`: the compiler has no sanitizer.
pub fn compile(compiler: &str, source: &str, folder: &Path, build: Build) -> Option<PathBuf> {
    let program = folder.join(format!("{compiler}-{}", source.replace('/', "-")));
    let mut command = Command::new(compiler);
    command
        .args(["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-O1", "-g"])
        .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror"])
        .arg(format!("-I{CRATE}/include"))
        .arg(format!("{CRATE}/{source}"))
        .arg("-o")
        .arg(&program);
    if build.sanitized {
        command.arg("-fsanitize=address");
    }
    if build.is_static {
        command.arg(libraries().join("libwollemi.a"));
        command.args(["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc"]);
    } else {
        command.arg("-L").arg(libraries()).args(["-lwollemi", "-pthread"]);
        command.arg(format!("-Wl,-rpath,{}", libraries().display()));
        // The loader looks for the name that the library has once it is installed.
        let name = "libwollemi.so.0.1";
        let link = folder.join(name);
        if !link.exists() {
            let _ = std::os::unix::fs::symlink(libraries().join("libwollemi.so"), &link);
        }
        command.arg(format!("-Wl,-rpath,{}", folder.display()));
    }
    let output = command.output().expect("a C compiler");
    if build.sanitized && !output.status.success() {
        return None;
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    Some(program)
}

/// Runs a program and expects success; what it has printed.
pub fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success(),
        "{command:?}: {}\n{out}{errors}",
        output.status
    );
    out.into_owned()
}
