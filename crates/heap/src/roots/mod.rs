//! Named roots: where recovery and the indexes start (DCMM's "global naming space").
//!
//! | module | what it holds |
//! |---|---|
//! | `entry` | the bytes of a named root |
//! | `directory` | finding, listing and creating roots |

pub(crate) mod directory;
pub(crate) mod entry;
