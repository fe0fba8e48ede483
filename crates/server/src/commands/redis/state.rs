//! What a connection remembers.

pub mod walk;
