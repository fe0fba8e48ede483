//! How a running server is told to stop.

use std::sync::Arc;
use tokio::sync::watch;

/// Stops a server. Clones stop the same server.
#[derive(Clone, Debug)]
pub struct Shutdown {
    stop: Arc<watch::Sender<bool>>,
    signals: bool,
}

impl Shutdown {
    /// One that stops the server when [`stop`](Shutdown::stop) is called.
    pub fn new() -> Shutdown {
        Shutdown {
            stop: Arc::new(watch::Sender::new(false)),
            signals: false,
        }
    }

    /// One that stops the server on SIGTERM and SIGINT, too.
    pub fn on_signals() -> Shutdown {
        Shutdown {
            signals: true,
            ..Shutdown::new()
        }
    }

    /// Stops the server: it takes no more connections, answers what has arrived whole, and returns.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// Waits until the server shall stop.
    pub(crate) async fn wait(&self) -> std::io::Result<()> {
        let mut stop = self.subscribe();
        let told = async {
            // The sender lives as long as `self`.
            let _ = stop.wait_for(|stop| *stop).await;
        };
        if !self.signals {
            told.await;
            return Ok(());
        }
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::select! {
            () = told => {}
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        self.stop();
        Ok(())
    }
}

impl Default for Shutdown {
    fn default() -> Shutdown {
        Shutdown::new()
    }
}
