//! Logs recovery's progress while it runs.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;
use wollemi::{Db, Recovery, RecoveryState};

/// The pause between two looks.
const PAUSE: Duration = Duration::from_secs(1);

/// Looks until recovery has ended, or this is dropped: it keeps the pool open.
pub struct Watching {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Logs recovery's progress from now on. Logs nothing if no thread can be started.
pub fn watch(db: &Db) -> Watching {
    let (end, ended) = mpsc::channel();
    let db = db.clone();
    let look = move || {
        loop {
            let progress = db.recovery_progress();
            tell(&progress);
            let pause = match progress.state {
                RecoveryState::Running => ended.recv_timeout(PAUSE),
                _ => return,
            };
            if pause != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    };
    Watching {
        end: Some(end),
        thread: std::thread::Builder::new()
            .name("recovery-log".into())
            .spawn(look)
            .ok(),
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // The thread ends by itself; after a panic there is nothing left to log.
            let _ = thread.join();
        }
    }
}

fn tell(progress: &Recovery) {
    let Recovery {
        objects,
        pages_swept,
        pages,
        seconds,
        ..
    } = *progress;
    match &progress.state {
        RecoveryState::Failed(why) => tracing::error!(why, "recovery failed, old space is not used again"),
        state => tracing::info!(%state, objects, pages_swept, pages, seconds, "recovery"),
    }
}
