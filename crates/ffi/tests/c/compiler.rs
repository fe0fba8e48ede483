//! Compiles C programs against the library that Cargo has built for these tests.

use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

pub const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// Returns a folder with `libwollemi_c.so` and `libwollemi_c.a`, named as by `cargo build`: links to the libraries that
/// Cargo has built for these tests, beside the test program.
pub fn libraries() -> &'static Path {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let test = std::env::current_exe().expect("the path of this test");
        let built = test.parent().expect("its folder");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wollemi-c");
        std::fs::create_dir_all(&folder).expect("a folder");
        for extension in ["so", "a"] {
            let link = folder.join(format!("libwollemi_c.{extension}"));
            let _ = std::fs::remove_file(&link);
            symlink(newest(built, extension), link).expect("a link");
        }
        folder
    });
    &FOLDER
}

/// Returns the library built last: Cargo also keeps static ones with other features.
fn newest(built: &Path, extension: &str) -> PathBuf {
    let files = std::fs::read_dir(built).expect("the folder of this test");
    let paths = files.map(|file| file.expect("a file").path());
    let libraries = paths.filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libwollemi_c") && path.extension().is_some_and(|other| other == extension)
    });
    let time = |path: &PathBuf| path.metadata().and_then(|file| file.modified()).ok();
    libraries
        .max_by_key(time)
        .expect("a library that Cargo has built")
}

/// Returns whether the machine has this program.
pub fn has(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
}

/// Returns the C compilers of the machine: at least the one that Rust links with.
pub fn compilers() -> Vec<&'static str> {
    let found: Vec<_> = ["cc", "gcc", "clang"]
        .into_iter()
        .filter(|name| has(name))
        .collect();
    assert!(!found.is_empty(), "a C compiler, which Rust needs too");
    found
}

/// Reports a tool that the machine lacks, which is not a failure. The test harness hides what `eprintln!` prints in a
/// test that passes.
pub fn left_out(what: &str) {
    let _ = writeln!(std::io::stderr(), "left out: {what}");
}

#[derive(Clone, Copy, Default)]
pub struct Build {
    pub is_static: bool,
    /// Under the address sanitizer.
    pub sanitized: bool,
}

/// Compiles a program of this crate. Returns `None` if the compiler has no sanitizer.
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
        command.arg(libraries().join("libwollemi_c.a"));
        command.args(["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc"]);
    } else {
        command
            .arg("-L")
            .arg(libraries())
            .args(["-lwollemi_c", "-pthread"]);
        command.arg(format!("-Wl,-rpath,{}", libraries().display()));
        // The loader looks for the name of the installed library.
        let name = "libwollemi.so.0.1";
        let link = folder.join(name);
        if !link.exists() {
            let _ = symlink(libraries().join("libwollemi_c.so"), &link);
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

/// Runs a program, expects success, and returns its output.
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
