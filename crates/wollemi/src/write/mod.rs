//! Changing maps: every change of a key goes through [`guarded`], alone or as one of a commit.
//!
//! | module          | what it holds                                                                    |
//! |-----------------|----------------------------------------------------------------------------------|
//! | `gate`          | who may write now: writers and committers, or one that needs them to stand still |
//! | `stripes`       | versioned locks on keys                                                          |
//! | `guarded`       | an index behind gate and stripes                                                 |
//! | `traffic`       | what the maps of a database have in common                                       |
//! | `store`         | the heap, the traffic and the slots                                              |
//! | `commit`        | several changes at once, after what was read was checked                         |
//! | `intent`        | the bytes of a commit that is under way                                          |
//! | `own`           | the database's own root in use; `slots`: which of its slots are claimed          |
//! | `key_state`     | a key and what it holds, or shall hold                                           |
//! | `roots`         | the maps' roots: maps made, opened and dropped                                   |
//! | `retry`         | how often what meets a conflict is tried again                                   |
//! | `reads`         | what a transaction has read                                                      |
//! | `active`        | commits under way, as others must know of them                                   |
//! | `before_images` | what keys held before they changed, for snapshots                                |
//! | `journal`       | the log of a database of level `disk`, as writers and readers meet it            |
//! | `turn`          | operations of a thread that wait together until they are durable                 |
//! | `walked`        | which map a checkpoint walks                                                     |
//! | `watch`         | events, for those who watch                                                      |

pub mod active;
pub mod before_images;
pub mod commit;
pub mod gate;
pub mod guarded;
pub mod intent;
pub mod journal;
pub mod key_state;
pub mod own;
pub mod reads;
pub mod retry;
pub mod roots;
pub mod slots;
pub mod store;
pub mod stripes;
pub mod traffic;
pub mod turn;
pub mod walked;
pub mod watch;
