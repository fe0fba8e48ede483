//! Every function of the database, from several threads, over every index: a bounded share of what the command does.
//!
//! Without arguments this is the test; with the text of a round it is the process that the test kills.

use std::process::{Command, ExitCode};
use std::time::Duration;
use wollemi::IndexKind;
use wollemi_exerciser::{Settings, be_killed, run};

fn child(spec: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the path of this test"));
    command.args(["be-killed", spec]);
    command
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, first, spec] = &arguments[..]
        && first == "be-killed"
    {
        return match be_killed(spec) {
            Ok(()) => ExitCode::SUCCESS,
            Err(wrong) => {
                eprintln!("{wrong}");
                ExitCode::FAILURE
            }
        };
    }
    let number = |name: &str, default| {
        let set = std::env::var(name).ok();
        set.map_or(default, |text| text.parse().expect("a number"))
    };
    let directory = tempfile::tempdir().expect("a directory for pools");
    let kinds = IndexKind::ALL.iter().copied().filter(|kind| !kind.is_ablation());
    let settings = Settings {
        seed: number("WOLLEMI_SEED", 1),
        threads: number("WOLLEMI_THREADS", 0) as usize,
        kinds: kinds.collect(),
        budget: Duration::from_secs(number("WOLLEMI_SECONDS", 20)),
        calls: number("WOLLEMI_CALLS", 1_500_000),
        directory: directory.path().to_owned(),
        child: Some(child),
        server: std::env::var_os("WOLLEMI_SERVER").map(Into::into),
    };
    match run(&settings, |_| ()) {
        Ok(report) => {
            println!("{report:?}");
            assert!(
                report.kills > 0 && report.refused > 0,
                "too little was exercised: {report:?}"
            );
            ExitCode::SUCCESS
        }
        Err(failure) => {
            println!("{failure}");
            let _kept = directory.keep();
            ExitCode::FAILURE
        }
    }
}
