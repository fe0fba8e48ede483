//! What both protocols share: items, their operations, and eviction.
//!
//! | module      | what it holds                                               |
//! |-------------|-------------------------------------------------------------|
//! | `item`      | the layout of an item in a value                            |
//! | `record`    | what the server itself remembers, and where                 |
//! | `store`     | what the commands do, each as one edit of the index         |
//! | `databases` | the items of each database, and the gate before them        |
//! | `memory`    | how much the items may take, and who goes (`frequency`)      |
//! | `access`    | when items were last asked for                              |
//! | `cursors`   | the places of scans                                         |
//! | `number`    | decimal numbers                                             |

pub mod access;
pub mod cursors;
pub mod databases;
mod frequency;
pub mod item;
pub mod memory;
pub mod number;
pub mod record;
pub mod store;
