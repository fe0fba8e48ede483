//! Progress on standard error, if that is a terminal.

use std::fmt::Display;
use std::io::{IsTerminal, Write, stderr};

/// A progress line that each message replaces, cleared at the end.
pub struct Progress {
    shown: bool,
}

impl Progress {
    /// Creates a progress line, shown only on a terminal.
    pub fn new() -> Progress {
        Progress {
            shown: stderr().is_terminal(),
        }
    }

    /// Shows the current activity.
    pub fn say(&self, what: impl Display) {
        if self.shown {
            // Progress may be lost; a closed output does not stop the run.
            let _ = write!(stderr(), "\r\x1b[K{what} …");
        }
    }

    /// Clears the line, so that the next output starts on a clean one.
    pub fn clear(&self) {
        if self.shown {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
