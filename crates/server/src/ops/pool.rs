//! The pool's part of the server's statistics and metrics.

use crate::ops::log;
use crate::ops::metric::Metric;
use crate::ops::shared::Shared;
use wollemi::RecoveryState;

/// The pool's part of the protocols' `stats`.
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

/// The pool's metrics.
pub fn metrics(shared: &Shared) -> Vec<Metric> {
    let Ok(stats) = shared.databases.db().stats() else {
        return Vec::new();
    };
    let one = |name, help, value: f64| Metric {
        name,
        help,
        labels: Vec::new(),
        value,
    };
    let of = |name, help, (state, value): (&str, f64)| Metric {
        labels: vec![("state", state.to_owned())],
        ..one(name, help, value)
    };
    let (space, recovery, merges) = (stats.space, stats.recovery, stats.merges);
    let info = Metric {
        labels: vec![
            ("level", stats.level.clone()),
            ("sync", shared.syncing.get().to_string()),
        ],
        ..one(
            "wollemi_pool_info",
            "What acknowledged operations survive, and when writes are durable.",
            1.0,
        )
    };
    let bytes = [
        ("used", space.used as f64),
        ("free", space.free.saturating_sub(space.given_back) as f64),
        ("given_back", space.given_back as f64),
        ("unswept", space.unswept as f64),
    ];
    let help = "Bytes of the pool: in use, ready for use, given back to the file system, and not swept by recovery yet.";
    let mut all: Vec<_> = bytes
        .map(|of_state| of("wollemi_pool_bytes", help, of_state))
        .into();
    let is = |state: &str| match &recovery.state {
        RecoveryState::Failed(_) => state == "failed",
        now => now.to_string() == state,
    };
    all.extend(["idle", "running", "done", "failed"].map(|state| {
        let help = "Whether the search for unused space is in this state.";
        of(
            "wollemi_recovery_state",
            help,
            (state, f64::from(u8::from(is(state)))),
        )
    }));
    all.extend([
        one(
            "wollemi_pool_max_bytes",
            "The size to which the pool may grow.",
            stats.max_size as f64,
        ),
        one(
            "wollemi_pool_objects",
            "Objects in use in the pool.",
            space.objects as f64,
        ),
        one(
            "wollemi_pool_generation",
            "How often the pool has been opened.",
            f64::from(stats.generation),
        ),
        one(
            "wollemi_pool_crashes_total",
            "How often it was not closed properly.",
            stats.crashes as f64,
        ),
        one(
            "wollemi_pool_open_seconds",
            "How long opening the pool took.",
            stats.opened_in,
        ),
        one(
            "wollemi_recovery_objects",
            "Objects that recovery has found reachable so far.",
            recovery.objects as f64,
        ),
        one(
            "wollemi_recovery_pages",
            "Pages that recovery has to sweep in all.",
            recovery.pages as f64,
        ),
        one(
            "wollemi_recovery_swept_pages",
            "Pages that recovery has swept so far.",
            recovery.pages_swept as f64,
        ),
        one(
            "wollemi_recovery_seconds",
            "How long recovery has taken so far.",
            recovery.seconds,
        ),
    ]);
    all.push(info);
    all.extend(stats.log.iter().flat_map(log::metrics));
    for (map, merges) in merges {
        let gauges = [
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
        ];
        all.extend(gauges.map(|(name, help, value)| Metric {
            labels: vec![("map", map.clone())],
            ..one(name, help, value as f64)
        }));
    }
    all
}
