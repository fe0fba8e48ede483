//! Logical threads under a deterministic scheduler.
//!
//! They are coroutines of one OS thread (`shuttle`), which switch only at uses of the media and where they wait for
//! each other. The same seed gives the same schedule. A crash needs no event of its own: it may come at every place in
//! the log of such a run, whatever state the threads are in then.

mod aimed;
mod stalls;

use crate::Random;
use crate::media::{Crash, Schedule};
use crate::point::Point;
use aimed::Aimed;
pub(crate) use aimed::{Plan, Scouted};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};
use stalls::Stalls;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Bytes of a coroutine's stack.
const STACK: usize = 1 << 20;

/// Runs `body` as the first logical thread, under a scheduler that the seed chooses: each choice at random, or by
/// priorities that change a few times (PCT), or with threads held back for long (`stalls`). Returns the last result of
/// `body`.
///
/// PCT needs a first run to measure the length of the second, so under it `body` runs twice.
pub(crate) fn run<R, F>(crash: &Crash, seed: u64, body: F) -> Option<R>
where
    R: Send + 'static,
    F: Fn() -> R + Send + Sync + 'static,
{
    let mut random = Random(seed);
    let (result, body) = kept(crash, Arc::new(switch), body);
    let seed = random.next();
    match random.below(4) {
        0 => under(RandomScheduler::new_from_seed(seed, 1), body),
        1 => under(Stalls::new(seed), body),
        changes => under(PctScheduler::new_from_seed(seed, changes as usize, 2), body),
    }
    result()
}

/// The outcome of a run with aimed preemptions.
pub(crate) struct Steered<R> {
    pub(crate) result: Option<R>,
    /// What it recorded up to its preemption.
    pub(crate) scouted: Scouted,
    /// The range of the log in which threads were stopped, if any was.
    pub(crate) window: Option<Range<usize>>,
}

/// Runs `body` as the first logical thread, its operations one after the other except for the preemptions of a plan.
/// The same seed gives the same run up to the first of them.
pub(crate) fn steered<R, F>(crash: &Crash, seed: u64, plan: Plan, body: F) -> Steered<R>
where
    R: Send + 'static,
    F: Fn() -> R + Send + Sync + 'static,
{
    let aimed = Aimed::new(seed, plan);
    let (steers, media) = (aimed.clone(), crash.clone());
    let schedule = move |point| {
        let thread = running();
        if steers.comes_to(&point, thread, media.recorded_so_far()) {
            switch(point);
        }
        thread
    };
    let (result, body) = kept(crash, Arc::new(schedule), body);
    under(aimed.clone(), body);
    Steered {
        result: result(),
        scouted: aimed.scouted(),
        window: aimed.window(),
    }
}

/// Wraps `body` so that the media calls `schedule` while it runs. The other closure returns its last result.
fn kept<R: Send + 'static>(
    crash: &Crash,
    schedule: Schedule,
    body: impl Fn() -> R + Send + Sync + 'static,
) -> (impl FnOnce() -> Option<R>, impl Fn() + Send + Sync + 'static) {
    let result = Arc::new(Mutex::new(None));
    let put = Arc::clone(&result);
    let media = crash.clone();
    let body = move || {
        let returned = media.scheduled(Arc::clone(&schedule), &body);
        *put.lock().unwrap_or_else(PoisonError::into_inner) = Some(returned);
    };
    (
        move || result.lock().unwrap_or_else(PoisonError::into_inner).take(),
        body,
    )
}

/// Makes the scheduler install its panic hook, which it does in its first run.
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

/// Lets the scheduler switch to another logical thread. Returns the thread that runs afterwards.
fn switch(point: Point) -> u32 {
    match point {
        Point::Access(_) | Point::Invoke => shuttle::thread::sleep(Duration::ZERO),
        Point::Wait => shuttle::thread::yield_now(),
    }
    running()
}

/// Returns the logical thread that runs.
fn running() -> u32 {
    usize::from(shuttle::current::me()) as u32
}
