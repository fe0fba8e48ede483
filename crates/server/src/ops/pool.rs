//! The pool's part of the server's statistics and metrics.

use crate::ops::log;
use crate::ops::metric::Metric;
use crate::ops::shared::Shared;
use wollemi::{Merges, RecoveryState, Space, Stats};

/// Returns the pool's lines of memcached's `stats` and of Redis's `INFO`.
pub fn lines(shared: &Shared) -> Vec<(String, String)> {
    let Ok(stats) = shared.databases.db().stats() else {
        return Vec::new();
    };
    let lines = [
        ("pool_level", stats.level),
        ("pool_sync", shared.syncing.get().to_string()),
        ("pool_generation", stats.generation.to_string()),
        ("pool_bytes", stats.space.reserved.to_string()),
        ("pool_used_bytes", stats.space.used.to_string()),
        ("pool_free_bytes", stats.space.free.to_string()),
        ("pool_given_back_bytes", stats.space.given_back.to_string()),
        ("pool_unswept_bytes", stats.space.unswept.to_string()),
        ("pool_recovery", stats.recovery.state.to_string()),
    ];
    let lines = lines.into_iter().chain(stats.log.iter().flat_map(log::lines));
    lines.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns the pool's metrics.
pub fn metrics(shared: &Shared) -> Vec<Metric> {
    let Ok(stats) = shared.databases.db().stats() else {
        return Vec::new();
    };
    let mut all = space(&stats.space);
    all.extend(recovery_states(&stats.recovery.state));
    all.extend(numbers(&stats));
    let help = "What acknowledged operations survive, and when writes are durable.";
    let info = Metric::new("wollemi_pool_info", help, 1.0);
    let info = info.labelled("level", stats.level);
    all.push(info.labelled("sync", shared.syncing.get().to_string()));
    all.extend(stats.log.iter().flat_map(log::metrics));
    let maps = stats.merges.iter();
    let mut merges: Vec<_> = maps
        .flat_map(|(map, merges)| merge_metrics(map, merges))
        .collect();
    // The sort brings the measurements of one name together, and keeps their order.
    merges.sort_by_key(|metric| metric.name);
    all.extend(merges);
    all
}

fn space(space: &Space) -> Vec<Metric> {
    const HELP: &str = "Bytes of the pool: in use, ready for use, given back to the file system, and not swept by \
                        recovery yet.";
    let bytes = [
        ("used", space.used),
        ("free", space.free.saturating_sub(space.given_back)),
        ("given_back", space.given_back),
        ("unswept", space.unswept),
    ];
    bytes
        .map(|(state, bytes)| Metric::new("wollemi_pool_bytes", HELP, bytes as f64).labelled("state", state))
        .into()
}

/// Returns a metric for each state of recovery, which is 1 for the current one.
fn recovery_states(now: &RecoveryState) -> [Metric; 4] {
    const HELP: &str = "Whether the search for unused space is in this state.";
    let current = match now {
        RecoveryState::Failed(_) => "failed".to_owned(),
        now => now.to_string(),
    };
    ["idle", "running", "done", "failed"].map(|state| {
        let is = f64::from(u8::from(state == current));
        Metric::new("wollemi_recovery_state", HELP, is).labelled("state", state)
    })
}

fn numbers(stats: &Stats) -> [Metric; 9] {
    let recovery = &stats.recovery;
    [
        (
            "wollemi_pool_max_bytes",
            "The size to which the pool may grow.",
            stats.max_size as f64,
        ),
        (
            "wollemi_pool_objects",
            "Objects in use in the pool.",
            stats.space.objects as f64,
        ),
        (
            "wollemi_pool_generation",
            "How often the pool has been opened.",
            f64::from(stats.generation),
        ),
        (
            "wollemi_pool_crashes_total",
            "How often it was not closed properly.",
            stats.crashes as f64,
        ),
        (
            "wollemi_pool_open_seconds",
            "How long opening the pool took.",
            stats.opened_in,
        ),
        (
            "wollemi_recovery_objects",
            "Objects that recovery has found reachable so far.",
            recovery.objects as f64,
        ),
        (
            "wollemi_recovery_pages",
            "Pages that recovery has to sweep in all.",
            recovery.pages as f64,
        ),
        (
            "wollemi_recovery_swept_pages",
            "Pages that recovery has swept so far.",
            recovery.pages_swept as f64,
        ),
        (
            "wollemi_recovery_seconds",
            "How long recovery has taken so far.",
            recovery.seconds,
        ),
    ]
    .map(|(name, help, value)| Metric::new(name, help, value))
}

fn merge_metrics(map: &str, merges: &Merges) -> [Metric; 5] {
    [
        (
            "wollemi_merges_total",
            "Merges of the map since the start.",
            merges.merges,
        ),
        (
            "wollemi_merge_gathered",
            "Writes gathered since the map's last merge began.",
            merges.gathered,
        ),
        (
            "wollemi_merge_threshold",
            "Gathered writes that begin a merge of the map.",
            merges.threshold,
        ),
        (
            "wollemi_merge_parts",
            "Parts of the merge under way.",
            merges.parts,
        ),
        (
            "wollemi_merge_parts_done",
            "Parts of the merge under way that are done.",
            merges.parts_done,
        ),
    ]
    .map(|(name, help, value)| Metric::new(name, help, value as f64).labelled("map", map))
}
