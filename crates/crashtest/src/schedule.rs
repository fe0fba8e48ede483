//! Logical threads under a deterministic scheduler.
//!
//! They are coroutines of one OS thread (`shuttle`), which are switched only where the media is used and where they wait
//! for each other. The same seed gives the same schedule. A crash needs no event of its own: every place of the log of
//! such a run is one where the crash may fall, in whatever state the threads are then.

mod stalls;

use crate::Random;
use crate::media::{Crash, Point};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};
use stalls::Stalls;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Bytes of a coroutine's stack.
const STACK: usize = 1 << 20;

/// Runs `body` as the first logical thread, under a scheduler that the seed chooses: each choice at random, or by
/// priorities that change a few times (PCT), or with threads held back for long (`stalls`). What it returned last.
///
/// A run under PCT is measured by another one before it, so `body` runs twice.
pub(crate) fn run<R, F>(crash: &Crash, seed: u64, body: F) -> Option<R>
where
    R: Send + 'static,
    F: Fn() -> R + Send + Sync + 'static,
{
    let mut random = Random(seed);
    let result = Arc::new(Mutex::new(None));
    let put = Arc::clone(&result);
    let media = crash.clone();
    let body = move || {
        let returned = media.scheduled(Box::new(switch), &body);
        *put.lock().unwrap_or_else(PoisonError::into_inner) = Some(returned);
    };
    let seed = random.next();
    match random.below(4) {
        0 => under(RandomScheduler::new_from_seed(seed, 1), body),
        1 => under(Stalls::new(seed), body),
        changes => under(PctScheduler::new_from_seed(seed, changes as usize, 2), body),
    }
    result.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Lets the scheduler install what it wants to be told of panics by: it does so in its first run.
pub(crate) fn install_hook() {
    under(RandomScheduler::new_from_seed(0, 1), || ());
}

fn under(scheduler: impl Scheduler + 'static, body: impl Fn() + Send + Sync + 'static) {
    let mut config = Config::new();
    config.stack_size = STACK;
    config.failure_persistence = FailurePersistence::None;
    config.max_steps = MaxSteps::None;
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(body);
}

/// Lets another logical thread run, perhaps.
fn switch(point: Point) -> u32 {
    match point {
        Point::Access => shuttle::thread::sleep(Duration::ZERO),
        Point::Wait => shuttle::thread::yield_now(),
    }
    usize::from(shuttle::current::me()) as u32
}
