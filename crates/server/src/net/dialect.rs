//! What there is to say of a protocol before a client has said anything.

/// A protocol, by its name and those of its commands.
#[derive(Debug)]
pub struct Dialect {
    /// Its place among those that the server speaks.
    pub place: usize,
    /// What it is called.
    pub name: &'static str,
    /// What a client is told that comes when there are too many.
    pub too_many: &'static [u8],
    /// The error that a client is sent in place of answers that may not be durable, for this reason.
    pub not_durable: fn(&str) -> Vec<u8>,
    /// What the command of a number is called; numbers begin at 0.
    pub command: fn(usize) -> Option<&'static str>,
}

impl PartialEq for Dialect {
    fn eq(&self, other: &Dialect) -> bool {
        self.place == other.place
    }
}

impl Eq for Dialect {}
