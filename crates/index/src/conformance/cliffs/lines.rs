//! Counts the lines that a thread touches.

use pmem::watched::{ObservedStep, Observer, StepKind};
use pmem::{LINE, Watched};
use std::cell::Cell;

/// The machine, counting for each thread the lines that it touches.
pub type Counted = Watched<Lines>;

/// Counts for the calling thread. A line that is touched several times in a row counts once.
#[derive(Clone, Copy, Debug)]
pub struct Lines;

thread_local! {
    /// The count so far, and the last line.
    static COUNT: Cell<(u64, usize)> = const { Cell::new((0, 0)) };
}

impl Observer for Lines {
    fn before(&self, step: &ObservedStep) {
        // These steps only order or write back lines that were counted when they were drafted or stored.
        if matches!(
            step.what,
            StepKind::Drafted
                | StepKind::Join
                | StepKind::WriteBack(_)
                | StepKind::WriteBackJoined(_)
                | StepKind::Fence(_)
        ) {
            return;
        }
        let first = step.start.addr() / LINE;
        let end = (step.start.addr() + step.len).div_ceil(LINE);
        // In a thread that is ending, the count may be gone.
        let _ = COUNT.try_with(|count| {
            let (lines, last) = count.get();
            if end > first {
                let new = (end - first) as u64 - u64::from(first == last);
                count.set((lines + new, end - 1));
            }
        });
    }
}

/// Returns the number of lines that this thread touches while `operation` runs, and the operation's result.
pub(super) fn lines_of<R>(operation: impl FnOnce() -> R) -> (u64, R) {
    let before = COUNT.get().0;
    let result = operation();
    (COUNT.get().0 - before, result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmem::Media;
    use std::sync::atomic::AtomicU64;

    #[repr(align(64))]
    struct Memory([AtomicU64; 24]);

    /// Words and bytes alike are counted by lines, separately for each thread.
    #[test]
    fn lines_are_counted_for_each_thread() {
        let media = Counted::machine(Lines);
        let memory = Memory([const { AtomicU64::new(0) }; 24]);
        let (lines, ()) = lines_of(|| {
            media.load(&memory.0[0]);
            media.store(&memory.0[7], 1);
            media.touched(memory.0[7].as_ptr().cast(), 80);
            media.load(&memory.0[0]);
            std::thread::scope(|scope| {
                scope.spawn(|| media.load(&memory.0[8]));
            });
        });
        assert_eq!(lines, 1 + 2 + 1);
    }
}
