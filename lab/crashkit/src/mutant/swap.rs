//! Two publications in the other order.
//!
//! The steps of a thread from one fence to the next within an operation are one publication, or the preparation of one.
//! Two consecutive ones are swapped if no other thread acts meanwhile and they store no common word. The log is then
//! that of a program that does the second first.
//!
//! Operations that [go together](crate::Subject::goes_with) happen in any order, so of theirs only the making of
//! objects is swapped with the step after it.

use crate::log::{Event, Log, Site, Store, What};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// The log with each publication that a fence at `site` ends put after the next, and where that was.
pub(super) fn swapped(log: &Log, site: Site) -> (Log, Vec<Range<usize>>) {
    let mut events = Vec::with_capacity(log.events.len());
    let mut swapped = Vec::new();
    let mut start = 0;
    let mut place = 0;
    let mut in_flight: HashMap<u32, usize> = HashMap::new();
    while place < log.events.len() {
        let event = &log.events[place];
        let in_flight = in_flight.entry(event.thread).or_default();
        let second = match event.what {
            What::Fence if event.site == site && (*in_flight <= 1 || makes(&log.events[start..place])) => {
                next(&log.events, start, place)
            }
            _ => None,
        };
        match event.what {
            What::Invoke(_) => *in_flight += 1,
            What::Ack(_) => *in_flight = in_flight.saturating_sub(1),
            _ => {}
        }
        place += 1;
        if let Some(end) = second {
            let from = events.len();
            let (first, second) = (&log.events[start..place], &log.events[place..end]);
            // What takes a mark of the first away comes after the store of the mark. It would store the whole word
            // before.
            let (unmarks, second): (Vec<&Event>, Vec<&Event>) =
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
    let swapped_log = Log {
        events,
        joins: log.joins.clone(),
        ..Log::default()
    };
    (swapped_log, swapped)
}

/// Whether new objects are made.
fn makes(events: &[Event]) -> bool {
    events
        .iter()
        .any(|event| matches!(event.what, What::Drafted { .. }))
}

/// Whether what comes after the event is no part of what came before it.
fn ends(event: &Event) -> bool {
    matches!(
        event.what,
        What::Fence | What::Invoke(_) | What::Ack(_) | What::Killed
    )
}

/// Where the publication ends that follows the one from `start` to the fence at `fence`, if they can change places.
fn next(events: &[Event], start: usize, fence: usize) -> Option<usize> {
    let thread = events[fence].thread;
    let rest = &events[fence + 1..];
    let length = rest
        .iter()
        .position(|event| event.thread != thread || ends(event))?;
    let last = &rest[length];
    if last.thread != thread || last.what != What::Fence {
        return None;
    }
    let end = fence + 1 + length + 1;
    let first: HashSet<u32> = stores(&events[start..fence]).collect();
    let mut second = stores(&events[fence + 1..end]).peekable();
    let apart = !first.is_empty() && second.peek().is_some() && second.all(|word| !first.contains(&word));
    apart.then_some(end)
}

/// The words that recovery may make something of.
fn stores(events: &[Event]) -> impl Iterator<Item = u32> + '_ {
    events.iter().filter_map(|event| match event.what {
        What::Store { word, kind, .. } if kind.matters() => Some(word),
        _ => None,
    })
}

/// Whether the event of the second changes only ignored bits, of a word of the first.
fn unmarks(first: &[Event], event: &Event) -> bool {
    match event.what {
        What::Store { word, kind, .. } => {
            kind == Store::Unpersisted && stores(first).any(|stored| stored == word)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::Location;

    fn log(whats: &[(What, u32)], at: Site) -> Log {
        let events = whats.iter().map(|&(what, thread)| Event {
            what,
            thread,
            site: at,
        });
        Log {
            events: events.collect(),
            ..Log::default()
        }
    }

    fn store(word: u32, kind: Store) -> What {
        What::Store { word, value: 1, kind }
    }

    fn words(log: &Log) -> Vec<u32> {
        let stored = log.events.iter().filter_map(|event| match event.what {
            What::Store { word, .. } => Some(word),
            _ => None,
        });
        stored.collect()
    }

    /// Two publications of one operation change places; the mark of the first is taken away after it was stored.
    #[test]
    fn the_second_comes_first() {
        let site = Location::caller();
        let plain = |word| (store(word, Store::Plain), 0);
        let all = [
            (What::Invoke(0), 0),
            plain(1),
            (What::Fence, 0),
            (store(1, Store::Unpersisted), 0),
            plain(2),
            (What::Fence, 0),
            (What::Ack(0), 0),
        ];
        let (log, swapped) = swapped(&log(&all, site), site);
        assert_eq!(words(&log), [2, 1, 1]);
        assert_eq!(swapped, [Range { start: 1, end: 6 }]);
        assert_eq!(log.events.len(), all.len());
    }

    /// Of operations that go together one's publication is not put after another's; what makes an object is.
    #[test]
    fn what_goes_together_has_no_order() {
        let site = Location::caller();
        let plain = |word| (store(word, Store::Plain), 0);
        let together = |first: Vec<(What, u32)>| {
            let mut all = vec![(What::Invoke(0), 0), (What::Invoke(1), 0)];
            all.extend(first);
            all.extend([(What::Fence, 0), plain(2), (What::Fence, 0)]);
            all.extend([(What::Ack(0), 0), (What::Ack(1), 0)]);
            swapped(&log(&all, site), site).1.len()
        };
        assert_eq!(together(vec![plain(1)]), 0);
        let draft = (What::Drafted { word: 1, words: 1 }, 0);
        assert_eq!(together(vec![draft, (store(1, Store::Draft), 0)]), 1);
    }

    /// Where the code does not allow it, nothing changes: other operations, other threads, the same word.
    #[test]
    fn what_depends_stays_in_order() {
        let site = Location::caller();
        let plain = |word, thread| (store(word, Store::Plain), thread);
        let fence = (What::Fence, 0);
        for all in [
            vec![
                plain(1, 0),
                fence,
                (What::Ack(0), 0),
                (What::Invoke(1), 0),
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
