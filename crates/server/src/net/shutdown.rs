//! Stopping a running server.

use std::io;
use std::sync::Arc;
use std::task::Poll;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// The phases of stopping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// The server serves.
    Serving,
    /// The server accepts no more connections, and answers what has arrived completely.
    Draining,
    /// The server waits for no client.
    AtOnce,
}

/// Stops a server. Clones stop the same server.
#[derive(Clone, Debug)]
pub struct Shutdown {
    phase: Arc<watch::Sender<Phase>>,
    signals: bool,
}

impl Shutdown {
    /// Creates a handle that stops the server when [`stop`](Shutdown::stop) is called.
    pub fn new() -> Shutdown {
        Shutdown {
            phase: Arc::new(watch::Sender::new(Phase::Serving)),
            signals: false,
        }
    }

    /// Creates a handle that also stops the server on SIGTERM and SIGINT; a second signal stops it at once.
    pub fn on_signals() -> Shutdown {
        Shutdown {
            signals: true,
            ..Shutdown::new()
        }
    }

    /// Stops the server: it accepts no more connections, answers what has arrived completely, and returns.
    pub fn stop(&self) {
        self.reach(Phase::Draining);
    }

    /// Stops the server without waiting for clients to read their answers.
    pub fn stop_at_once(&self) {
        self.reach(Phase::AtOnce);
    }

    fn reach(&self, phase: Phase) {
        self.phase.send_if_modified(|now| {
            let later = phase > *now;
            *now = phase.max(*now);
            later
        });
    }

    pub(crate) fn subscribe(&self) -> Stop {
        Stop(self.phase.subscribe())
    }

    /// Installs the signal handlers, if the handle has them: that of SIGHUP only if there is something to reload.
    pub(crate) fn listen(&self, reloads: bool) -> io::Result<Signals> {
        let all = |kinds: &[SignalKind]| kinds.iter().map(|kind| signal(*kind)).collect::<Result<_, _>>();
        let stop: &[_] = match self.signals {
            true => &[SignalKind::terminate(), SignalKind::interrupt()],
            false => &[],
        };
        let reload: &[_] = match self.signals && reloads {
            true => &[SignalKind::hangup()],
            false => &[],
        };
        Ok(Signals {
            stop: AnyOf(all(stop)?),
            reload: AnyOf(all(reload)?),
        })
    }
}

impl Default for Shutdown {
    fn default() -> Shutdown {
        Shutdown::new()
    }
}

/// State that each stoppable task polls.
#[derive(Clone, Debug)]
pub(crate) struct Stop(watch::Receiver<Phase>);

impl Stop {
    /// Returns whether this phase is reached.
    pub fn is(&self, phase: Phase) -> bool {
        *self.0.borrow() >= phase
    }

    /// Waits until this phase is reached.
    pub async fn reached(&mut self, phase: Phase) {
        // An error means that no handle is left that could stop the server. Then the task stops, too.
        let _ = self.0.wait_for(|now| *now >= phase).await;
    }
}

/// The signals of a server.
#[derive(Debug)]
pub(crate) struct Signals {
    /// SIGTERM and SIGINT.
    pub stop: AnyOf,
    /// SIGHUP.
    pub reload: AnyOf,
}

/// Signals with the same meaning.
#[derive(Debug)]
pub(crate) struct AnyOf(Vec<Signal>);

impl AnyOf {
    /// Waits for the next signal; for ever if there are no handlers.
    pub async fn next(&mut self) {
        std::future::poll_fn(|context| {
            let mut arrived = self.0.iter_mut().map(|signal| signal.poll_recv(context));
            match arrived.any(|poll| poll.is_ready()) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }
}
