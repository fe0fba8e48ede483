//! What a connection remembers between two commands. Nothing here knows a command: the commands stand above it.

pub mod queue;
pub mod walk;
pub mod watches;

use crate::items::store::ItemStore;
use crate::ops::copying::Outcome;
use queue::Queue;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use walk::Walk;
use watches::Watches;

/// What a connection remembers between two commands.
pub struct State {
    /// The selected database, and its number.
    pub store: Arc<ItemStore>,
    pub db: usize,
    /// Whether the client speaks RESP3.
    pub resp3: bool,
    /// Whether the client has logged in, or need not.
    pub known: bool,
    /// The commands since `MULTI`.
    pub queue: Option<Queue>,
    pub watched: Watches,
    /// Whether the connection ends after this command.
    pub closing: bool,
    /// Whether an `EXEC` is being carried out.
    pub executing: bool,
    /// The backup that the connection waits for.
    pub saving: Option<Saving>,
    /// The walk of the last command, if it continues in another turn.
    pub walk: Option<Walk>,
    /// The time that the walk has taken in the turns before.
    pub walked: Duration,
}

/// Receives the result of a backup once it has ended.
pub type Saving = oneshot::Receiver<Outcome>;

impl State {
    /// Creates the state of a new connection, whose client has selected this database.
    pub fn new(store: Arc<ItemStore>, known: bool) -> State {
        State {
            store,
            db: 0,
            resp3: false,
            known,
            queue: None,
            watched: Watches::default(),
            closing: false,
            executing: false,
            saving: None,
            walk: None,
            walked: Duration::ZERO,
        }
    }
}
