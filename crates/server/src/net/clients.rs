//! The open connections: their number, their clients, and a way to end one.

use crate::net::dialect::Dialect;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::Notify;

/// The user of a client that has not logged in.
pub const DEFAULT: &[u8] = b"default";

/// One open connection, as others see it.
#[derive(Debug)]
pub struct Client {
    /// Ids ascend from 1 and are never reused.
    pub id: u64,
    pub protocol: &'static Dialect,
    /// The client's address.
    pub peer: String,
    /// The server's address that it connected to.
    pub local: String,
    /// Whether that is a unix socket.
    pub unix: bool,
    since: Instant,
    /// When the client last sent something, in milliseconds after `since`.
    active: AtomicU64,
    killed: AtomicBool,
    /// Wakes the connection to end, or to look at changed limits.
    told: Notify,
    /// Its [`State`].
    state: AtomicU8,
    /// The number of the client's last command, counted from 1; 0: none. Noted for Redis clients only.
    command: AtomicUsize,
    known: Mutex<Known>,
}

/// The ends of a connection, as [`Client`] has them.
#[derive(Clone, Debug)]
pub struct Ends {
    pub peer: String,
    pub local: String,
    pub unix: bool,
}

/// The activity of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No bytes have arrived yet.
    New,
    /// It waits for a line.
    Reading,
    /// It waits for data whose length it knows.
    ReadingData,
    /// The server answers its requests.
    Parsing,
    /// The server sends it answers.
    Writing,
}

impl State {
    /// Returns memcached's name for it.
    pub fn name(self) -> &'static str {
        match self {
            State::New => "conn_new_cmd",
            State::Reading => "conn_read",
            State::ReadingData => "conn_nread",
            State::Parsing => "conn_parse_cmd",
            State::Writing => "conn_mwrite",
        }
    }
}

/// A client's name and state. Only Redis clients have them.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The user that it has logged in as; `None` before a login.
    pub user: Option<Vec<u8>>,
    pub name: String,
    pub lib_name: String,
    pub lib_version: String,
    pub db: usize,
    /// Whether it speaks RESP3.
    pub resp3: bool,
    /// How many commands wait for `EXEC`; `None`: it is in no transaction.
    pub queued: Option<usize>,
}

impl Known {
    /// Returns the name of its user.
    pub fn user(&self) -> &[u8] {
        self.user.as_deref().unwrap_or(DEFAULT)
    }
}

impl Client {
    /// Returns a copy of its name and state.
    pub fn known(&self) -> Known {
        self.lock().clone()
    }

    /// Changes its name and state.
    pub fn know(&self, change: impl FnOnce(&mut Known)) {
        change(&mut self.lock());
    }

    /// Notes the number of the command or subcommand that it has sent.
    pub fn note_command(&self, number: usize) {
        self.command.store(number + 1, Ordering::Relaxed);
    }

    /// Returns the number of the last command that it has sent.
    pub fn command(&self) -> Option<usize> {
        self.command.load(Ordering::Relaxed).checked_sub(1)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // Each change is an assignment, so the value is valid also after a panic.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the whole seconds since it connected.
    pub fn age(&self) -> u64 {
        self.since.elapsed().as_secs()
    }

    /// Returns the whole seconds since it last sent something.
    pub fn idle(&self) -> u64 {
        let since = self.since.elapsed().as_millis() as u64;
        since.saturating_sub(self.active.load(Ordering::Relaxed)) / 1000
    }

    /// Notes its connection's activity.
    pub fn note_state(&self, state: State) {
        self.state.store(state as u8, Ordering::Relaxed);
    }

    /// Returns its connection's activity.
    pub fn state(&self) -> State {
        use State::{New, Parsing, Reading, ReadingData, Writing};
        let state = self.state.load(Ordering::Relaxed);
        let mut all = [New, Reading, ReadingData, Parsing, Writing].into_iter();
        all.find(|one| *one as u8 == state).unwrap_or(New)
    }

    /// Notes that it has sent something.
    pub fn note(&self) {
        self.active
            .store(self.since.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    /// Ends the connection. One that is in a turn ends after the turn, or when it next waits for its client.
    pub fn kill(&self) {
        self.killed.store(true, Ordering::Release);
        self.told.notify_one();
    }

    /// Wakes its connection, if it waits for the client, to look at limits that may have changed.
    pub fn look_again(&self) {
        self.told.notify_one();
    }

    /// Returns whether its end was requested.
    pub fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Acquire)
    }

    /// Waits until its end is requested.
    pub async fn killed(&self) {
        while !self.is_killed() {
            self.told.notified().await;
        }
    }
}

/// All open connections.
#[derive(Debug, Default)]
pub struct Clients {
    last: AtomicU64,
    count: AtomicUsize,
    open: Mutex<BTreeMap<u64, Arc<Client>>>,
}

impl Clients {
    /// Admits a connection, unless `max` are open.
    pub fn enter(clients: &Arc<Clients>, max: usize, protocol: &'static Dialect, ends: Ends) -> Option<Open> {
        let room = |open: usize| (open < max).then_some(open + 1);
        clients
            .count
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, room)
            .ok()?;
        let Ends { peer, local, unix } = ends;
        let client = Arc::new(Client {
            id: clients.last.fetch_add(1, Ordering::Relaxed) + 1,
            protocol,
            peer,
            local,
            unix,
            since: Instant::now(),
            active: AtomicU64::new(0),
            killed: AtomicBool::new(false),
            told: Notify::new(),
            state: AtomicU8::new(State::New as u8),
            command: AtomicUsize::new(0),
            known: Mutex::default(),
        });
        clients.lock().insert(client.id, client.clone());
        Some(Open {
            clients: clients.clone(),
            client,
        })
    }

    /// Returns the number of open connections.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns the clients of the open connections, in the order in which they connected.
    pub fn all(&self) -> Vec<Arc<Client>> {
        self.lock().values().cloned().collect()
    }

    /// Wakes all connections to [look again](Client::look_again).
    pub fn look_again(&self) {
        self.lock().values().for_each(|client| client.look_again());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Client>>> {
        // Each change is one insert or remove, so the map is valid also after a panic.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open connection, while it is counted.
#[derive(Debug)]
pub struct Open {
    clients: Arc<Clients>,
    pub client: Arc<Client>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.clients.lock().remove(&self.client.id);
        self.clients.count.fetch_sub(1, Ordering::Relaxed);
    }
}
