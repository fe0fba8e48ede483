//! Judges the items after a crash.

use super::{Items, Live, Place, Shown, draw, is_full};
use crashkit::{Depth, Subject, Verdict};
use std::collections::BTreeMap;

/// Judges the items.
pub(super) fn judge(items: &Items, live: &Live, mut verdict: Verdict<'_, Items>) -> Result<usize, String> {
    let found = shown(live)?;
    let which = verdict
        .allowed
        .iter()
        .position(|state| state.shown() == found)
        .ok_or_else(|| {
            let allowed: Vec<_> = verdict.allowed.iter().map(|state| told(&state.shown())).collect();
            format!(
                "it holds {} instead of one of {}",
                told(&found),
                allowed.join(", or ")
            )
        })?;
    let mut state = verdict.allowed[which].clone();
    for database in [0, 1] {
        uniques_grow(live, database, state.given(database))?;
        live.count_is_right(database)?;
    }
    live.count_through()?;
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
        return Err("after recovery, something is not what was stored there".into());
    }
    live.count_through()
        .map_err(|wrong| format!("after recovery and use, {wrong}"))?;
    if verdict.depth == Depth::Deep {
        live.check()
            .map_err(|wrong| format!("after recovery and use, {wrong}"))?;
    }
    Ok(which)
}

/// Items as reports show them.
fn told(items: &BTreeMap<Place, Shown>) -> String {
    let item = |((database, key), item): (&Place, &Shown)| {
        format!("{database}: {} = {item:?}", crate::map::shown(key))
    };
    let all: Vec<String> = items.iter().map(item).collect();
    format!("[{}]", all.join(", "))
}

/// What clients see.
fn shown(live: &Live) -> Result<BTreeMap<Place, Shown>, String> {
    let mut all = BTreeMap::new();
    for database in [0, 1] {
        all.extend(live.shown(database).map_err(|error| error.to_string())?);
    }
    Ok(all)
}

/// Whether the next unique is larger than each that was given: than those of all items that are there, dropped ones
/// too, and than as many as there were edits, since the first is 1 and none is left out but by a crash.
fn uniques_grow(live: &Live, database: u8, given: u64) -> Result<(), String> {
    let raw = live.raw(database)?;
    let there = raw.items.iter().map(|(_, header)| header.unique).max();
    let before = there.unwrap_or(0).max(given);
    match live.first_unique(database) {
        Ok(next) if next > before => Ok(()),
        Ok(next) => Err(format!("the unique {next} is given, and {before} was before")),
        // Nothing is stored there, but a record may have to be.
        Err(failure) if is_full(&failure) => Ok(()),
        Err(failure) => Err(failure.to_string()),
    }
}
