//! Groups of writes that wait for the disk.

use super::slow::{Held, Hold, Slow};
use super::{folder, open_on};
use index::{Action, Edit, Edits, Error, Upsert};
use log::Directory;
use pmem::Hardware;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Upper bound on the wait for the gate; beyond it the writes count as holding it open.
const PATIENCE: Duration = Duration::from_secs(60);

/// Puts the same value for each key.
struct Same(Upsert<'static>);

impl Edits for Same {
    fn edit(&mut self, _: usize) -> &mut dyn Edit {
        &mut self.0
    }

    fn done(&mut self, _: usize, done: Result<Action, Error>) -> ControlFlow<()> {
        assert_eq!(done.expect("the disk does not fail"), Action::Put);
        ControlFlow::Continue(())
    }
}

/// Outside a turn each write of a group waits for the disk by itself, and has no pass meanwhile: the gate can be closed
/// before the sync ends.
#[test]
fn a_group_that_waits_has_no_pass() {
    let (files, held) = (folder(), Held::default());
    let directory = Directory::open(files.path()).expect("a directory");
    let db = open_on(Slow(directory, held.clone(), "log-"), Hardware::detect(), 1 << 30);
    let map = db.map("map").expect("room");
    let appended = || db.log_stats().expect("a log").appended;
    let before = appended();
    std::thread::scope(|scope| {
        let hold = Hold::new(&held);
        let group = scope.spawn(|| map.index().write_many(&[b"a", b"b"], &mut Same(Upsert(b"value"))));
        while appended() == before {
            std::thread::yield_now();
        }
        let closer = scope.spawn(|| map.index.close_gate().map(drop));
        let begun = Instant::now();
        while !closer.is_finished() && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        let (is_closed, is_durable) = (closer.is_finished(), group.is_finished());
        drop(hold);
        assert!(is_closed, "the group holds its pass while it waits");
        assert!(!is_durable, "the group has not waited");
        closer.join().expect("no panic").expect("not shut");
        group.join().expect("no panic");
    });
    for key in ["a", "b"] {
        assert_eq!(map.get(key).expect("sound"), Some(b"value".to_vec()));
    }
}
