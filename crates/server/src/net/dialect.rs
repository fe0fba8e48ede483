//! A protocol's properties that are known before a client has sent anything.

/// A protocol, by its name and those of its commands.
#[derive(Debug)]
pub struct Dialect {
    /// Its place among those that the server speaks.
    pub place: usize,
    /// The protocol's name.
    pub name: &'static str,
    /// The answer to a client that comes when there are too many.
    pub too_many: &'static [u8],
    /// The error that a client is sent in place of answers that may not be durable, for this reason.
    pub not_durable: fn(&str) -> Vec<u8>,
    /// The name of the command with a number; numbers begin at 0.
    pub command: fn(usize) -> Option<&'static str>,
}

impl PartialEq for Dialect {
    fn eq(&self, other: &Dialect) -> bool {
        self.place == other.place
    }
}

impl Eq for Dialect {}
