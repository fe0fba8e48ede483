//! What follows the links from the roots: recovery, the audit, and the retirement of whole trees.
//!
//! | module | what it holds |
//! |---|---|
//! | `trace` | the tracers of the indexes; parallel tracing |
//! | `recover` | recovery in the background: its phases in order |
//! | `retire_tree` | taking a root and all objects below it out of use |
//! | `audit` | comparing what is reachable with what is in use |

pub(crate) mod audit;
pub(crate) mod recover;
pub(crate) mod retire_tree;
pub(crate) mod trace;
