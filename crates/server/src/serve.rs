//! Threads: one that accepts connections and sweeps, and workers that serve them, each with a runtime of its own.

use crate::config::Config;
use crate::connection;
use crate::counters::{self, Counter, Counters};
use crate::session::{Session, Shared, now};
use crate::shutdown::{Phase, Shutdown, Signals, Stop};
use crate::store::Store;
use crate::{Error, sweep};
use index::Index;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio::task::{JoinSet, LocalSet};

/// The pause after a connection could not be accepted, for want of file descriptors, say.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What a server has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// How long it ran.
    pub elapsed: Duration,
    /// Connections served.
    pub connections: u64,
    /// Connections turned away because there were too many.
    pub rejected: u64,
    /// Keys looked up.
    pub gets: u64,
    /// Storage commands carried out.
    pub sets: u64,
    /// Requests that failed in the index.
    pub failures: u64,
    /// Dead items the sweep has removed.
    pub swept: u64,
    /// Connections whose last answers were not taken in time when the server stopped.
    pub abandoned: usize,
}

/// A server that listens, and will serve once it [runs](Server::run).
#[derive(Debug)]
pub struct Server {
    listeners: Vec<TcpListener>,
    shared: Arc<Shared>,
}

/// Listens and serves until `shutdown`: [`Server::bind`] and [`Server::run`].
pub fn run(config: Config, index: Arc<dyn Index>, shutdown: &Shutdown) -> Result<Report, Error> {
    Server::bind(config, index)?.run(shutdown)
}

impl Server {
    /// Opens the items in `index`, which is empty or was written by a server, and begins to listen.
    ///
    /// # Errors
    ///
    /// An address that cannot be listened on or is not allowed; a map that is not the server's; a failure of the
    /// index.
    pub fn bind(config: Config, index: Arc<dyn Index>) -> Result<Server, Error> {
        config.check()?;
        let store = Store::open(index, config.largest_value(), now())?;
        let listeners = config.listen.iter().map(listen).collect::<Result<_, _>>()?;
        let workers = config.workers();
        let shared = Arc::new(Shared {
            store,
            config,
            workers: (0..workers).map(|_| Counters::default()).collect(),
            load: (0..workers).map(|_| AtomicUsize::new(0)).collect(),
            rejected: AtomicU64::new(0),
            swept: AtomicU64::new(0),
            started: Instant::now(),
        });
        Ok(Server { listeners, shared })
    }

    /// The addresses it listens on, with the port that was free where port 0 was asked for.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners
            .iter()
            .filter_map(|listener| listener.local_addr().ok())
            .collect()
    }

    /// Serves until `shutdown`. What has arrived whole by then is answered.
    ///
    /// # Errors
    ///
    /// Threads, runtimes or signal handlers that the operating system refuses.
    pub fn run(self, shutdown: &Shutdown) -> Result<Report, Error> {
        let Server { listeners, shared } = self;
        let runtime = runtime()?;
        // Nothing is sent through `working`: its end tells that the workers have ended.
        let (working, mut worked) = mpsc::channel::<()>(1);
        let mut threads = Vec::new();
        let mut workers = Vec::new();
        for number in 0..shared.workers.len() {
            let (send, receive) = mpsc::unbounded_channel();
            let worker = Worker {
                shared: shared.clone(),
                number,
                stop: shutdown.subscribe(),
            };
            let working = working.clone();
            let runtime = self::runtime()?;
            let thread = std::thread::Builder::new()
                .name(format!("memcached-{number}"))
                .spawn(move || {
                    let _working = working;
                    worker.run(&runtime, receive)
                })
                .map_err(Error::Threads)?;
            workers.push(send);
            threads.push(thread);
        }
        drop(working);
        // The workers end when their senders are dropped, which happens here on every way out.
        let served = runtime.block_on(LocalSet::new().run_until(async {
            let mut signals = shutdown.listen()?;
            accept(listeners, &shared, workers, shutdown, &mut signals).await?;
            tokio::select! {
                _ = worked.recv() => {}
                () = signals.next() => shutdown.stop_at_once(),
            }
            Ok(())
        }));
        shutdown.stop();
        let abandoned = threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum();
        served.map_err(Error::Threads)?;
        Ok(report(&shared, abandoned))
    }
}

fn report(shared: &Shared, abandoned: usize) -> Report {
    let sums = counters::sums(shared.workers.iter());
    let sum = |counter: Counter| sums[counter as usize].1;
    Report {
        elapsed: shared.started.elapsed(),
        connections: sum(Counter::Connections),
        rejected: shared.rejected.load(Ordering::Relaxed),
        gets: sum(Counter::Gets),
        sets: sum(Counter::Sets),
        failures: sum(Counter::Failures),
        swept: shared.swept.load(Ordering::Relaxed),
        abandoned,
    }
}

