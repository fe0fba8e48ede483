//! Logs recovery's progress while it runs.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;
use wollemi::{Db, Recovery, RecoveryState};

/// Time between two progress lines.
const PAUSE: Duration = Duration::from_secs(1);

/// Logs progress until recovery has ended or this is dropped, and keeps the pool open.
pub struct Watching {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Starts logging recovery's progress. Logs nothing if no thread can be started.
pub fn watch(db: &Db) -> Watching {
    let (end, ended) = mpsc::channel();
    let db = db.clone();
    let look = move || {
        loop {
            let progress = db.recovery_progress();
            log_progress(&progress);
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
            // The thread ends by itself; after a panic nothing is left to log.
            let _ = thread.join();
        }
    }
}

fn log_progress(progress: &Recovery) {
    let Recovery {
        objects,
        pages_swept,
        pages,
        seconds,
        ..
    } = *progress;
    match &progress.state {
        RecoveryState::Failed(why) => tracing::error!(why, "recovery failed: old space is not reused"),
        state => tracing::info!(%state, objects, pages_swept, pages, seconds, "recovery"),
    }
}
