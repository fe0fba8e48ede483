//! Threads: workers that accept and serve connections, each with a runtime of its own; and one that sweeps and waits for
//! the end.

use crate::access::Access;
use crate::clients::{Clients, Open};
use crate::config::{Address, Config, Protocol};
use crate::connection;
use crate::counters::{self, Counter, Counters};
use crate::databases::Databases;
use crate::latency::Latencies;
use crate::limits::Limits;
use crate::listen::{Accepted, Listener, Listening, accept};
use crate::memcached::Memcached;
use crate::passwords::Passwords;
use crate::redis::{Cursors, Redis};
use crate::shared::{Shared, Worker};
use crate::shutdown::{Phase, Shutdown, Signals, Stop};
use crate::slow::SlowLog;
use crate::{Error, sweep};
use index::Index;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
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
    listening: Vec<Listening>,
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
        let passwords = match &config.passwords {
            Some(path) => Passwords::read(path)?,
            None => Passwords::default(),
        };
        let limits = Limits::new(&config);
        let databases = Databases::open(index, config.maps.clone(), limits.value_kept())?;
        let workers = config.workers();
        let of = |protocol, addresses: &[Address]| {
            let bound = addresses
                .iter()
                .map(|address| Listening::bind(protocol, address, workers));
            bound.collect::<Result<Vec<_>, _>>()
        };
        let mut listening = of(Protocol::Memcached, &config.memcached)?;
        listening.extend(of(Protocol::Redis, &config.redis)?);
        let shared = Arc::new(Shared {
            databases,
            limits,
            slow: SlowLog::new(&config),
            latencies: (0..workers).map(|_| Latencies::default()).collect(),
            passwords,
            cursors: Cursors::default(),
            access: Access::default(),
            config,
            workers: (0..workers).map(|_| Counters::default()).collect(),
            clients: Arc::new(Clients::default()),
            rejected: AtomicU64::new(0),
            swept: AtomicU64::new(0),
            started: Instant::now(),
        });
        Ok(Server { listening, shared })
    }

    /// The addresses it listens on, with the port that was free where port 0 was asked for.
    pub fn addresses(&self, protocol: Protocol) -> Vec<Address> {
        let of_protocol = |listening: &&Listening| listening.protocol == protocol;
        self.listening
            .iter()
            .filter(of_protocol)
            .map(|listening| listening.address.clone())
            .collect()
    }

    /// Serves until `shutdown`. What has arrived whole by then is answered.
    ///
    /// # Errors
    ///
    /// Threads, runtimes or signal handlers that the operating system refuses.
    pub fn run(self, shutdown: &Shutdown) -> Result<Report, Error> {
        let Server {
            mut listening,
            shared,
        } = self;
        let runtime = runtime()?;
        // Signals are heard before the first connection is served.
        let signals = {
            let _within = runtime.enter();
            let reloads = shared.config.reload.is_some();
            shutdown.listen(reloads).map_err(Error::Threads)?
        };
        // Nothing is sent through `working`: its end tells that the workers have ended.
        let (working, worked) = mpsc::channel::<()>(1);
        let mut threads = Vec::new();
        let started = (0..shared.workers.len()).try_for_each(|number| {
            let worker = Worker::new(shared.clone(), number);
            let thread = Thread::start(worker, &mut listening, shutdown, &working)?;
            threads.push(thread);
            Ok(())
        });
        drop(working);
        if started.is_ok() {
            runtime.block_on(LocalSet::new().run_until(wait(&shared, shutdown, signals, worked)));
        }
        shutdown.stop();
        let abandoned = threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum();
        started.map(|()| report(&shared, abandoned))
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

fn runtime() -> Result<Runtime, Error> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::Threads)
}

