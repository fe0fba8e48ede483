//! A diagram of a failing history: the relevant steps of its logical threads, one line each.
//!
//! A step is relevant if it is the beginning or the answer of an operation, a store or a load of a word that one thread
//! stores and another touches meanwhile, or the fence after it. The diagram starts at the beginning of the earliest
//! operation that was in flight when one of those under way at the failure began.

use super::shown;
use crate::log::{EventKind, EventLog, LogEvent, StoreKind};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

/// Maximum number of lines; a longer diagram keeps its last ones.
const MAX_LINES: usize = 60;

/// Returns the steps up to the event at `place`, where the failure shows, of a run of these operations with these
/// answers.
pub(crate) fn diagram(
    log: &EventLog,
    place: usize,
    ops: &[impl Debug],
    answers: &[impl Debug],
) -> Vec<String> {
    let op = |number: u32| ops.get(number as usize).map_or("the creation".into(), shown);
    let answer = |number: u32| answers.get(number as usize).map_or(String::new(), shown);
    let place = place.min(log.events.len().saturating_sub(1));
    let start = start(log, place);
    let Some(events) = log.events.get(start..=place) else {
        return Vec::new();
    };
    let shared = shared(events);
    // Threads that have stored a shared word and not fenced since.
    let mut to_fence = BTreeSet::new();
    let mut lines = Vec::new();
    for event in events {
        let LogEvent { thread, site, .. } = *event;
        let what = match event.kind {
            EventKind::Invoke(number) => format!("{} begins", op(number)),
            EventKind::Ack(number) => format!("answers {}", answer(number)).trim_end().into(),
            EventKind::Store { word, kind, .. } if kind == StoreKind::Lock && shared.contains(&word) => {
                format!("takes the lock {:#x} at {site}", word * 8)
            }
            EventKind::Store { word, value, kind } if shared.contains(&word) => {
                if kind.matters() {
                    to_fence.insert(thread);
                }
                format!("stores {:#x} = {value:#x} at {site}", word * 8)
            }
            EventKind::Load { word } if shared.contains(&word) => format!("loads {:#x} at {site}", word * 8),
            EventKind::Fence if to_fence.remove(&thread) => format!("fences at {site}"),
            _ => continue,
        };
        let lane = "    ".repeat(thread.saturating_sub(1) as usize);
        let line = format!("{lane}{thread}  {what}");
        if lines.last() != Some(&line) {
            lines.push(line);
        }
    }
    let left_out = lines.len().saturating_sub(MAX_LINES);
    if left_out > 0 {
        lines.drain(..left_out);
        lines.insert(0, format!("({left_out} earlier steps)"));
    }
    lines
}

/// Returns how often, up to the event at `place`, a thread was stopped within an operation and another continued.
pub(crate) fn preemptions(log: &EventLog, place: usize) -> u32 {
    let events = log.events.iter().take(place.saturating_add(1));
    let mut amid = BTreeSet::new();
    let (mut count, mut running) = (0, None);
    for event in events {
        let before = running
            .replace(event.thread)
            .filter(|&before| before != event.thread);
        count += u32::from(before.is_some_and(|before| amid.contains(&before)));
        match event.kind {
            EventKind::Invoke(_) => amid.insert(event.thread),
            EventKind::Ack(_) => amid.remove(&event.thread),
            _ => false,
        };
    }
    count
}

/// Returns the beginning of the earliest operation that was in flight when one of those under way at `place` began.
fn start(log: &EventLog, place: usize) -> usize {
    let mut begun: BTreeMap<u32, usize> = BTreeMap::new();
    let mut earliest: BTreeMap<u32, usize> = BTreeMap::new();
    for (at, event) in log.events.iter().enumerate().take(place + 1) {
        match event.kind {
            EventKind::Invoke(_) => {
                begun.insert(event.thread, at);
                let first = begun.values().min().copied().unwrap_or(at);
                earliest.insert(event.thread, first);
            }
            EventKind::Ack(_) if at < place => {
                begun.remove(&event.thread);
            }
            _ => {}
        }
    }
    let under_way = begun.keys().filter_map(|thread| earliest.get(thread));
    under_way.min().copied().unwrap_or(place)
}

