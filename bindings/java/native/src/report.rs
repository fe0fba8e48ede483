//! A database's statistics, its list of maps and its checks, packed for Java's records.

use crate::bytes::Packed;
use wollemi::{Check, MapInfo, Stats};

/// Packs statistics, in the order in which `Stats.java` reads them.
pub fn stats(stats: &Stats) -> Vec<u8> {
    let mut packed = Packed::default();
    packed.text(&stats.uuid);
    packed.text(&stats.level);
    packed.text(&stats.last_shutdown);
    packed.text(&stats.recovery.state);
    for number in [
        stats.generation.into(),
        stats.crashes,
        stats.max_size,
        (stats.opened_in * 1e9) as u64,
        stats.space.reserved,
        stats.space.used,
        stats.space.free,
        stats.space.unswept,
        stats.space.objects,
    ] {
        packed.number(number);
    }
    // Serialization cannot fail here; if it does, the other fields are still present.
    packed.text(serde_json::to_string(stats).unwrap_or_default());
    packed.0
}

/// Packs the maps' names and their indexes, alternately.
pub fn maps(maps: &[MapInfo]) -> Vec<u8> {
    let mut packed = Packed::default();
    for MapInfo { name, index } in maps {
        packed.text(name);
        packed.text(index);
    }
    packed.0
}

/// Packs whether the check is clean, its JSON, and one line per fault.
pub fn check(check: &Check) -> Vec<u8> {
    let mut packed = Packed::default();
    packed.put(Some(&[check.is_clean().into()]));
    packed.text(serde_json::to_string(check).unwrap_or_default());
    for map in &check.maps {
        for fault in &map.faults {
            packed.text(format!("map '{}': {fault}", map.name));
        }
    }
    for fault in &check.heap.faults {
        packed.text(format!("heap: {fault}"));
    }
    for (count, what) in [
        (check.heap.unreachable, "chunks in use that nothing links to"),
        (check.heap.doubly_reachable, "chunks with more than one link"),
    ] {
        if count > 0 {
            packed.text(format!("heap: {count} {what}"));
        }
    }
    packed.0
}
