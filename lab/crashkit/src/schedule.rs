//! Logical threads under a deterministic scheduler.
//!
//! They are coroutines of one OS thread (`shuttle`), which switch only at uses of the media and where they wait for
//! each other. The same seed gives the same schedule. A crash needs no event of its own: it may come at every place in
//! the log of such a run, whatever state the threads are in then.

mod aimed;
mod stalls;

use crate::Random;
use crate::log::Site;
use crate::media::{Crash, Schedule};
use crate::point::Point;
use aimed::Aimed;
pub(crate) use aimed::{Plan, Scouted};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};
use stalls::{Asked, Stalls};
use std::collections::HashSet;
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

/// Runs `body` as the first logical thread, and holds a thread back, for several operations of the others, whenever it
/// has made its accesses of this line of source: they meet what it has made durable there, or should have.
pub(crate) fn behind<R, F>(crash: &Crash, seed: u64, site: Site, body: F) -> Option<R>
where
    R: Send + 'static,
    F: Fn() -> R + Send + Sync + 'static,
{
    let asked = Asked::default();
    let (asks, there) = (asked.clone(), Mutex::new(HashSet::new()));
    let schedule = move |point: Point| {
        let comes = matches!(point, Point::Access(access) if access.site == site);
        let leaves = {
            let mut there = there.lock().unwrap_or_else(PoisonError::into_inner);
            let was = there.remove(&running());
            if comes {
                there.insert(running());
            }
            was && !comes
        };
        if leaves {
            asks.ask();
        }
        switch(point)
    };
    let (result, body) = kept(crash, Arc::new(schedule), body);
    under(Stalls::asked(seed, asked), body);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{EventKind, LogEvent};
    use pmem::{Memory, Offset, Pool, PoolOptions, VWord};

    fn word(pool: &Pool<Crash>, number: u64) -> &VWord {
        let at = Offset::new((64 << 10) + 64 * number).expect("not zero");
        // SAFETY: the tests make no drafts.
        unsafe { pool.at(at) }.expect("within")
    }

    /// Records the stores of two threads: the first stores to word 0 and then to word 1, over and over, and the second
    /// to word 2.
    fn stores(seed: u64, site: Option<Site>) -> Vec<LogEvent> {
        let crash = Crash::new(Memory::new(2 << 20).expect("memory"));
        crash.begin(100_000);
        let options = PoolOptions {
            page_size: 64 << 10,
            ..PoolOptions::default()
        };
        let pool = Pool::create_in(crash.memory(), &options, crash.clone()).expect("a pool");
        let pool = Arc::new(pool);
        let media = crash.clone();
        let body = move || {
            let [first, second] = [Arc::clone(&pool), Arc::clone(&pool)];
            media.record();
            let first = shuttle::thread::spawn(move || {
                for value in 0..40 {
                    word(&first, 0).store(value, first.media());
                    word(&first, 1).store(value, first.media());
                }
            });
            let second = shuttle::thread::spawn(move || {
                for value in 0..20_000 {
                    word(&second, 2).store(value, second.media());
                }
            });
            first.join().and(second.join()).expect("no panic");
            media.recorded().events
        };
        let events = match site {
            Some(site) => behind(&crash, seed, site, body),
            None => run(&crash, seed, body),
        };
        crash.end();
        let is_store = |event: &LogEvent| matches!(event.kind, EventKind::Store { .. });
        events.expect("a run").into_iter().filter(is_store).collect()
    }

    /// A thread that leaves the line waits while others go on.
    #[test]
    fn threads_are_held_back_behind_a_line() {
        let site = stores(1, None).into_iter().find(|event| event.thread == 1);
        let site = site.expect("a store").site;
        for seed in 0..4 {
            let stores = stores(seed, Some(site));
            let of_second = |event: &LogEvent| event.thread == 2;
            let last = stores.iter().rposition(of_second).expect("a store");
            let mut held = 0;
            for pair in stores[..last].windows(2).filter(|pair| pair[0].site == site) {
                assert!(of_second(&pair[1]), "seed {seed}");
                held += 1;
            }
            assert!(held > 10, "seed {seed}: {held}");
        }
    }
}
