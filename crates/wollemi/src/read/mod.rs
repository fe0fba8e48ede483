//! Reading maps: by key, in order, and as of a moment.
//!
//! | module     | what it holds                                              |
//! |------------|------------------------------------------------------------|
//! | `map`      | reads of a map by its handle                                |
//! | `reader`   | reads that borrow from the pool                             |
//! | `iter`     | iterators that own what they yield                          |
//! | `ends`     | the first and the last entry                                |
//! | `walk`     | walking a map a few keys at a time                          |
//! | `merge`    | entries of an index with others laid over them              |
//! | `snapshot` | all maps as they were at one moment                         |
//! | `view_ends` | the first and the last entry of a map at that moment       |

pub mod ends;
pub mod iter;
mod map;
pub mod merge;
pub mod reader;
pub mod snapshot;
mod view_ends;
pub mod walk;
