//! memcached's text protocol.
//!
//! | module    | what it holds                                     |
//! |-----------|---------------------------------------------------|
//! | `request` | what a client can ask for                         |
//! | `parse`   | bytes to requests                                 |
//! | `answer`  | appends answers to an output buffer               |

pub mod answer;
pub mod parse;
pub mod request;
