//! Swaps two publications.
//!
//! The steps of a thread from one fence to the next within an operation are one publication, or prepare one. Two
//! consecutive ones are swapped if no other thread acts meanwhile, each stores something, and they store no common
//! word. The new log is that of a program that does the second first.
//!
//! Operations that [go together](crate::Subject::goes_with) happen in any order, so among them only the making of
//! objects is swapped with the step after it.

use crate::log::{EventKind, EventLog, LogEvent, Site, StoreKind};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Returns the log with each publication that a fence at `site` ends moved behind the next, and the swapped ranges.
pub(super) fn swapped(log: &EventLog, site: Site) -> (EventLog, Vec<Range<usize>>) {
    let mut events = Vec::with_capacity(log.events.len());
    let mut swapped = Vec::new();
    let mut start = 0;
    let mut place = 0;
    let mut in_flight: HashMap<u32, usize> = HashMap::new();
    while place < log.events.len() {
        let event = &log.events[place];
        let in_flight = in_flight.entry(event.thread).or_default();
        let second = match event.kind {
            EventKind::Fence
                if event.site == site && (*in_flight <= 1 || makes_objects(&log.events[start..place])) =>
            {
                next(&log.events, start, place)
            }
            _ => None,
        };
        match event.kind {
            EventKind::Invoke(_) => *in_flight += 1,
            EventKind::Ack(_) => *in_flight = in_flight.saturating_sub(1),
            _ => {}
        }
        place += 1;
        if let Some(end) = second {
            let from = events.len();
            let (first, second) = (&log.events[start..place], &log.events[place..end]);
            // A store of the second that clears a mark (link-and-persist) which the first has set stays behind the
            // first: before it, the clearing store would store the whole word.
            let (unmarks, second): (Vec<&LogEvent>, Vec<&LogEvent>) =
                second.iter().partition(|event| unmarks(first, event));
            events.extend(second);
            events.extend(first);
            events.extend(unmarks);
            swapped.push(from..events.len());
            (start, place) = (end, end);
        } else if ends(event)
            || log
                .events
                .get(place)
                .is_some_and(|next| next.thread != event.thread)
        {
            events.extend(&log.events[start..place]);
            start = place;
        }
    }
    events.extend(&log.events[start..]);
    let swapped_log = EventLog {
        events,
        joins: log.joins.clone(),
        ..EventLog::default()
    };
    (swapped_log, swapped)
}

/// Returns whether the events make new objects.
fn makes_objects(events: &[LogEvent]) -> bool {
    events
        .iter()
        .any(|event| matches!(event.kind, EventKind::Drafted { .. }))
}

/// Returns whether the event ends a publication.
fn ends(event: &LogEvent) -> bool {
    matches!(
        event.kind,
        EventKind::Fence | EventKind::Invoke(_) | EventKind::Ack(_) | EventKind::Killed
    )
}

/// Returns the end of the publication after the one from `start` to the fence at `fence`, if the two can be swapped.
fn next(events: &[LogEvent], start: usize, fence: usize) -> Option<usize> {
    let thread = events[fence].thread;
    let rest = &events[fence + 1..];
    let length = rest
        .iter()
        .position(|event| event.thread != thread || ends(event))?;
    let last = &rest[length];
    if last.thread != thread || last.kind != EventKind::Fence {
        return None;
    }
    let end = fence + 1 + length + 1;
    let first: HashSet<u32> = stores(&events[start..fence]).collect();
    let mut second = stores(&events[fence + 1..end]).peekable();
    let apart = !first.is_empty() && second.peek().is_some() && second.all(|word| !first.contains(&word));
    apart.then_some(end)
}

/// Returns the stored words that recovery may depend on.
fn stores(events: &[LogEvent]) -> impl Iterator<Item = u32> + '_ {
    events.iter().filter_map(|event| match event.kind {
        EventKind::Store { word, kind, .. } if kind.matters() => Some(word),
        _ => None,
    })
}

/// Returns whether the event, of the second publication, changes only ignored bits of a word of the first.
fn unmarks(first: &[LogEvent], event: &LogEvent) -> bool {
    match event.kind {
        EventKind::Store { word, kind, .. } => {
            kind == StoreKind::Unpersisted && stores(first).any(|stored| stored == word)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::Location;

    fn log(kinds: &[(EventKind, u32)], at: Site) -> EventLog {
        let events = kinds.iter().map(|&(kind, thread)| LogEvent {
            kind,
            thread,
            site: at,
        });
        EventLog {
            events: events.collect(),
            ..EventLog::default()
        }
    }

    fn store(word: u32, kind: StoreKind) -> EventKind {
        EventKind::Store { word, value: 1, kind }
    }

    fn words(log: &EventLog) -> Vec<u32> {
        let stored = log.events.iter().filter_map(|event| match event.kind {
            EventKind::Store { word, .. } => Some(word),
            _ => None,
        });
        stored.collect()
    }

    /// Two publications of one operation are swapped; the mark of the first is still taken away after it was stored.
    #[test]
    fn the_second_comes_first() {
        let site = Location::caller();
        let plain = |word| (store(word, StoreKind::Plain), 0);
        let all = [
            (EventKind::Invoke(0), 0),
            plain(1),
            (EventKind::Fence, 0),
            (store(1, StoreKind::Unpersisted), 0),
            plain(2),
            (EventKind::Fence, 0),
            (EventKind::Ack(0), 0),
        ];
        let (log, swapped) = swapped(&log(&all, site), site);
        assert_eq!(words(&log), [2, 1, 1]);
        assert_eq!(swapped, [Range { start: 1, end: 6 }]);
        assert_eq!(log.events.len(), all.len());
    }

    /// Publications of operations that go together are not swapped; the making of an object is.
    #[test]
    fn what_goes_together_has_no_order() {
        let site = Location::caller();
        let plain = |word| (store(word, StoreKind::Plain), 0);
        let together = |first: Vec<(EventKind, u32)>| {
            let mut all = vec![(EventKind::Invoke(0), 0), (EventKind::Invoke(1), 0)];
            all.extend(first);
            all.extend([(EventKind::Fence, 0), plain(2), (EventKind::Fence, 0)]);
            all.extend([(EventKind::Ack(0), 0), (EventKind::Ack(1), 0)]);
            swapped(&log(&all, site), site).1.len()
        };
        assert_eq!(together(vec![plain(1)]), 0);
        let draft = (EventKind::Drafted { word: 1, words: 1 }, 0);
        assert_eq!(together(vec![draft, (store(1, StoreKind::Draft), 0)]), 1);
    }

    /// Nothing is swapped across other operations, across other threads, or with a common word.
    #[test]
    fn what_depends_stays_in_order() {
        let site = Location::caller();
        let plain = |word, thread| (store(word, StoreKind::Plain), thread);
        let fence = (EventKind::Fence, 0);
        for all in [
            vec![
                plain(1, 0),
                fence,
                (EventKind::Ack(0), 0),
                (EventKind::Invoke(1), 0),
                plain(2, 0),
                fence,
            ],
            vec![plain(1, 0), fence, plain(3, 1), plain(2, 0), fence],
            vec![plain(1, 0), plain(3, 1), fence, plain(2, 0)],
            vec![plain(1, 0), fence, plain(2, 0), plain(1, 0), fence],
            vec![fence, plain(2, 0), fence],
        ] {
            let log = log(&all, site);
            let (same, places) = swapped(&log, site);
            assert!(places.is_empty());
            assert_eq!(same.events, log.events);
        }
    }
}
