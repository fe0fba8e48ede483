//! Runs histories, by one logical thread or by several.

use super::CREATION;
use super::panics::caught;
use crate::history::History;
use crate::{Crash, Subject};
use pmem::{Memory, Pool, PoolOptions};
use std::sync::Arc;

/// What a history starts from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Start {
    /// An empty memory.
    Empty,
    /// What a crash has left; `created`: the creation of the structure had been acknowledged.
    Again { created: bool },
}

/// Carries a history out, by as many logical threads as it asks for. Returns its answers, and where in the log crash
/// points begin.
///
/// Recovery of what a crash has left runs before the operations, after them, or in another thread beside them: a heap
/// and its indexes are in use at once.
///
/// A history that is [reopened](History::reopened) is reopened after its preparation.
pub(super) fn carry_out<S: Subject>(
    crash: &Crash,
    memory: &Memory,
    subject: &Arc<S>,
    history: &Arc<History<S::Op>>,
    start: Start,
) -> Result<(Vec<S::Answer>, usize), String> {
    let mut from = 0;
    let mut live = match start {
        Start::Empty => {
            let (begun, live) = create(crash, memory, &**subject)?;
            from = begun;
            live
        }
        Start::Again { created: true } => open(&**subject, crash, memory, true)?,
        Start::Again { created: false } => {
            crash.invoke(CREATION);
            let live = open(&**subject, crash, memory, false)?;
            crash.acknowledge(CREATION);
            live
        }
    };
    let mut to_recover = matches!(start, Start::Again { .. });
    let at_once = !history.has_threads() && history.seed.is_multiple_of(2);
    if to_recover && at_once {
        subject.recover(&live)?;
    }
    let count = history.ops.len() as u32;
    let alone = if history.has_threads() {
        history.prepared
    } else {
        count
    };
    let prepared = history.prepared.min(alone);
    let mut answers = in_turn(crash, &**subject, history, &live, 0..prepared)?;
    if prepared > 0 && prepared < count {
        from = crash.recorded_so_far();
    }
    if history.reopened {
        // Flushes, so that retired memory is freed while its pool is open.
        (0..4).for_each(|_| heap::pin().flush());
        drop(live);
        live = open(&**subject, crash, memory, true)?;
        to_recover = true;
    }
    if history.has_little_room() {
        // The seed is never 0, which would turn refusals off.
        crash.refuse_memory(history.seed | 1 << 63);
    }
    answers.extend(in_turn(crash, &**subject, history, &live, prepared..alone)?);
    let mut answers: Vec<_> = answers.into_iter().map(|(_, answer)| answer).collect();
    if history.has_threads() {
        answers.extend(by_threads(crash, subject, history, live, to_recover)?);
    } else {
        crash.refuse_memory(0);
        if to_recover && !at_once {
            subject.recover(&live)?;
        }
        check_end(&**subject, &live)?;
    }
    Ok((answers, from))
}

/// Maximum number of operations that go together, by the number of threads that have some: a crash may find any subset
/// of them done.
fn max_together(threads: u32) -> usize {
    match threads {
        0 | 1 => 4,
        2 => 3,
        _ => 2,
    }
}

/// Carries out operations of the history in order, calling together those that go together. Returns their numbers and
/// answers.
fn in_turn<S: Subject>(
    crash: &Crash,
    subject: &S,
    history: &History<S::Op>,
    live: &S::Live,
    numbers: impl IntoIterator<Item = u32>,
) -> Result<Vec<(u32, S::Answer)>, String> {
    let numbers: Vec<u32> = numbers.into_iter().collect();
    let op = |number: u32| &history.ops[number as usize];
    let mut answers = Vec::with_capacity(numbers.len());
    let mut rest = &numbers[..];
    while let Some((&first, others)) = rest.split_first() {
        let (mut now, mut ops) = (vec![first], vec![op(first)]);
        for &next in others.iter().take(max_together(history.threads) - 1) {
            if !subject.goes_with(&ops, op(next)) {
                break;
            }
            now.push(next);
            ops.push(op(next));
        }
        rest = &rest[now.len()..];
        now.iter().for_each(|&number| crash.invoke(number));
        match &ops[..] {
            [op] => answers.push((first, subject.apply(live, op)?)),
            _ => answers.extend(now.iter().copied().zip(subject.apply_together(live, &ops)?)),
        }
        now.iter().for_each(|&number| crash.acknowledge(number));
    }
    Ok(answers)
}

/// Deals the operations after the preparation out to logical threads. Returns their answers, in the history's order.
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
                    let numbers = (first + thread..end).step_by(step);
                    in_turn(&crash, &*subject, &history, &live, numbers)
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
    // All of them are joined, even if one has failed.
    let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
    crash.rejoin();
    crash.refuse_memory(0);
    let mut answers = Vec::new();
    for thread in ended {
        answers.extend(thread.map_err(|_| "a thread panicked")??);
    }
    check_end(&**subject, &live)?;
    answers.sort_by_key(|(number, _)| *number);
    Ok(answers.into_iter().map(|(_, answer)| answer).collect())
}

fn check_end<S: Subject>(subject: &S, live: &S::Live) -> Result<(), String> {
    let sound = subject.check_end(live);
    sound.map_err(|wrong| format!("at the end of the history, {wrong}"))
}

/// Creates the structure in a new pool. Returns the place in the log where its creation begins, and the structure.
pub(super) fn create<S: Subject>(
    crash: &Crash,
    memory: &Memory,
    subject: &S,
) -> Result<(usize, S::Live), String> {
    let options = PoolOptions {
        page_size: 64 << 10,
        ..PoolOptions::default()
    };
    let pool = Pool::create_in(memory, &options, crash.clone()).map_err(|e| e.to_string())?;
    let from = crash.recorded_so_far();
    crash.invoke(CREATION);
    let live = subject.create(pool)?;
    crash.acknowledge(CREATION);
    Ok((from, live))
}

/// Opens what a crash has left. A structure that is missing is created now, unless its creation had been acknowledged.
pub(super) fn open<S: Subject>(
    subject: &S,
    crash: &Crash,
    memory: &Memory,
    created: bool,
) -> Result<S::Live, String> {
    let pool = || {
        let pool = Pool::open_in(memory, crash.clone());
        pool.map_err(|error| format!("the pool does not open: {error}"))
    };
    match subject.open(pool()?)? {
        Some(live) => Ok(live),
        None if created => Err("the structure is gone".into()),
        None => subject.create(pool()?),
    }
}
