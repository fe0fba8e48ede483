//! Functions shared by the tests. Each test also runs as the process that it kills, and takes settings from the
//! environment.

use std::process::{Command, ExitCode};
use wollemi_exerciser::be_killed;

/// Returns the command that runs this test's binary with `spec`, until it is killed.
pub fn child(spec: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the path of this test"));
    command.args(["be-killed", spec]);
    command
}

/// Runs the round for which [`child`] has started this process; returns `None` in the test itself.
pub fn run_as_child() -> Option<ExitCode> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, first, spec] = &arguments[..] else {
        return None;
    };
    (first == "be-killed").then(|| match be_killed(spec) {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            eprintln!("{wrong}");
            ExitCode::FAILURE
        }
    })
}

/// Returns a number from the environment.
pub fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}
