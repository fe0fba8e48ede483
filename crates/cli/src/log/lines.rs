//! Queues log lines for the standard error stream. A separate thread writes them, so that the server serves its clients
//! even if no reader takes its output.
//!
//! I1 Logging a line never waits: if [`MAX`] lines are queued, it is dropped.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};
use tracing_subscriber::fmt::MakeWriter;

/// Maximum number of queued lines.
const MAX: usize = 4096;

/// How long dropping [`LogThread`] waits for queued lines.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

enum Message {
    Line(Box<[u8]>),
    /// Answers once all earlier lines are written.
    Flush(SyncSender<()>),
}

/// The sink for lines.
#[derive(Clone)]
pub struct Lines(SyncSender<Message>);

/// Dropping it waits until the last line is written, at most a second if the reader takes none.
#[must_use]
pub struct LogThread(SyncSender<Message>);

/// Starts the thread.
pub fn start() -> io::Result<(Lines, LogThread)> {
    let (lines, taken) = sync_channel(MAX);
    std::thread::Builder::new()
        .name("log".into())
        .spawn(move || write(&taken))?;
    Ok((Lines(lines.clone()), LogThread(lines)))
}

fn write(taken: &Receiver<Message>) {
    while let Ok(message) = taken.recv() {
        match message {
            // Errors in writing a log line cannot be reported.
            Message::Line(line) => drop(io::stderr().write_all(&line)),
            // The caller may no longer wait.
            Message::Flush(flushed) => drop(flushed.try_send(())),
        }
    }
}

impl<'l> MakeWriter<'l> for Lines {
    type Writer = Line<'l>;

    fn make_writer(&'l self) -> Line<'l> {
        Line(&self.0)
    }
}

/// Queues each piece that is written to it. `tracing_subscriber` writes a line at a time.
pub struct Line<'l>(&'l SyncSender<Message>);

impl Write for Line<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // If the queue is full, the line is dropped. The thread lives as long as any sender.
        let _ = self.0.try_send(Message::Line(line.into()));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for LogThread {
    fn drop(&mut self) {
        let begin = Instant::now();
        let (flushed, all) = sync_channel(1);
        let mut message = Message::Flush(flushed);
        while let Err(TrySendError::Full(again)) = self.0.try_send(message) {
            if begin.elapsed() > FLUSH_TIMEOUT {
                return;
            }
            message = again;
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = all.recv_timeout(FLUSH_TIMEOUT.saturating_sub(begin.elapsed()));
    }
}
