//! The places where a hunt kills the process: in the middle of work that random kills would rarely hit.
//!
//! Each line of source that stores something is equally likely to be drawn, however often it stores: one that stores
//! once in a hundred operations as often as one that stores in each of them. The run after a kill there starts from
//! that store, which is visible but not durable. A third of the places are at stores of the file whose persist is
//! hunted, and a third at stores to memory that this persist writes back, in this run or in one after a crash of it:
//! these show the absence of a persist by which recovery after a kill makes durable what the killed process stored.

use crate::Lacks;
use crate::choose::{LineSet, Random};
use crate::log::{EventKind, EventLog, Site};
use crate::report::{Persist, persist};
use std::collections::{BTreeMap, BTreeSet};

/// Which lines of memory each persist of a history has made durable.
#[derive(Default)]
pub(super) struct Persisted(BTreeMap<Persist, LineSet>);

impl Persisted {
    /// Records the persists of a log.
    pub(super) fn note(&mut self, log: &EventLog) {
        let mut written_back: BTreeMap<u32, LineSet> = BTreeMap::new();
        for event in &log.events {
            match event.kind {
                EventKind::WriteBack { line, .. } => {
                    for site in log.sites(event) {
                        self.of(site, Lacks::WriteBack).insert(line);
                    }
                    written_back.entry(event.thread).or_default().insert(line);
                }
                EventKind::Fence => {
                    let lines = written_back.remove(&event.thread).unwrap_or_default();
                    self.of(event.site, Lacks::Fence).extend(lines);
                }
                _ => {}
            }
        }
    }

    fn of(&mut self, site: Site, lacks: Lacks) -> &mut LineSet {
        self.0.entry(persist(site, lacks)).or_default()
    }

    /// Returns the lines of memory that a mutant may leave non-durable.
    pub(super) fn lines(&self, site: Site, lacks: Lacks) -> Option<&LineSet> {
        let lacks = match lacks {
            Lacks::WriteBack => Lacks::WriteBack,
            Lacks::Fence | Lacks::Order => Lacks::Fence,
        };
        self.0.get(&persist(site, lacks))
    }
}

/// For each source line that stores something, the fences for which its stores wait.
type Places<'l> = BTreeMap<(&'l str, u32, u32), Vec<usize>>;

/// Draws `count` fences of a log, or fewer, none before `from`, for which a store waits: one in three of them a store
/// of `file`, and one in three a store to one of these lines.
pub(super) fn places(
    log: &EventLog,
    from: usize,
    file: &str,
    lines: Option<&LineSet>,
    count: u64,
    random: &mut Random,
) -> BTreeSet<usize> {
    let mut waiting: BTreeMap<u32, Vec<(Site, u32)>> = BTreeMap::new();
    let (mut all, mut at_lines) = (Places::new(), Places::new());
    let put = |places: &mut Places<'static>, site: Site, place: usize| {
        let of_site = places
            .entry((site.file(), site.line(), site.column()))
            .or_default();
        if of_site.last() != Some(&place) {
            of_site.push(place);
        }
    };
    for (place, event) in log.events.iter().enumerate().skip(from) {
        match event.kind {
            EventKind::Store { word, kind, .. } if kind.matters() => {
                let waiting = waiting.entry(event.thread).or_default();
                waiting.push((event.site, word / 8));
            }
            EventKind::Fence => {
                for (site, line) in waiting.remove(&event.thread).unwrap_or_default() {
                    put(&mut all, site, place);
                    if lines.is_some_and(|lines| lines.contains(&line)) {
                        put(&mut at_lines, site, place);
                    }
                }
            }
            _ => {}
        }
    }
    let of_file = all.iter().filter(|((own, ..), _)| *own == file);
    let own: Vec<&Vec<usize>> = of_file.map(|(_, places)| places).collect();
    let at_lines: Vec<&Vec<usize>> = at_lines.values().collect();
    let all: Vec<&Vec<usize>> = all.values().collect();
    if all.is_empty() {
        return BTreeSet::new();
    }
    let draw = |number: u64| {
        let from = match number % 3 {
            0 if !own.is_empty() => &own,
            1 if !at_lines.is_empty() => &at_lines,
            _ => &all,
        };
        let of_site = random.pick(from);
        *random.pick(of_site.as_slice())
    };
    (0..count).map(draw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{LogEvent, StoreKind};
    use std::panic::Location;

    /// A source line that stores rarely is hit as often as one that always does, just before its fence.
    #[test]
    fn rare_stores_are_hit_as_often() {
        let (often, rare) = (Location::caller(), Location::caller());
        let store = |word| EventKind::Store {
            word,
            value: 1,
            kind: StoreKind::Plain,
        };
        let mut events = Vec::new();
        for number in 0..100 {
            let site = if number == 60 { rare } else { often };
            events.push(LogEvent {
                kind: store(number),
                thread: 0,
                site,
            });
            events.push(LogEvent {
                kind: EventKind::Fence,
                thread: 0,
                site: often,
            });
        }
        let log = EventLog {
            events,
            ..EventLog::default()
        };
        let met = (0..20).filter(|&seed| places(&log, 0, "", None, 4, &mut Random(seed)).contains(&121));
        assert!(met.count() > 10);
        // A random choice would rarely hit a store to this line; a third of the drawn places do.
        let line = LineSet::from_iter([30 / 8]);
        let at_line = |seed| places(&log, 0, "", Some(&line), 3, &mut Random(seed));
        assert!((0..20).all(|seed| at_line(seed).iter().any(|place| (24 * 2..32 * 2).contains(place))));
        assert!(
            places(&log, 122, file!(), None, 8, &mut Random(1))
                .iter()
                .all(|place| place % 2 == 1 && *place > 122)
        );
        assert!(places(&EventLog::default(), 0, "", None, 8, &mut Random(1)).is_empty());
    }
}
