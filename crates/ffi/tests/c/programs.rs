//! Runs the examples and the tests in C with every available compiler, shared and static, and with memory checkers.

use crate::compiler::{Build, compile, compilers, has, left_out, run};
use std::path::Path;
use std::process::Command;

/// A program, and whether it takes a pool.
const PROGRAMS: [(&str, bool); 4] = [
    ("examples/tour.c", true),
    ("examples/bank.c", false),
    ("tests/misuse.c", true),
    ("tests/levels.c", true),
];

fn try_out(mut command: Command, takes_pool: bool) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    if takes_pool {
        command.arg(folder.path().join("pool"));
    }
    run(&mut command)
}

fn all(build: Build, with: impl Fn(&Path) -> Command) {
    let folder = tempfile::tempdir().expect("a folder");
    for compiler in compilers() {
        for (source, takes_pool) in PROGRAMS {
            let Some(program) = compile(compiler, source, folder.path(), build) else {
                left_out(&format!("{source}: {compiler} has no address sanitizer"));
                continue;
            };
            let said = try_out(with(&program), takes_pool);
            assert!(!said.is_empty(), "{source}");
        }
    }
}

#[test]
fn they_run_with_the_shared_library() {
    all(Build::default(), |program| Command::new(program));
}

#[test]
fn they_run_with_the_static_library() {
    let build = Build {
        is_static: true,
        ..Build::default()
    };
    all(build, |program| Command::new(program));
}

/// No memory of the C heap is leaked or used after it was freed.
#[test]
fn the_address_sanitizer_finds_nothing() {
    let build = Build {
        sanitized: true,
        ..Build::default()
    };
    all(build, |program| Command::new(program));
}

/// The program makes its own system calls fail, which neither another compiler nor a checker changes.
#[test]
fn a_close_that_fails_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let program =
        compile("cc", "tests/failing_close.c", folder.path(), Build::default()).expect("no sanitizer");
    try_out(Command::new(program), true);
}

#[test]
fn valgrind_finds_nothing() {
    if !has("valgrind") {
        return left_out("runs under valgrind, which is not installed");
    }
    let folder = tempfile::tempdir().expect("a folder");
    for source in ["examples/tour.c", "examples/bank.c"] {
        let program = compile("cc", source, folder.path(), Build::default()).expect("no sanitizer");
        let mut command = Command::new("valgrind");
        command.args([
            "--error-exitcode=9",
            "--leak-check=full",
            "--errors-for-leak-kinds=definite",
            "--quiet",
        ]);
        command.arg(program);
        // In memory: valgrind fails at mappings of growing files.
        try_out(command, false);
    }
}
