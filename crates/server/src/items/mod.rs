//! What both protocols share: items, their operations, and eviction.
//!
//! | module      | what it holds                                        |
//! |-------------|------------------------------------------------------|
//! | `item`      | the layout of an item in a value                     |
//! | `record`    | the server's own state that survives a crash         |
//! | `store`     | operations on items, each one edit of the index      |
//! | `databases` | the items of each database, and the gate before them |
//! | `memory`    | the memory limit, and eviction (`frequency`)         |
//! | `access`    | the last accesses of items                           |
//! | `cursors`   | the places of scans                                  |
//! | `number`    | decimal numbers                                      |

pub mod access;
pub mod cursors;
pub mod databases;
mod frequency;
pub mod item;
pub mod memory;
pub mod number;
pub mod record;
pub mod store;
