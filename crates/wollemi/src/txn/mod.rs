//! Several changes that happen together: transactions, and batches, which read nothing.
//!
//! | module        | what it holds                                            |
//! |---------------|----------------------------------------------------------|
//! | `transaction` | reads and changes of any keys, committed together        |
//! | `range`       | ranges as a transaction sees them                        |
//! | `cursor`      | the same, a step at a time, without borrowing it         |
//! | `pop`         | taking the entry at an end of a map                      |
//! | `batch`       | changes without reads                                    |
//! | `overlay`     | changes that are not committed, over what the maps hold  |

pub mod batch;
pub mod cursor;
pub mod overlay;
mod pop;
pub mod range;
pub mod transaction;
