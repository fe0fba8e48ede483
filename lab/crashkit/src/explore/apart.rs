//! A thread for each history.
//!
//! A thread keeps state between histories: the guards that it has taken decide when the heap's memory is reused.

/// Flushes after which nothing of an earlier history waits for its epoch. Retired memory is freed two epochs later,
/// each flush tries to advance the epoch, and one flush frees only a part of what may be freed.
const FLUSHES: usize = 16;

/// Runs `run` to its end in a thread that has run nothing else.
pub(crate) fn apart<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let ran = scope.spawn(|| {
            // Frees what earlier threads have retired.
            for _ in 0..FLUSHES {
                heap::pin().flush();
            }
            run()
        });
        ran.join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
