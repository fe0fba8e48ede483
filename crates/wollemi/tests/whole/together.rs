//! Grouped writes of several keys (`Index::write_many`) beside snapshots and watches.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wollemi::{Action, Db, Edit, Edits, Error, Event, IndexError, Map, Snapshot};

const KEYS: usize = 40;

/// Puts one value under every key, but removes every fifth key if the value is odd.
struct Round {
    value: [u8; 8],
    odd: bool,
    now: usize,
}

impl Round {
    fn new(round: u64) -> Round {
        Round {
            value: round.to_be_bytes(),
            odd: round % 2 == 1,
            now: 0,
        }
    }

    fn keeps(&self, i: usize) -> bool {
        !self.odd || !i.is_multiple_of(5)
    }
}

impl Edit for Round {
    fn decide(&mut self, _: Option<&[u8]>) -> Action {
        match self.keeps(self.now) {
            true => Action::Put,
            false => Action::Remove,
        }
    }
    fn value(&self) -> &[u8] {
        &self.value
    }
}

impl Edits for Round {
    fn edit(&mut self, i: usize) -> &mut dyn Edit {
        self.now = i;
        self
    }
    fn done(&mut self, i: usize, done: Result<Action, IndexError>) -> ControlFlow<()> {
        assert_eq!(i, self.now);
        let expected = if self.keeps(i) {
            Action::Put
        } else {
            Action::Remove
        };
        assert_eq!(done.expect("there is room"), expected);
        ControlFlow::Continue(())
    }
}

fn key(i: usize) -> Vec<u8> {
    format!("a key of more than eight bytes, {i:02}").into_bytes()
}

/// Returns the value of each key after `round` rounds and the first keys of the next one.
fn expected(i: usize, round: u64, next: usize) -> Option<Vec<u8>> {
    let round = Round::new(round + u64::from(i < next));
    round.keeps(i).then(|| round.value.to_vec())
}

/// Returns how many rounds, and how many keys of the next round, a snapshot shows.
fn shown(snapshot: &Snapshot, map: &Map, least: u64) -> Result<(u64, usize), Error> {
    let view = snapshot.view(map)?;
    let held: Vec<_> = (0..KEYS).map(|i| view.get(key(i))).collect::<Result<_, _>>()?;
    let fits = |&(round, next): &(u64, usize)| {
        held.iter()
            .enumerate()
            .all(|(i, held)| *held == expected(i, round, next))
    };
    let moments = (least..).flat_map(|round| (0..KEYS).map(move |next| (round, next)));
    Ok(moments
        .take(500 * KEYS)
        .find(fits)
        .expect("a snapshot shows one moment of writes that come one after the other"))
}

/// A snapshot shows a prefix of the writes, never a torn state; each later snapshot shows at least as much.
#[test]
fn a_snapshot_shows_the_first_of_several_writes() -> Result<(), Error> {
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    let keys: Vec<_> = (0..KEYS).map(key).collect();
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    map.index().write_many(&keys, &mut Round::new(2));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 3..=400 {
                map.index().write_many(&keys, &mut Round::new(round));
            }
        });
        let mut last = (2, 0);
        while !writer.is_finished() {
            let moment = shown(&db.snapshot()?, &map, last.0)?;
            assert!(moment >= last, "{moment:?} after {last:?}");
            last = moment;
        }
        writer.join().expect("no panic");
        assert_eq!(shown(&db.snapshot()?, &map, last.0)?, (400, 0));
        Ok(())
    })
}

/// A watch gets an event for each grouped write, in order.
#[test]
fn each_of_several_writes_is_told() -> Result<(), Error> {
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    let keys: Vec<_> = (0..KEYS).map(key).collect();
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    map.index().write_many(&keys, &mut Round::new(2));
    let mut watch = map.watch("a key", usize::MAX)?;
    for round in 3..=4 {
        map.index().write_many(&keys, &mut Round::new(round));
        for (i, key) in keys.iter().enumerate() {
            let event = Event::Changed {
                key: key.to_vec(),
                value: expected(i, round, 0),
            };
            assert_eq!(watch.try_next(), Some(event));
        }
    }
    assert_eq!(watch.try_next(), None);
    Ok(())
}

/// However many keys there are, a snapshot waits for some of the writes only.
#[test]
fn a_snapshot_comes_between_many_writes() -> Result<(), Error> {
    /// Changes nothing, slowly, until the snapshot exists.
    struct Slow<'s>(&'s AtomicBool);

    impl Edit for Slow<'_> {
        fn decide(&mut self, _: Option<&[u8]>) -> Action {
            Action::Keep
        }
        fn value(&self) -> &[u8] {
            &[]
        }
    }

    impl Edits for Slow<'_> {
        fn edit(&mut self, _: usize) -> &mut dyn Edit {
            if !self.0.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
            self
        }
        fn done(&mut self, _: usize, done: Result<Action, IndexError>) -> ControlFlow<()> {
            assert_eq!(done.expect("nothing is done"), Action::Keep);
            ControlFlow::Continue(())
        }
    }

    let db = Db::anonymous()?;
    let map = db.map("m")?;
    // Enough for a hundred seconds.
    let keys: Vec<_> = (0..100_000u32).map(u32::to_be_bytes).collect();
    let keys: Vec<&[u8]> = keys.iter().map(<[u8; 4]>::as_slice).collect();
    let is_there = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let snapshot = db.snapshot();
            is_there.store(true, Ordering::Relaxed);
            drop(snapshot.expect("a snapshot"));
        });
        map.index().write_many(&keys, &mut Slow(&is_there));
        assert!(
            is_there.load(Ordering::Relaxed),
            "during the writes, not behind them"
        );
    });
    Ok(())
}
