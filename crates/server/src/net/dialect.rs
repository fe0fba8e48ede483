//! The properties of a protocol that sockets and metrics need.

/// A protocol, by its name and those of its commands.
#[derive(Debug)]
pub struct Dialect {
    /// Its place among the server's protocols.
    pub place: usize,
    /// The protocol's name.
    pub name: &'static str,
    /// The answer to a client when there are too many connections.
    pub too_many: &'static [u8],
    /// Creates the error that replaces answers that may not be durable, for this reason.
    pub not_durable: fn(&str) -> Vec<u8>,
    /// Returns the name of the command with this number; numbers begin at 0.
    pub command: fn(usize) -> Option<&'static str>,
}

impl PartialEq for Dialect {
    fn eq(&self, other: &Dialect) -> bool {
        self.place == other.place
    }
}

impl Eq for Dialect {}
