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

    /// Listens to signals, if that was asked for; what is returned ends when the server shall stop.
    pub(crate) fn listen(&self) -> std::io::Result<impl Future<Output = ()> + use<>> {
        use tokio::signal::unix::{SignalKind, signal};
        let mut signals = match self.signals {
            true => Some((signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)),
            false => None,
        };
        let all = self.clone();
        Ok(async move {
            let mut told = all.subscribe();
            let signalled = async {
                match &mut signals {
                    Some((terminate, interrupt)) => {
                        tokio::select! {
                            _ = terminate.recv() => {}
                            _ = interrupt.recv() => {}
                        }
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = signalled => all.stop(),
                // The sender lives as long as `all`.
                _ = told.wait_for(|stop| *stop) => {}
            }
        })
    }
}

impl Default for Shutdown {
    fn default() -> Shutdown {
        Shutdown::new()
    }
}
