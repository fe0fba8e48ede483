//! The header equals cbindgen's output for the crate, compiles as C and as C++, and has the library's version.

use crate::compiler::{CRATE, compilers, has, left_out, run};
use std::process::Command;

/// The modules with C's items, in reading order.
const MODULES: [&str; 13] = [
    "types",
    "status",
    "conflict",
    "memory",
    "options",
    "db",
    "map",
    "key",
    "cursor",
    "batch",
    "expiring",
    "snapshot",
    "transaction",
];

/// `WOLLEMI_UPDATE_HEADER=1` regenerates the header.
#[test]
fn it_is_what_the_crate_says() {
    let config = cbindgen::Config::from_file(format!("{CRATE}/cbindgen.toml")).expect("the configuration");
    let mut builder = cbindgen::Builder::new().with_config(config);
    for module in MODULES {
        builder = builder.with_src(format!("{CRATE}/src/{module}.rs"));
    }
    let mut made = Vec::new();
    builder.generate().expect("the header").write(&mut made);
    let made = String::from_utf8(made).expect("UTF-8");
    let path = format!("{CRATE}/include/wollemi.h");
    if std::env::var_os("WOLLEMI_UPDATE_HEADER").is_some() {
        std::fs::write(&path, &made).expect("a header");
    }
    let kept = std::fs::read_to_string(&path).expect("the header");
    assert!(
        made == kept,
        "include/wollemi.h is not up to date: WOLLEMI_UPDATE_HEADER=1 cargo test -p wollemi-ffi header"
    );
}

#[test]
fn it_has_the_version_of_the_crate() {
    let header = std::fs::read_to_string(format!("{CRATE}/include/wollemi.h")).expect("the header");
    for (part, number) in [
        ("MAJOR", env!("CARGO_PKG_VERSION_MAJOR")),
        ("MINOR", env!("CARGO_PKG_VERSION_MINOR")),
        ("PATCH", env!("CARGO_PKG_VERSION_PATCH")),
    ] {
        let line = format!("#define WOLLEMI_VERSION_{part} {number}\n");
        assert!(header.contains(&line), "{line}");
    }
}

/// Every function has a comment.
#[test]
fn it_documents_every_function() {
    let header = std::fs::read_to_string(format!("{CRATE}/include/wollemi.h")).expect("the header");
    let mut before = "";
    let mut functions = 0;
    for line in header.lines() {
        let returns = ["wollemi_status wollemi_", "const char *wollemi_", "void wollemi_"];
        if returns.iter().any(|begin| line.starts_with(begin)) {
            assert!(before.starts_with("//"), "no comment: {line}");
            functions += 1;
        }
        before = line;
    }
    assert!(functions > 70, "{functions}");
}

/// Whatever the page calls by name exists.
#[test]
fn the_page_names_what_it_has() {
    let header = std::fs::read_to_string(format!("{CRATE}/include/wollemi.h")).expect("the header");
    let page = std::fs::read_to_string(format!("{CRATE}/README.md")).expect("the page");
    let functions = names(&page).filter(|name| name.starts_with("wollemi_") || name.starts_with("WOLLEMI_"));
    let others = ["WOLLEMI_UPDATE_HEADER", "wollemi_"];
    let missing: Vec<_> = functions
        .filter(|name| !others.contains(name) && !names(&header).any(|other| other == *name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Returns the words of a text that may be names in C.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
}

#[test]
fn it_compiles_alone() {
    let header = format!("{CRATE}/include/wollemi.h");
    for compiler in compilers() {
        let strict = [
            "-std=c99",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-fsyntax-only",
            "-x",
            "c",
        ];
        run(Command::new(compiler).args(strict).arg(&header));
    }
    match has("c++") {
        true => drop(run(Command::new("c++")
            .args(["-Wall", "-Werror", "-fsyntax-only", "-x", "c++"])
            .arg(&header))),
        false => left_out("the header as C++: there is no C++ compiler"),
    }
}
