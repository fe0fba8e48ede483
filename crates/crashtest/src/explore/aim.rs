//! Where a hunt kills the process: amid something that chance alone would seldom meet.
//!
//! Of all lines of source that store something each is as likely to be drawn, however often it stores: a flip that comes
//! once in a hundred operations as often as an entry of a log. What follows a kill there starts from that store, which is
//! visible and not durable. Half of the places are amid stores of the file whose persist is hunted, if it stores anything.

use crate::choose::Random;
use crate::log::{Log, Site, What};
use std::collections::{BTreeMap, BTreeSet};

/// Some fences of a log, none before `from`, for which a store waits, every second of them a store of `file`: so many, or
/// fewer.
pub(super) fn places(log: &Log, from: usize, file: &str, count: u64, random: &mut Random) -> BTreeSet<usize> {
    let mut waiting: BTreeMap<u32, Vec<Site>> = BTreeMap::new();
    let mut places: BTreeMap<(&str, u32, u32), Vec<usize>> = BTreeMap::new();
    for (place, event) in log.events.iter().enumerate().skip(from) {
        match event.what {
            What::Store { kind, .. } if kind.matters() => {
                waiting.entry(event.thread).or_default().push(event.site);
            }
            What::Fence => {
                for site in waiting.remove(&event.thread).unwrap_or_default() {
                    let of_site = places
                        .entry((site.file(), site.line(), site.column()))
                        .or_default();
                    if of_site.last() != Some(&place) {
                        of_site.push(place);
                    }
                }
            }
            _ => {}
        }
    }
    let all: Vec<&Vec<usize>> = places.values().collect();
    let of_file = places.iter().filter(|((own, ..), _)| *own == file);
    let own: Vec<&Vec<usize>> = of_file.map(|(_, places)| places).collect();
    let draw = |number: u64| {
        let from = if number.is_multiple_of(2) && !own.is_empty() {
            &own
        } else {
            &all
        };
        let of_site = random.pick(from);
        *random.pick(of_site.as_slice())
    };
    if all.is_empty() {
        BTreeSet::new()
    } else {
        (0..count).map(draw).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{Event, Store};
    use std::panic::Location;

    /// A line of source that stores seldom is met as often as one that always does, just before its fence.
    #[test]
    fn what_is_seldom_is_met_as_often() {
        let (often, seldom) = (Location::caller(), Location::caller());
        let store = |word| What::Store {
            word,
            value: 1,
            kind: Store::Plain,
        };
        let mut events = Vec::new();
        for number in 0..100 {
            let site = if number == 60 { seldom } else { often };
            events.push(Event {
                what: store(number),
                thread: 0,
                site,
            });
            events.push(Event {
                what: What::Fence,
                thread: 0,
                site: often,
            });
        }
        let log = Log {
            events,
            ..Log::default()
        };
        let met = (0..20).filter(|&seed| places(&log, 0, "", 4, &mut Random(seed)).contains(&121));
        assert!(met.count() > 10);
        assert!(
            places(&log, 122, file!(), 8, &mut Random(1))
                .iter()
                .all(|place| place % 2 == 1 && *place > 122)
        );
        assert!(places(&Log::default(), 0, "", 8, &mut Random(1)).is_empty());
    }
}
