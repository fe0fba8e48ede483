//! Redis's protocol.

mod inline;
pub mod parse;
pub mod reply;
