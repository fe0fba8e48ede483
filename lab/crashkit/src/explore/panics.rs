//! Panics of the subject: findings, not failures of the kit.

use crate::schedule;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// Whether a panic is a finding.
    static CATCHING: Cell<bool> = const { Cell::new(false) };
}

/// From now on, reports panics of the subject only as findings, and no longer on standard error too.
pub fn silence_findings() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let hook = std::panic::take_hook();
        // The scheduler installs its own hook, which prints schedules, once: in its first run.
        schedule::install_hook();
        drop(std::panic::take_hook());
        std::panic::set_hook(Box::new(move |panic| {
            if !CATCHING.get() {
                hook(panic);
            }
        }));
    });
}

/// Returns the result of `run`; a panic is an error.
pub(super) fn caught<R>(run: impl FnOnce() -> Result<R, String>) -> Result<R, String> {
    let outer = CATCHING.replace(true);
    let ran = catch_unwind(AssertUnwindSafe(run));
    CATCHING.set(outer);
    ran.unwrap_or_else(|panic| {
        let said = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|said| (*said).to_string()));
        Err(match said {
            Some(said) => format!("the subject panics: {said}"),
            None => "the subject panics".into(),
        })
    })
}
