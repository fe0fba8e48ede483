//! Threads: workers that accept and serve connections, each with a runtime of its own; one that counts and sweeps
//! items; and the thread that calls [`run`], which serves metrics, watches the log, and waits for signals and shutdown.

use crate::commands::{self, Session, memcached, redis};
use crate::counters::{self, Counter};
use crate::net::dialect::Dialect;
use crate::net::listen::{self, Address, Listening};
use crate::net::shutdown::{AnyOf, Phase, Shutdown, Signals};
use crate::net::tls::Encryption;
use crate::net::worker::{Thread, runtime};
use crate::ops::config::Config;
use crate::ops::shared::{Shared, Worker};
use crate::ops::sync::{self, Sync};
use crate::ops::{metrics, sweep};
use crate::{Error, freed};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::{JoinSet, LocalSet};
use wollemi::Db;

/// A protocol that clients speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// memcached's text protocol.
    Memcached,
    /// Redis's protocol, RESP2 or RESP3.
    Redis,
}

impl Protocol {
    fn dialect(self) -> &'static Dialect {
        match self {
            Protocol::Memcached => &memcached::DIALECT,
            Protocol::Redis => &redis::DIALECT,
        }
    }
}

/// The totals of a server's run. If its statistics were reset (`stats reset`, `CONFIG RESETSTAT`), all but `elapsed`,
/// `swept` and `abandoned` count from then on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServeReport {
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
    /// Requests of memcached clients that failed in the index or found no room.
    pub failures: u64,
    /// Dead items the sweep has removed.
    pub swept: u64,
    /// Connections that had not ended when the drain timeout was over, or when the server was told to stop at once.
    pub abandoned: usize,
}

/// A server that listens, and will serve once it [runs](Server::run).
#[derive(Debug)]
pub struct Server {
    listening: Vec<Listening>,
    metrics: Option<(SocketAddr, TcpListener)>,
    shared: Arc<Shared>,
    /// The signals and their runtime, once the server listens for them.
    hearing: Option<(Runtime, Signals)>,
}

/// Listens and serves until `shutdown`: [`Server::bind`] and [`Server::run`].
pub fn run(config: Config, db: &Db, shutdown: &Shutdown) -> Result<ServeReport, Error> {
    Server::bind(config, db)?.run(shutdown)
}

impl Server {
    /// Opens the items in the database's maps, which are empty or were written by a server, and begins to listen.
    ///
    /// # Errors
    ///
    /// An address that cannot be listened on or is not allowed; a map that is not the server's; passwords or a
    /// certificate that cannot be read; a sync policy that the pool's level does not offer; a failure of the index.
    pub fn bind(config: Config, db: &Db) -> Result<Server, Error> {
        config.check()?;
        let shared = Arc::new(Shared::open(config, db, &commands::DIALECTS)?);
        let config = &shared.config;
        let of = |protocol: Protocol, addresses: &[Address]| {
            let bound = addresses
                .iter()
                .map(|address| Listening::bind(protocol.dialect(), address, shared.net.workers()));
            bound.collect::<Result<Vec<_>, _>>()
        };
        let mut listening = of(Protocol::Memcached, &config.memcached)?;
        listening.extend(of(Protocol::Redis, &config.redis)?);
        let addresses = listening.iter().map(|listening| listening.address.clone());
        shared.net.listening.get_or_init(|| addresses.collect());
        let metrics = config.metrics.map(listen::one).transpose()?;
        Ok(Server {
            listening,
            metrics,
            shared,
            hearing: None,
        })
    }

    /// Returns the addresses it listens on; port 0 is replaced by the port that the system chose.
    pub fn addresses(&self, protocol: Protocol) -> Vec<Address> {
        let of_protocol = |listening: &&Listening| listening.protocol == protocol.dialect();
        self.listening
            .iter()
            .filter(of_protocol)
            .map(|listening| listening.address.clone())
            .collect()
    }

    /// Returns the current sync policy.
    pub fn sync(&self) -> Sync {
        self.shared.syncing.get()
    }

