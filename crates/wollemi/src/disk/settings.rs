//! The settings of an opening at level `disk`.

use crate::IndexKind;
use crate::disk::pace::Asked;
use crate::disk::progress::OnRebuild;
use crate::disk::sizes::Sizes;
use crate::write::journal::Durability;
use pmem::PoolOptions;
use std::time::Duration;

/// Settings of an opening at level `disk`.
#[derive(Clone)]
pub(crate) struct Settings {
    pub pool: PoolOptions,
    pub create: bool,
    /// Whether a pool without a log gets one.
    pub begins_log: bool,
    pub recovery_threads: usize,
    pub index: IndexKind,
    pub log: log::LogOptions,
    pub durability: Durability,
    pub sync_within: Duration,
    pub on_rebuild: Option<OnRebuild>,
    /// Whether the caller wants checkpoints to end.
    pub checkpoints_end: Option<Asked>,
    /// Threads used by a rebuild.
    pub rebuild_threads: usize,
    pub sizes: Sizes,
    /// Whether threads take checkpoints and sync the records that no write waits for.
    pub has_threads: bool,
}
