//! Operating a server: its settings, how they change while it runs, and what it reports.

#[path = "../common/mod.rs"]
mod common;

mod backup;
mod encrypted;
mod logs;
mod memory;
mod metrics;
mod service;
mod settings;

use common::Pool;
use common::server::PATIENCE;
use std::time::{Duration, Instant};

/// Waits until the condition holds.
#[track_caller]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn log(pool: &Pool) -> String {
    std::fs::read_to_string(pool.file("log")).expect("the log")
}
