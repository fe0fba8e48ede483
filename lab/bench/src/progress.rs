//! Prints progress to standard error, if that is a terminal.

use std::fmt::Display;
use std::io::{IsTerminal, Write, stderr};

/// One line that is replaced as the work goes on, and wiped at the end.
pub struct Progress {
    shown: bool,
}

impl Progress {
    /// Shows something only on a terminal.
    pub fn new() -> Progress {
        Progress {
            shown: stderr().is_terminal(),
        }
    }

    /// What is going on now.
    pub fn say(&self, what: impl Display) {
        if self.shown {
            // A closed output is no reason to stop.
            let _ = write!(stderr(), "\r\x1b[K{what} …");
        }
    }

    /// Nothing, for now: what is printed next starts on a clean line.
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
