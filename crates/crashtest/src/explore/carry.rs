//! Histories carried out, by one logical thread or by several.

use super::CREATION;
use super::panics::caught;
use crate::history::History;
use crate::{Crash, Subject};
use pmem::{Pool, PoolOptions};
use std::sync::Arc;

/// What a history starts from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Start {
    /// An empty memory.
    Empty,
    /// What a crash has left, where the structure's creation had been acknowledged or not.
    Again { created: bool },
}

/// Carries a history out, by as many logical threads as it wants: its answers, and where in the log crash points begin.
///
/// What a crash has left is recovered before the operations, after them, or by another thread beside them: a heap and
/// its indexes are in use at once.
pub(super) fn carry_out<S: Subject>(
    crash: &Crash,
    subject: &Arc<S>,
    history: &Arc<History<S::Op>>,
    start: Start,
) -> Result<(Vec<S::Answer>, usize), String> {
    let mut from = 0;
    let live = match start {
        Start::Empty => {
            let (begun, live) = create(crash, &**subject)?;
            from = begun;
            live
        }
        Start::Again { created: true } => open(&**subject, crash, true)?,
        Start::Again { created: false } => {
            crash.invoke(CREATION);
            let live = open(&**subject, crash, false)?;
            crash.acknowledge(CREATION);
            live
        }
    };
    let to_recover = matches!(start, Start::Again { .. });
    let at_once = history.threads <= 1 && history.seed.is_multiple_of(2);
    if to_recover && at_once {
        subject.recover(&live)?;
    }
    let one = |number: u32, live: &S::Live| {
        crash.invoke(number);
        let answer = subject.apply(live, &history.ops[number as usize])?;
        crash.acknowledge(number);
        Ok::<_, String>(answer)
    };
    let count = history.ops.len() as u32;
    let alone = if history.threads > 1 {
        history.prepared
    } else {
        count
    };
    let mut answers = Vec::with_capacity(history.ops.len());
    for number in 0..alone {
        if number == history.prepared && number > 0 {
            from = crash.recorded_so_far();
        }
        answers.push(one(number, &live)?);
    }
    if history.threads > 1 {
        if alone > 0 {
            from = crash.recorded_so_far();
        }
        answers.extend(by_threads(crash, subject, history, live, to_recover)?);
    } else if to_recover && !at_once {
        subject.recover(&live)?;
    }
    Ok((answers, from))
}

/// Deals the operations after the preparation out to logical threads; their answers, in the history's order.
fn by_threads<S: Subject>(
    crash: &Crash,
    subject: &Arc<S>,
    history: &Arc<History<S::Op>>,
    live: S::Live,
    to_recover: bool,
) -> Result<Vec<S::Answer>, String> {
    let live = Arc::new(live);
    let (first, end) = (history.prepared, history.ops.len() as u32);
    let step = history.threads as usize;
    let mut threads: Vec<_> = (0..history.threads)
        .map(|thread| {
            let (crash, subject) = (crash.clone(), Arc::clone(subject));
            let (history, live) = (Arc::clone(history), Arc::clone(&live));
            shuttle::thread::spawn(move || {
                caught(|| {
                    let one = |number: u32| {
                        crash.invoke(number);
                        let answer = subject.apply(&live, &history.ops[number as usize])?;
                        crash.acknowledge(number);
                        Ok((number, answer))
                    };
                    (first + thread..end)
                        .step_by(step)
                        .map(one)
                        .collect::<Result<Vec<_>, String>>()
                })
            })
        })
        .collect();
    if to_recover {
        let (subject, live) = (Arc::clone(subject), Arc::clone(&live));
        threads.push(shuttle::thread::spawn(move || {
            caught(|| subject.recover(&live)).map(|()| Vec::new())
        }));
    }
    // All of them end, whatever becomes of the others.
    let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
    crash.rejoin();
    let mut answers = Vec::new();
    for thread in ended {
        answers.extend(thread.map_err(|_| "a thread panics")??);
    }
    answers.sort_by_key(|(number, _)| *number);
    Ok(answers.into_iter().map(|(_, answer)| answer).collect())
}

/// Makes the structure in a pool of its own: where in the log its creation begins, and it.
pub(super) fn create<S: Subject>(crash: &Crash, subject: &S) -> Result<(usize, S::Live), String> {
    let options = PoolOptions {
        page_size: 64 << 10,
        ..PoolOptions::default()
    };
    let pool = Pool::create_in(crash.memory(), &options, crash.clone()).map_err(|e| e.to_string())?;
    let from = crash.recorded_so_far();
    crash.invoke(CREATION);
    let live = subject.create(pool)?;
    crash.acknowledge(CREATION);
    Ok((from, live))
}

/// Opens what a crash has left; what was not created yet may be created now.
pub(super) fn open<S: Subject>(subject: &S, crash: &Crash, created: bool) -> Result<S::Live, String> {
    let pool = || {
        let pool = Pool::open_in(crash.memory(), crash.clone());
        pool.map_err(|error| format!("the pool does not open: {error}"))
    };
    match subject.open(pool()?)? {
        Some(live) => Ok(live),
        None if created => Err("it is gone".into()),
        None => subject.create(pool()?),
    }
}
