//! A C program is killed during its writes: every number that it acknowledged is present. `WOLLEMI_SEED` repeats a run.

use crate::compiler::{Build, compile, run};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

const ROUNDS: u64 = 6;

/// A pseudorandom number (SplitMix64).
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
    z ^ (z >> 31)
}

#[test]
fn what_was_told_survives_kill_9() {
    let seed = match std::env::var("WOLLEMI_SEED") {
        Ok(seed) => seed.parse().expect("WOLLEMI_SEED is a number"),
        Err(_) => u64::from(std::process::id()),
    };
    println!("WOLLEMI_SEED={seed}");
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile("cc", "examples/counter.c", folder.path(), Build::default()).expect("no sanitizer");
    let pool = folder.path().join("pool");
    let mut acknowledged = 0;
    for round in 0..ROUNDS {
        let mut child = Command::new(&program)
            .arg(&pool)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program");
        let lines = mix(seed.wrapping_add(round)) % 3000;
        let mut output = BufReader::new(child.stdout.take().expect("piped")).lines();
        // Output from before the kill counts, up to the last complete line.
        let mut last = None;
        for _ in 0..=lines {
            last = Some(
                output
                    .next()
                    .expect("the program counts until it is killed")
                    .expect("a line"),
            );
        }
        child.kill().expect("the program runs");
        child.wait().expect("the program has ended");
        while let Some(Ok(line)) = output.next() {
            last = Some(line);
        }
        let last: u64 = last.and_then(|line| line.parse().ok()).expect("a number");
        assert!(
            last >= acknowledged,
            "round {round}: counted from the beginning again"
        );
        acknowledged = last + 1;
        run(Command::new(&program)
            .arg(&pool)
            .args(["check", &acknowledged.to_string()]));
    }
}