/// Sweeps until `shutdown`, and waits until the workers have ended or a second signal comes.
async fn wait(
    shared: &Arc<Shared>,
    shutdown: &Shutdown,
    mut signals: Signals,
    mut worked: mpsc::Receiver<()>,
) {
    let mut tasks = JoinSet::new();
    tasks.spawn_local(sweep::count(shared.clone()));
    if let Some(pause) = shared.config.sweep_pause {
        tasks.spawn_local(sweep::run(shared.clone(), pause));
    }
    let mut stop = shutdown.subscribe();
    loop {
        tokio::select! {
            () = stop.reached(Phase::Draining) => break,
            () = signals.stop.next() => break shutdown.stop(),
            () = signals.reload.next() => reload(shared),
            // All workers have panicked.
            _ = worked.recv() => return,
        }
    }
    drop(tasks);
    tokio::select! {
        _ = worked.recv() => {}
        () = signals.stop.next() => shutdown.stop_at_once(),
    }
}

/// Takes the limits that shall apply now, or keeps the old ones.
fn reload(shared: &Shared) {
    let Some(reload) = &shared.config.reload else {
        return;
    };
    match reload() {
        Ok(config) => {
            shared.take(&config);
            tracing::info!("limits reloaded");
        }
        Err(why) => tracing::error!(why, "reload refused, the old limits stay"),
    }
}

/// What a worker's thread runs.
struct Thread {
    worker: Rc<Worker>,
    stop: Stop,
    tasks: JoinSet<()>,
}

impl Thread {
    /// Starts a worker. It returns how many connections had to be abandoned.
    fn start(
        worker: Worker,
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
                let thread = Thread {
                    worker: Rc::new(worker),
                    stop,
                    tasks: JoinSet::new(),
                };
                runtime.block_on(LocalSet::new().run_until(thread.serve(listeners)))
            })
            .map_err(Error::Threads)
    }

    /// Serves until it shall stop and all connections have ended, or have been given the time to. How many had to be
    /// abandoned.
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
                // Ended connections are let go; one whose task has panicked ends alone.
                Some(_) = self.tasks.join_next() => {}
                () = stop.reached(Phase::Draining) => break,
            }
        }
        drop(listeners);
        let patience = self.worker.shared.config.drain_timeout;
        let drained = async { while self.tasks.join_next().await.is_some() {} };
        tokio::select! {
            _ = tokio::time::timeout(patience, drained) => {}
            () = stop.reached(Phase::AtOnce) => {}
        }
        self.tasks.len()
    }

    fn begin(&mut self, accepted: Accepted) {
        let Accepted {
            protocol,
            mut stream,
            names,
        } = accepted;
        let shared = &self.worker.shared;
        match Clients::enter(&shared.clients, shared.limits.connections(), protocol, names) {
            Some(open) => {
                let connection = Connection {
                    open,
                    worker: self.worker.clone(),
                    stop: self.stop.clone(),
                };
                self.tasks
                    .spawn_local(async move { connection.serve(&mut *stream).await });
            }
            None => {
                let rejected = shared.rejected.fetch_add(1, Ordering::Relaxed) + 1;
                // The first, and then ever more seldom: a flood shall not fill the log.
                if rejected.is_power_of_two() {
                    tracing::warn!(rejected, "too many connections");
                }
                self.tasks.spawn_local(async move {
                    // It fits into the new socket's space, or is lost with a client that is gone already.
                    let _ = stream.write_all(protocol.too_many()).await;
                });
            }
        }
    }
}

struct Connection {
    open: Open,
    worker: Rc<Worker>,
    stop: Stop,
}

impl Connection {
    async fn serve(self, stream: &mut dyn crate::listen::Stream) {
        let Connection { open, worker, stop } = self;
        worker.add(Counter::Connections, 1);
        let client = &open.client;
        let (id, protocol) = (client.id, client.protocol.name());
        tracing::debug!(id, protocol, client = client.peer, "connected");
        let ended = match client.protocol {
            Protocol::Memcached => {
                let mut protocol = Memcached::new(worker.clone(), client.clone());
                connection::serve(stream, &mut protocol, client, &worker, stop).await
            }
            Protocol::Redis => {
                let mut protocol = Redis::new(worker.clone(), client.clone());
                connection::serve(stream, &mut protocol, client, &worker, stop).await
            }
        };
        match ended {
            Ok(()) => tracing::debug!(id, "disconnected"),
            // The client's end of the connection.
            Err(why) => tracing::debug!(id, %why, "disconnected"),
        }
    }
}
