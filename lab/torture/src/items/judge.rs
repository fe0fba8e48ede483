//! Judges the items after a crash.

use super::{Items, Live, Place, Shown, draw, is_full};
use crashkit::{Depth, Subject, Verdict};
use std::collections::BTreeMap;

/// Judges the items. Returns which of the allowed states it found.
pub(super) fn judge(items: &Items, live: &Live, mut verdict: Verdict<'_, Items>) -> Result<usize, String> {
    let found = shown(live)?;
    let which = verdict
        .allowed
        .iter()
        .position(|state| state.shown() == found)
        .ok_or_else(|| {
            let allowed: Vec<_> = verdict
                .allowed
                .iter()
                .map(|state| listing(&state.shown()))
                .collect();
            format!(
                "it holds {} instead of one of {}",
                listing(&found),
                allowed.join(", or ")
            )
        })?;
    for place in draw::places() {
        live.check_read(&found, place)?;
    }
    let mut state = verdict.allowed[which].clone();
    for database in [0, 1] {
        check_next_unique(live, database, state.given(database))?;
        live.check_count(database)?;
    }
    live.check_totals()?;
    for _ in 0..if verdict.depth == Depth::Deep { 20 } else { 1 } {
        let op = draw::after_recovery(&mut verdict.random);
        let answer = items.apply(live, &op)?;
        if items.is_refusal(&answer) {
            continue;
        }
        let expected = state.specify(&op);
        if answer != expected {
            return Err(format!(
                "after recovery, {op:?} answers {answer:?} instead of {expected:?}"
            ));
        }
    }
    if shown(live)? != state.shown() {
        return Err("after recovery, the items differ from those stored".into());
    }
    live.check_totals()
        .map_err(|wrong| format!("after recovery and use, {wrong}"))?;
    if verdict.depth == Depth::Deep {
        live.check()
            .map_err(|wrong| format!("after recovery and use, {wrong}"))?;
    }
    Ok(which)
}

/// Formats items for a report.
fn listing(items: &BTreeMap<Place, Shown>) -> String {
    let item = |((database, key), item): (&Place, &Shown)| {
        format!("{database}: {} = {item:?}", crate::map::shown(key))
    };
    let all: Vec<String> = items.iter().map(item).collect();
    format!("[{}]", all.join(", "))
}

/// Returns the items of both databases as clients see them.
fn shown(live: &Live) -> Result<BTreeMap<Place, Shown>, String> {
    let mut all = BTreeMap::new();
    for database in [0, 1] {
        all.extend(live.shown(database).map_err(|error| error.to_string())?);
    }
    Ok(all)
}

/// Checks that the next unique is larger than those given before: than those of all items in the map, including dropped
/// ones, and than the number of uniques `given`, since the first is 1 and none is given twice.
fn check_next_unique(live: &Live, database: u8, given: u64) -> Result<(), String> {
    let raw = live.raw(database)?;
    let largest = raw.items.iter().map(|(_, header)| header.unique).max();
    let before = largest.unwrap_or(0).max(given);
    match live.take_unique(database) {
        Ok(next) if next > before => Ok(()),
        Ok(next) => Err(format!("the unique {next} is given after {before}")),
        // The edit stores no item, but may have to store a record.
        Err(failure) if is_full(&failure) => Ok(()),
        Err(failure) => Err(failure.to_string()),
    }
}