/// Returns the words that one thread stores and another touches.
fn shared(events: &[LogEvent]) -> BTreeSet<u32> {
    let mut touched: BTreeMap<u32, (BTreeSet<u32>, bool)> = BTreeMap::new();
    for event in events {
        let (word, stores) = match event.kind {
            EventKind::Store { word, kind, .. } if kind != StoreKind::Draft => (word, true),
            EventKind::Load { word } => (word, false),
            _ => continue,
        };
        let (threads, stored) = touched.entry(word).or_default();
        threads.insert(event.thread);
        *stored |= stores;
    }
    touched.retain(|_, (threads, stored)| threads.len() > 1 && *stored);
    touched.into_keys().collect()
}

/// Shows lists of bytes in `Debug` text as text: `Get([97, 98])` becomes `Get("ab")`, and a long list is shortened.
pub(crate) fn readable(said: &str) -> String {
    const MAX_SHOWN: usize = 24;
    let mut text = String::with_capacity(said.len());
    let mut rest = said;
    while let Some(open) = rest.find('[') {
        let (before, list) = rest.split_at(open);
        text.push_str(before);
        let bytes = list.find(']').and_then(|close| {
            let numbers = list[1..close].split(", ").filter(|number| !number.is_empty());
            let bytes: Result<Vec<u8>, _> = numbers.map(str::parse).collect();
            Some((bytes.ok()?, close + 1))
        });
        // A list that is no argument may be anything.
        let is_argument = text.ends_with(['(', ' ']);
        match bytes.filter(|_| is_argument) {
            Some((bytes, end)) if bytes.len() > MAX_SHOWN => {
                text.push_str(&format!(
                    "\"{}\"... of {} bytes",
                    bytes[..8].escape_ascii(),
                    bytes.len()
                ));
                rest = &list[end..];
            }
            Some((bytes, end)) => {
                text.push_str(&format!("\"{}\"", bytes.escape_ascii()));
                rest = &list[end..];
            }
            None => {
                text.push('[');
                rest = &list[1..];
            }
        }
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::Location;

    /// Keys and values are shown as text, other lists as they are.
    #[test]
    fn bytes_are_text() {
        assert_eq!(readable("Get([97, 98])"), "Get(\"ab\")");
        assert_eq!(readable("Insert([], [0, 255])"), "Insert(\"\", \"\\x00\\xff\")");
        assert_eq!(readable("Get((1, [97]))"), "Get((1, \"a\"))");
        assert_eq!(readable("[10, 20]"), "[10, 20]");
        assert_eq!(readable("Sum([1, 300])"), "Sum([1, 300])");
        let long = format!("Put({:?})", [97u8; 30]);
        assert_eq!(readable(&long), "Put(\"aaaaaaaa\"... of 30 bytes)");
        assert_eq!(readable("Open("), "Open(");
        assert_eq!(readable("Open([97"), "Open([97");
    }

    /// The diagram shows only words that two threads touch, from where the operations in flight begin.
    #[test]
    fn steps_that_matter() {
        let site = Location::caller();
        let store = |word| EventKind::Store {
            word,
            value: 1,
            kind: StoreKind::Plain,
        };
        let events = [
            (1, EventKind::Invoke(0)),
            (1, EventKind::Ack(0)),
            (1, EventKind::Invoke(1)),
            (1, store(8)),
            (1, store(16)),
            (2, EventKind::Invoke(2)),
            (2, EventKind::Load { word: 8 }),
            (2, EventKind::Fence),
            (1, EventKind::Fence),
            (2, EventKind::Ack(2)),
            (1, EventKind::Ack(1)),
        ];
        let log = EventLog {
            events: events
                .map(|(thread, kind)| LogEvent { kind, thread, site })
                .to_vec(),
            ..EventLog::default()
        };
        let lines = diagram(&log, 9, &["a", "b", "c"], &[0, 1, 2]);
        let lines: Vec<&str> = lines
            .iter()
            .map(|line| line.split(" at ").next().unwrap_or_default())
            .collect();
        assert_eq!(
            lines,
            [
                "1  \"b\" begins",
                "1  stores 0x40 = 0x1",
                "    2  \"c\" begins",
                "    2  loads 0x40",
                "1  fences",
                "    2  answers 2",
            ]
        );
    }
}
