//! The commands between `MULTI` and `EXEC`.

use crate::freed;
use crate::net::clients::Client;
use crate::proto::redis::args::{Args, Kept};
use std::sync::Arc;

/// Maximum number of bytes that wait between `MULTI` and `EXEC`.
const MAX: usize = 64 << 20;

/// The queue of a transaction. While it exists, `CLIENT LIST` shows the number of its commands.
pub struct Queue {
    client: Arc<Client>,
    /// Each with its number.
    commands: Vec<(usize, Kept)>,
    size: usize,
    /// Whether a command was refused, so that `EXEC` will carry out none.
    refused: bool,
}

impl Queue {
    /// Creates an empty queue.
    pub fn new(client: Arc<Client>) -> Queue {
        client.know(|known| known.queued = Some(0));
        Queue {
            client,
            commands: Vec::new(),
            size: 0,
            refused: false,
        }
    }

    /// Notes that a command was refused.
    pub fn refuse(&mut self) {
        self.refused = true;
    }

    /// Returns whether a command was refused.
    pub fn is_refused(&self) -> bool {
        self.refused
    }

    /// Returns the commands with their numbers.
    pub fn commands(&self) -> &[(usize, Kept)] {
        &self.commands
    }

    /// Keeps the command with this number for `EXEC`.
    ///
    /// # Errors
    ///
    /// The queue is full: the error's text. `EXEC` will then carry out none of the commands.
    pub fn push(&mut self, number: usize, args: Args<'_>) -> Result<(), &'static str> {
        let kept = Kept::new(args);
        if self.size + kept.size() > MAX {
            self.refused = true;
            return Err("ERR too much is queued");
        }
        self.size += kept.size();
        self.commands.push((number, kept));
        self.client.know(|known| known.queued = Some(self.commands.len()));
        Ok(())
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.client.know(|known| known.queued = None);
        freed::note(self.size);
    }
}
