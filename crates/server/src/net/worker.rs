//! A worker's thread: accepts connections and serves them.

use crate::Error;
use crate::counters::Counter;
use crate::net::clients::{Clients, Open};
use crate::net::connection::{self, Protocol, Settle};
use crate::net::listen::{Accepted, Listener, Listening, Stream, accept};
use crate::net::shutdown::{Phase, Shutdown, Stop};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio::task::{JoinSet, LocalSet};

/// The pause after a connection could not be accepted, for example since file descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The state of a worker's thread.
pub struct Thread<P: Protocol> {
    worker: Rc<P::Worker>,
    stop: Stop,
    tasks: JoinSet<()>,
}

impl<P: Protocol + 'static> Thread<P>
where
    P::Worker: Send,
{
    /// Starts a worker. Its thread returns the number of connections that it had to abandon.
    pub fn start(
        worker: P::Worker,
        listening: &mut [Listening],
        shutdown: &Shutdown,
        working: &mpsc::Sender<()>,
    ) -> Result<std::thread::JoinHandle<usize>, Error> {
        let runtime = runtime()?;
        let listeners = {
            let _within = runtime.enter();
            let taken: Result<Vec<_>, _> = listening.iter_mut().map(Listening::take).collect();
            taken.map_err(Error::Threads)?
        };
        let stop = shutdown.subscribe();
        let working = working.clone();
        std::thread::Builder::new()
            .name(format!("worker-{}", worker.number))
            .spawn(move || {
                let _working = working;
                let thread = Thread::<P> {
                    worker: Rc::new(worker),
                    stop,
                    tasks: JoinSet::new(),
                };
                runtime.block_on(LocalSet::new().run_until(thread.serve(listeners)))
            })
            .map_err(Error::Threads)
    }

    /// Serves until the server stops and all connections have ended, the drain timeout has passed, or the server is to
    /// stop at once. Returns the number of abandoned connections.
    async fn serve(mut self, listeners: Vec<Listener>) -> usize {
        let mut stop = self.stop.clone();
        loop {
            tokio::select! {
                accepted = accept(&listeners) => match accepted {
                    Ok(accepted) => self.begin(accepted),
                    Err(error) => {
                        tracing::error!(%error, "connections cannot be accepted");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                // A connection has ended. One whose task has panicked ends alone.
                Some(_) = self.tasks.join_next() => {}
                () = stop.reached(Phase::Draining) => break,
            }
        }
        drop(listeners);
        let patience = self.worker.net.drain_timeout;
        let drained = async { while self.tasks.join_next().await.is_some() {} };
        tokio::select! {
            _ = tokio::time::timeout(patience, drained) => {}
            () = stop.reached(Phase::AtOnce) => {}
        }
        // Connections that have ended are in the set until they are joined.
        while self.tasks.try_join_next().is_some() {}
        self.tasks.len()
    }

    fn begin(&mut self, accepted: Accepted) {
        let Accepted {
            protocol,
            mut stream,
            ends,
        } = accepted;
        let encrypted = !ends.unix && self.worker.net.encryption.is_some();
        let net = &self.worker.net;
        match Clients::enter(&net.clients, net.limits.connections(), protocol, ends) {
            Some(open) => {
                let connection = Connection::<P> {
                    open,
                    encrypted,
                    worker: self.worker.clone(),
                    stop: self.stop.clone(),
                };
                self.tasks.spawn_local(connection.begin(stream));
            }
            None => {
                let rejected = net.rejected.fetch_add(1, Ordering::Relaxed) + 1;
                // Logs the first, second, fourth, eighth and so on, so that a flood does not fill the log.
                if rejected.is_power_of_two() {
                    tracing::warn!(rejected, "too many connections");
                }
                // A handshake would cost more than the answer is worth.
                if encrypted {
                    return;
                }
                self.tasks.spawn_local(async move {
                    // The answer fits into the new socket's buffer, or the client is gone already.
                    let _ = stream.write_all(protocol.too_many).await;
                });
            }
        }
    }
}

struct Connection<P: Protocol> {
    open: Open,
    encrypted: bool,
    worker: Rc<P::Worker>,
    stop: Stop,
}

impl<P: Protocol> Connection<P> {
    /// Performs the handshake of an encrypted connection, then serves.
    async fn begin(mut self, mut stream: Box<dyn Stream>) {
        let net = self.worker.net.clone();
        if let Some(encryption) = net.encryption.as_ref().filter(|_| self.encrypted) {
            let begun = tokio::select! {
                begun = encryption.begin(stream) => begun,
                () = self.stop.reached(Phase::Draining) => return,
            };
            stream = match begun {
                Ok(stream) => stream,
                Err(why) => {
                    tracing::debug!(client = self.open.client.peer, %why, "no keys agreed on");
                    return;
                }
            };
        }
        self.serve(&mut *stream).await;
    }

    async fn serve(self, stream: &mut dyn Stream) {
        let Connection {
            open, worker, stop, ..
        } = self;
        worker.add(Counter::Connections, 1);
        let client = &open.client;
        let (id, protocol) = (client.id, client.protocol.name);
        tracing::debug!(id, protocol, client = client.peer, "connected");
        let mut protocol = P::begin(&worker, client.clone());
        let serving = connection::serve(stream, &mut protocol, client, &*worker, stop);
        let ended = worker.unsettled(serving).await;
        match ended {
            Ok(()) => tracing::debug!(id, "disconnected"),
            // The client has broken the connection off, was idle for too long, or was killed; or a sync has failed.
            Err(why) => tracing::debug!(id, %why, "disconnected"),
        }
    }
}

/// Creates a runtime for one thread.
pub fn runtime() -> Result<Runtime, Error> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::Threads)
}
