//! Lines on their way to the standard error stream, which a thread of its own writes: a server serves its clients,
//! whether or not anybody takes what it says.
//!
//! I1 Logging a line never waits: if [`MAX`] lines are queued, it is dropped.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};
use tracing_subscriber::fmt::MakeWriter;

/// Lines that may wait.
const MAX: usize = 4096;

/// How long the drop waits for lines that are not written yet.
const PATIENCE: Duration = Duration::from_secs(1);

enum Message {
    Line(Box<[u8]>),
    /// Answers once all lines before it are written.
    Told(SyncSender<()>),
}

/// Where lines go.
#[derive(Clone)]
pub struct Lines(SyncSender<Message>);

/// Drop waits until the last line is written, for at most a second if the reader takes none.
#[must_use]
pub struct Telling(SyncSender<Message>);

/// Starts the thread.
pub fn start() -> io::Result<(Lines, Telling)> {
    let (lines, taken) = sync_channel(MAX);
    std::thread::Builder::new()
        .name("log".into())
        .spawn(move || write(&taken))?;
    Ok((Lines(lines.clone()), Telling(lines)))
}

fn write(taken: &Receiver<Message>) {
    while let Ok(message) = taken.recv() {
        match message {
            // Errors in saying it are not said.
            Message::Line(line) => drop(io::stderr().write_all(&line)),
            // The caller may have gone.
            Message::Told(told) => drop(told.try_send(())),
        }
    }
}

impl<'l> MakeWriter<'l> for Lines {
    type Writer = Line<'l>;

    fn make_writer(&'l self) -> Line<'l> {
        Line(&self.0)
    }
}

/// Takes whole lines.
pub struct Line<'l>(&'l SyncSender<Message>);

impl Write for Line<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // Too many wait: it is dropped. The thread is there for as long as anybody sends.
        let _ = self.0.try_send(Message::Line(line.into()));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        let begin = Instant::now();
        let (told, all) = sync_channel(1);
        let mut message = Message::Told(told);
        while let Err(TrySendError::Full(again)) = self.0.try_send(message) {
            if begin.elapsed() > PATIENCE {
                return;
            }
            message = again;
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = all.recv_timeout(PATIENCE.saturating_sub(begin.elapsed()));
    }
}
