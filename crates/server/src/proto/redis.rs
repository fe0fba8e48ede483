//! Redis's protocol.
//!
//! | module   | what it holds                                          |
//! |----------|--------------------------------------------------------|
//! | `args`   | the arguments of a command                             |
//! | `parse`  | bytes to arguments (`inline`: those of an inline line) |
//! | `reply`  | appends replies to an output buffer                    |

pub mod args;
mod inline;
pub mod parse;
pub mod reply;

/// The Redis version whose replies these are. Clients read it to decide which commands they may send.
pub const VERSION: &str = "7.0.15";