    /// Returns the address of the metrics endpoint, if there is one.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(|(address, _)| *address)
    }

    /// Listens for the signals of `shutdown` from now on, so that a signal that arrives before [`run`](Server::run) is
    /// neither lost nor ends the process. For callers that announce the server before it runs.
    ///
    /// # Errors
    ///
    /// A runtime or signal handlers that the operating system refuses.
    pub fn hear(&mut self, shutdown: &Shutdown) -> Result<(), Error> {
        self.hearing = Some(heard(&self.shared, shutdown)?);
        Ok(())
    }

    /// Serves until `shutdown`. Answers the requests that have arrived completely before it.
    ///
    /// # Errors
    ///
    /// Threads, runtimes or signal handlers that the operating system refuses.
    pub fn run(self, shutdown: &Shutdown) -> Result<ServeReport, Error> {
        let Server {
            mut listening,
            metrics,
            shared,
            hearing,
        } = self;
        // The signal handlers are installed before the first connection is served.
        let (runtime, signals) = match hearing {
            Some(hearing) => hearing,
            None => heard(&shared, shutdown)?,
        };
        let metrics = {
            let _within = runtime.enter();
            let metrics = metrics.map(|(_, socket)| tokio::net::TcpListener::from_std(socket));
            metrics.transpose().map_err(Error::Threads)?
        };
        // Nothing is sent through `working`: the channel closes when all workers have ended.
        let (working, worked) = mpsc::channel::<()>(1);
        let mut threads = Vec::new();
        let started = (0..shared.net.workers()).try_for_each(|number| {
            let worker = Worker::new(shared.clone(), number);
            let thread = Thread::<Session>::start(worker, &mut listening, shutdown, &working)?;
            threads.push(thread);
            Ok(())
        });
        drop(working);
        let started = started.and_then(|()| sweep::start(shared.clone(), shutdown.subscribe()));
        if started.is_ok() {
            let waiting = wait(&shared, shutdown, signals, metrics, (listening, worked));
            runtime.block_on(LocalSet::new().run_until(waiting));
        }
        // A reload may still run.
        runtime.shutdown_background();
        shutdown.stop();
        let abandoned = threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum();
        shared.backups.wait();
        let sweeping = started?;
        // A removal may wait for room, for which a second signal does not wait.
        if !shutdown.subscribe().is(Phase::AtOnce) {
            // If it has panicked, items are swept by the next server.
            let _ = sweeping.join();
        }
        Ok(report(&shared, abandoned))
    }
}

fn report(shared: &Shared, abandoned: usize) -> ServeReport {
    let sums = counters::sums(shared.net.counters.iter());
    let sum = |counter: Counter| sums[counter as usize].1;
    ServeReport {
        elapsed: shared.started.elapsed(),
        connections: sum(Counter::Connections),
        rejected: shared.net.rejected.load(Ordering::Relaxed),
        gets: sum(Counter::Gets),
        sets: sum(Counter::Sets),
        failures: sum(Counter::Failures),
        swept: shared.swept.load(Ordering::Relaxed),
        abandoned,
    }
}

/// Returns the signals of `shutdown`, and the runtime that receives them.
fn heard(shared: &Shared, shutdown: &Shutdown) -> Result<(Runtime, Signals), Error> {
    let runtime = runtime()?;
    let signals = {
        let _within = runtime.enter();
        shutdown.listen(shared.config.host.is_some())
    };
    Ok((runtime, signals.map_err(Error::Threads)?))
}

/// Serves metrics and reloads until `shutdown`, then waits until the workers have ended or a second signal arrives.
async fn wait(
    shared: &Arc<Shared>,
    shutdown: &Shutdown,
    signals: Signals,
    metrics: Option<tokio::net::TcpListener>,
    (listening, mut worked): (Vec<Listening>, mpsc::Receiver<()>),
) {
    let Signals {
        stop: mut stop_signals,
        reload: reload_signals,
    } = signals;
    let mut tasks = JoinSet::new();
    tasks.spawn_local(sync::watch(shared.databases.db().clone()));
    tasks.spawn_local(reload_at(reload_signals, shared.clone()));
    if let Some(host) = shared.config.host.clone() {
        tasks.spawn_local(freed::run(move || host.give_back()));
    }
    if let Some(listener) = metrics {
        tasks.spawn_local(metrics::http::serve(listener, shared.clone()));
    }
    let mut stop = shutdown.subscribe();
    tokio::select! {
        () = stop.reached(Phase::Draining) => {}
        () = stop_signals.next() => shutdown.stop(),
        // All workers have ended: by a panic, or because of a `stop` that this task has not noticed yet.
        _ = worked.recv() => return,
    }
    drop(tasks);
    // The next server may listen now: the files of unix sockets are removed.
    drop(listening);
    // A connection may wait for the backup.
    shared.backups.give_up();
    tokio::select! {
        _ = worked.recv() => {}
        () = stop_signals.next() => shutdown.stop_at_once(),
    }
}

/// Reloads at each of these signals.
async fn reload_at(mut signals: AnyOf, shared: Arc<Shared>) {
    loop {
        signals.next().await;
        reload(&shared).await;
    }
}

/// Reloads the settings that may change while the server runs (those of [`Shared::take`]: limits, the slow log, the
/// file for backups, the sync policy), the passwords and the certificate. If the settings cannot be read, nothing
/// changes; if the passwords or the certificate cannot, the old ones stay.
async fn reload(shared: &Shared) {
    let Some(host) = shared.config.host.clone() else {
        return;
    };
    // It may look up names in the network, so it has a thread of its own.
    let read = tokio::task::spawn_blocking(move || host.reload()).await;
    match read.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(config) => {
            shared.take(&config);
            tracing::info!("limits reloaded");
            match shared.passwords.read_again() {
                Err(why) => tracing::error!(%why, "passwords refused, the old ones stay"),
                Ok(()) if shared.passwords.is_disabled() => {}
                Ok(()) => tracing::info!("passwords reloaded"),
            }
            match shared.net.encryption.as_ref().map(Encryption::read_again) {
                Some(Err(why)) => tracing::error!(%why, "certificate refused, the old one stays"),
                Some(Ok(())) => tracing::info!("certificate reloaded"),
                None => {}
            }
        }
        Err(why) => tracing::error!(why, "reload refused, the old limits stay"),
    }
}