fn listen(address: &SocketAddr) -> Result<TcpListener, Error> {
    let listen = || {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    listen().map_err(|source| Error::Listen {
        address: *address,
        source,
    })
}

fn runtime() -> Result<Runtime, Error> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::Threads)
}

type Workers = Rc<Vec<mpsc::UnboundedSender<std::net::TcpStream>>>;

/// Accepts connections and hands them to the workers, and sweeps, until `shutdown`.
async fn accept(
    listeners: Vec<TcpListener>,
    shared: &Arc<Shared>,
    workers: Vec<mpsc::UnboundedSender<std::net::TcpStream>>,
    shutdown: &Shutdown,
    signals: &mut Signals,
) -> std::io::Result<()> {
    let workers: Workers = Rc::new(workers);
    let mut tasks = JoinSet::new();
    for listener in listeners {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        tasks.spawn_local(accept_from(listener, shared.clone(), workers.clone()));
    }
    tasks.spawn_local(sweep::count(shared.clone()));
    if let Some(pause) = shared.config.sweep_pause {
        tasks.spawn_local(sweep::run(shared.clone(), pause));
    }
    drop(workers);
    // The tasks end, and with them the listeners and the workers' senders, when `tasks` is dropped.
    let mut stop = shutdown.subscribe();
    tokio::select! {
        () = stop.reached(Phase::Draining) => {}
        () = signals.next() => shutdown.stop(),
    }
    Ok(())
}

async fn accept_from(listener: tokio::net::TcpListener, shared: Arc<Shared>, workers: Workers) {
    loop {
        let Ok((mut socket, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        if shared.connections() >= shared.config.max_connections {
            shared.rejected.fetch_add(1, Ordering::Relaxed);
            // It fits into the new socket's space, or is lost with a client that is gone already.
            let _ = socket.write_all(b"ERROR Too many open connections\r\n").await;
            continue;
        }
        // The one with the fewest connections.
        let load = |&worker: &usize| shared.load[worker].load(Ordering::Relaxed);
        let Some(worker) = (0..workers.len()).min_by_key(load) else {
            return;
        };
        if let Ok(socket) = socket.into_std() {
            shared.load[worker].fetch_add(1, Ordering::Relaxed);
            if workers[worker].send(socket).is_err() {
                return; // The worker has panicked: let the others be, take no more.
            }
        }
    }
}

/// A thread that serves connections.
struct Worker {
    shared: Arc<Shared>,
    number: usize,
    stop: Stop,
}

impl Worker {
    /// Serves until there can be no more connections and all have ended, or have been given the time to. How many had
    /// to be abandoned.
    fn run(self, runtime: &Runtime, incoming: mpsc::UnboundedReceiver<std::net::TcpStream>) -> usize {
        runtime.block_on(LocalSet::new().run_until(self.serve(incoming)))
    }

    async fn serve(self, mut incoming: mpsc::UnboundedReceiver<std::net::TcpStream>) -> usize {
        let session = Rc::new(Session::new(self.shared.clone(), self.number));
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                socket = incoming.recv() => match socket {
                    Some(socket) => {
                        tasks.spawn_local(self.connection(socket, session.clone()));
                    }
                    None => break,
                },
                // Ended connections are let go; one whose task has panicked ends alone.
                Some(_) = tasks.join_next() => {}
            }
        }
        let mut stop = self.stop.clone();
        let patience = self.shared.config.drain_timeout;
        let drained = async { while tasks.join_next().await.is_some() {} };
        tokio::select! {
            _ = tokio::time::timeout(patience, drained) => {}
            () = stop.reached(Phase::AtOnce) => {}
        }
        tasks.len()
    }

    fn connection(
        &self,
        socket: std::net::TcpStream,
        session: Rc<Session>,
    ) -> impl Future<Output = ()> + 'static {
        let open = Open {
            shared: self.shared.clone(),
            worker: self.number,
        };
        let stop = self.stop.clone();
        async move {
            let _open = open;
            session.add(Counter::Connections, 1);
            let _ = socket.set_nodelay(true);
            if let Ok(socket) = TcpStream::from_std(socket) {
                // An error here is the client's end of the connection.
                let _ = connection::serve(socket, &session, stop).await;
            }
        }
    }
}

/// An open connection, while it is counted.
struct Open {
    shared: Arc<Shared>,
    worker: usize,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.shared.load[self.worker].fetch_sub(1, Ordering::Relaxed);
    }
}
