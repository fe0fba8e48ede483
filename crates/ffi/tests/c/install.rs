//! An installed library works with the commands of the README.

use crate::compiler::{CRATE, has, left_out, libraries, run};
use std::path::Path;
use std::process::Command;

/// The beginning of the README's shell line that compiles and runs the first program.
const LINE: &str = "cc first.c";

fn readme() -> String {
    std::fs::read_to_string(format!("{CRATE}/README.md")).expect("the README")
}

/// Returns the first C block of the README.
fn program() -> String {
    let readme = readme();
    let (_, rest) = readme.split_once("```c\n").expect("a block");
    rest.split_once("```").expect("its end").0.to_owned()
}

fn install(arguments: &[&str]) -> Command {
    let mut command = Command::new(format!("{CRATE}/install.sh"));
    command.arg("--libraries").arg(libraries()).args(arguments);
    command
}

/// Builds and runs the README's first program with its shell line.
fn first_program(prefix: &Path) {
    let folder = tempfile::tempdir().expect("a folder");
    let program = program();
    assert!(program.lines().count() <= 12, "ten lines or so");
    std::fs::write(folder.path().join("first.c"), program).expect("a source");
    let readme = readme();
    let line = readme
        .lines()
        .find(|line| line.starts_with(LINE))
        .expect("the line");
    let said = run(Command::new("sh")
        .args(["-e", "-c", line])
        .current_dir(folder.path())
        .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"))
        .env("LD_LIBRARY_PATH", prefix.join("lib")));
    assert_eq!(said, "hello, world\n");
}

#[test]
fn the_first_program_runs_as_typed() {
    if !has("pkg-config") {
        return left_out("the README's first program: there is no pkg-config");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let prefix = folder.path().join("usr");
    run(install(&["--prefix"]).arg(&prefix));
    first_program(&prefix);
}

#[test]
fn the_tarball_has_all_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let tarball = folder.path().join("wollemi.tar.gz");
    run(install(&["--tarball"]).arg(&tarball));
    run(Command::new("tar")
        .arg("-xzf")
        .arg(&tarball)
        .current_dir(folder.path()));
    let mut entries = std::fs::read_dir(folder.path()).expect("a folder").flatten();
    let unpacked = entries
        .find(|entry| entry.path().is_dir())
        .expect("a folder")
        .path();
    for file in [
        "lib/libwollemi.so",
        "lib/libwollemi.a",
        "include/wollemi.h",
        "lib/pkgconfig/wollemi.pc",
        "share/doc/wollemi-c/wollemi-c.cdx.json",
        "share/doc/wollemi-c/LICENSE-MIT",
        "share/doc/wollemi-c/LICENSES-THIRD-PARTY.txt",
    ] {
        assert!(unpacked.join(file).exists(), "{file}");
    }
    if has("pkg-config") {
        first_program(&unpacked);
    }
}

/// The packages contain other crates, whose licences require their texts there.
#[test]
fn a_crate_without_a_licence_text_is_an_error() {
    let home = tempfile::tempdir().expect("a folder");
    let source = home.path().join("registry/src/index/bare-1.0.0");
    std::fs::create_dir_all(&source).expect("a folder");
    let licences = |licence: &str| {
        let list = home.path().join("list");
        let component =
            r#"  {"name": "bare", "version": "1.0.0", "purl": "pkg:cargo/bare@1.0.0", "licenses": "#;
        let component = format!(r#"{component}[{{"expression": "{licence}"}}]}}"#);
        std::fs::write(&list, component).expect("a list");
        let script = format!("{CRATE}/../../contrib/licences.sh");
        let mut command = Command::new(script);
        command.arg(list).env("CARGO_HOME", home.path());
        command.output().expect("the script runs")
    };
    let text = |licence: &str| String::from_utf8(licences(licence).stdout).expect("UTF-8");
    let failed = licences("MIT");
    let said = String::from_utf8_lossy(&failed.stderr);
    assert!(!failed.status.success() && said.contains("bare 1.0.0"), "{said}");
    assert!(text("MIT OR Apache-2.0").contains("bare 1.0.0: no text of its own"));
    std::fs::write(source.join("LICENSE"), "Copyright: the authors of bare").expect("a licence");
    assert!(text("MIT").contains("Copyright: the authors of bare"));
}
