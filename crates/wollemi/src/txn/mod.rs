//! Several changes that happen together: transactions, and batches, which read nothing.
//!
//! | module        | what it holds                                            |
//! |---------------|----------------------------------------------------------|
//! | `transaction` | reads and changes of any keys, committed together        |
//! | `range`       | ranges as a transaction sees them                        |
//! | `cursor`      | ranges a step at a time, without borrowing               |
//! | `edits`       | further operations on keys, in transactions              |
//! | `ends`        | the first and last entry, in transactions                |
//! | `pop`         | removing the first or last entry of a map                |
//! | `batch`       | changes without reads                                    |
//! | `overlay`     | uncommitted changes over the content of the maps         |
//! | `layer`       | uncommitted changes to one map                           |

pub mod batch;
pub mod cursor;
mod edits;
mod ends;
mod layer;
pub mod overlay;
mod pop;
pub mod range;
pub mod transaction;
