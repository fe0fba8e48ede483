//! Changing maps: every change of a key goes through [`guarded`], alone or as one of a commit. (A build and a replay
//! write to the bare index instead, while no other thread can use the map.)
//!
//! | module          | what it holds                                                                    |
//! |-----------------|----------------------------------------------------------------------------------|
//! | `gate`          | admits writers and committers, or one closer that needs them stopped             |
//! | `stripes`       | versioned locks on keys                                                          |
//! | `guarded`       | an index behind gate and stripes                                                 |
//! | `traffic`       | state shared by the maps of a database                                           |
//! | `store`         | the heap, the traffic and the slots                                              |
//! | `map_index`     | a map's index behind the gate, and the plans of commits                          |
//! | `commit`        | several changes at once, after a check of the reads                              |
//! | `intent`        | the bytes of a commit in progress                                                |
//! | `own`           | the database's own root in use; `slots`: which of its slots are claimed          |
//! | `roots`         | the maps' roots: creating, opening and dropping maps                             |
//! | `retry`         | the policy for retries after conflicts                                           |
//! | `reads`         | a transaction's reads                                                            |
//! | `active`        | commits in progress, as other writers see them                                   |
//! | `recorded`      | edits whose decisions the log and the snapshots record                           |
//! | `before_images` | values of keys before their changes, for snapshots                               |
//! | `journal`       | the log of a database of level `disk`, as writers and readers use it             |
//! | `turn`          | waiting for durability; operations of a thread that wait together                |
//! | `walked`        | the map that a checkpoint is walking                                             |
//! | `watch`         | streams of change events                                                         |

pub mod active;
pub mod before_images;
pub mod commit;
pub mod gate;
pub mod guarded;
pub mod intent;
pub mod journal;
pub mod map_index;
pub mod own;
pub mod reads;
pub mod recorded;
pub mod retry;
pub mod roots;
pub mod slots;
pub mod store;
pub mod stripes;
pub mod traffic;
pub mod turn;
pub mod walked;
pub mod watch;
