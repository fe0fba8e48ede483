//! A stack of words, correct and broken: the kit finds each fault, and nothing in the correct one.

use pmem::{Media, Offset, PWord, PersistBatch, Pool, Purpose, persist_scope};
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};
use wollemi_crashkit::{
    Crash, Explorer, Failure, History, MemoryModel, Mode, Random, Report, Settings, Subject, Verdict, torture,
};

/// The fault of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    Nothing,
    /// The node is published before it is durable.
    NodeNotPersisted,
    /// The node is written back, but not fenced before it is published.
    NoFence,
    /// The same, but a lock is taken in between, which completes write-backs on x86-64 alone.
    LockForFence,
    /// The push answers before its commit point is durable.
    CommitNotPersisted,
    /// Of the two lines of a node, only one is written back.
    HalfTheNode,
    /// Recovery sets a flag while it runs, and waits if it finds the flag set. Only two crashes show that.
    RecoveryWaits,
    /// A stack that was opened refuses to push. The judge does not push, so that only a run after a crash shows it.
    OpenedRefuses,
}

/// The stack: `head` and `recovering` in one line, then nodes of two words each.
struct Toy(Broken);

struct Live {
    pool: Pool<Crash>,
    /// `false`: this run has created it.
    opened: bool,
}

/// Returns the atomic behind a word.
fn atomic(word: &PWord) -> &AtomicU64 {
    // SAFETY: a word is an atomic one, and all access to it is atomic.
    unsafe { AtomicU64::from_ptr(std::ptr::from_ref(word).cast_mut().cast()) }
}

const START: u64 = 64 << 10;
const LAST: u64 = 100;

/// A lock in DRAM.
static LOCK: AtomicU64 = AtomicU64::new(0);

impl Toy {
    fn word<'p>(&self, pool: &'p Pool<Crash>, at: u64) -> &'p PWord {
        let offset = Offset::new(at).expect("a multiple of 16");
        // SAFETY: the toy makes no drafts.
        unsafe { pool.at(offset) }.expect("inside")
    }

    fn head<'p>(&self, pool: &'p Pool<Crash>) -> &'p PWord {
        self.word(pool, START)
    }

    fn recovering<'p>(&self, pool: &'p Pool<Crash>) -> &'p PWord {
        self.word(pool, START + 16)
    }

    /// Returns the value and the link of a node, which lie in two lines.
    fn node<'p>(&self, pool: &'p Pool<Crash>, number: u64) -> (&'p PWord, &'p PWord) {
        let at = START + 128 * number;
        (self.word(pool, at), self.word(pool, at + 64))
    }

    fn push<'p>(&self, pool: &'p Pool<Crash>, value: u64) {
        let media = pool.media();
        let old = self.head(pool).load(media);
        let new = old + 1;
        let (word, link) = self.node(pool, new);
        persist_scope(media, Purpose::Node, |batch| {
            word.store(value, &batch);
            let link = |batch: &PersistBatch<'_, 'p, Crash>| link.store(old, batch);
            match self.0 {
                Broken::HalfTheNode => persist_scope(media, Purpose::Node, |forgotten| link(&forgotten)),
                _ => link(&batch),
            }
            match self.0 {
                Broken::NodeNotPersisted => {}
                Broken::NoFence | Broken::LockForFence => {
                    media.write_back(atomic(word), Purpose::Node);
                    media.write_back(atomic(self.node(pool, new).1), Purpose::Node);
                }
                _ => drop(batch.fence()),
            }
        });
        if self.0 == Broken::LockForFence {
            let _taken = media.compare_exchange_volatile(&LOCK, 0, 0);
        }
        persist_scope(media, Purpose::Node, |batch| {
            self.head(pool).store(new, &batch);
            if self.0 != Broken::CommitNotPersisted {
                let _durable = batch.fence().durable();
            }
        });
    }

    fn recover(&self, pool: &Pool<Crash>) {
        if self.0 != Broken::RecoveryWaits {
            return;
        }
        let media = pool.media();
        let flag = self.recovering(pool);
        let mut turn = 0;
        while flag.load(media) != 0 {
            media.wait(turn);
            turn += 1;
        }
        for value in [1, 0] {
            persist_scope(media, Purpose::Node, |batch| {
                flag.store(value, &batch);
                let _durable = batch.fence().durable();
            });
        }
    }

    fn all(&self, pool: &Pool<Crash>) -> Vec<u64> {
        let media = pool.media();
        let mut values = Vec::new();
        let mut number = self.head(pool).load(media);
        while number != 0 && number <= LAST {
            let (value, link) = self.node(pool, number);
            values.push(value.load(media));
            number = link.load(media);
        }
        values.reverse();
        values
    }
}

impl Subject for Toy {
    type Op = u64;
    type Answer = ();
    type State = Vec<u64>;
    type Live = Live;

    fn name(&self) -> String {
        format!("stack with {:?} broken", self.0)
    }

    fn create(&self, pool: Pool<Crash>) -> Result<Live, String> {
        Ok(Live { pool, opened: false })
    }

    fn open(&self, pool: Pool<Crash>) -> Result<Option<Live>, String> {
        self.recover(&pool);
        Ok(Some(Live { pool, opened: true }))
    }

    fn apply(&self, live: &Live, op: &u64) -> Result<(), String> {
        if live.opened && self.0 == Broken::OpenedRefuses {
            return Err("the opened stack refuses to push".into());
        }
        self.push(&live.pool, *op);
        Ok(())
    }

    fn specify(&self, state: &mut Vec<u64>, op: &u64) {
        state.push(*op);
    }

    fn judge(&self, live: &Live, verdict: Verdict<'_, Toy>) -> Result<usize, String> {
        let found = self.all(&live.pool);
        let which = verdict.allowed.iter().position(|state| **state == found);
        which.ok_or_else(|| format!("{found:?} instead of {:?}", verdict.allowed))
    }

    fn follow_up(&self, _state: &Vec<u64>, _in_flight: &[&u64], random: &mut Random) -> Vec<u64> {
        vec![random.next()]
    }
}

fn explore(broken: Broken, mode: Mode) -> (Result<(), Box<Failure>>, Report) {
    let toy = Toy(broken);
    let settings = Settings {
        model: MemoryModel::from(mode),
        memory: 2 << 20,
        again_share: 1,
        ..Settings::default()
    };
    let mut explorer = Explorer::new(toy, settings).expect("memory");
    let history = History {
        seed: 1,
        ops: vec![11, 22, 33],
        ..History::default()
    };
    (explorer.explore(&history), explorer.into_report())
}

/// The kit finds nothing in the correct stack, in any model, though it judges several states.
#[test]
fn the_whole_one_passes() {
    for mode in [Mode::Power, Mode::Word, Mode::Process] {
        let (found, report) = explore(Broken::Nothing, mode);
        assert!(found.is_ok(), "{}", found.expect_err("checked"));
        assert!(report.states >= 10 && report.again >= 3, "{report}");
    }
}

/// The kit finds each fault that one crash shows, and names the missing stores.
#[test]
fn what_is_broken_is_found() {
    for broken in [
        Broken::NodeNotPersisted,
        Broken::NoFence,
        Broken::LockForFence,
        Broken::HalfTheNode,
        Broken::CommitNotPersisted,
    ] {
        let (found, _) = explore(broken, Mode::Power);
        let failure = found.expect_err("it is broken");
        assert!(!failure.missing.is_empty(), "{broken:?}: {failure}");
        assert!(
            failure
                .missing
                .iter()
                .all(|store| store.site.file().ends_with("toy.rs")),
            "{failure}"
        );
        // A process that ends loses no stores.
        let (found, _) = explore(broken, Mode::Process);
        assert!(found.is_ok(), "{broken:?}: {}", found.expect_err("checked"));
    }
}

/// The kit finds what only a second crash shows, and ends a run that hangs.
#[test]
fn second_crashes_are_looked_at() {
    let failure = explore(Broken::RecoveryWaits, Mode::Power)
        .0
        .expect_err("it is broken");
    assert!(failure.crashes >= 2, "{failure}");
    assert!(failure.message.contains("hangs"), "{failure}");
}

/// A failure in or after the run that follows a crash names that run's operations, and where the crash came.
#[test]
fn the_run_after_a_crash_is_described() {
    let failure = explore(Broken::OpenedRefuses, Mode::Power).0;
    let failure = failure.expect_err("it is broken");
    assert_eq!((failure.crashes, failure.afterwards.len()), (1, 1), "{failure}");
    assert!(failure.event.is_some() && failure.site.is_some(), "{failure}");
    assert!(!failure.message.contains("without any crash"), "{failure}");
    let failure = explore(Broken::RecoveryWaits, Mode::Power).0;
    let failure = failure.expect_err("it is broken");
    let first = failure.earlier.first().expect("a crash before the last");
    let shown = format!("afterwards: {}", first.afterwards[0]);
    assert!(failure.to_string().contains(&shown), "{failure}");
}

/// A hunt books a failure for no mutant if the program fails without any: it returns the failure.
#[test]
fn a_hunt_returns_failures_of_the_program_itself() {
    let settings = Settings {
        memory: 2 << 20,
        // The exploration of the program itself runs on from no image.
        again_share: 0,
        kill_share: 0,
        ..Settings::default()
    };
    let mut explorer = Explorer::new(Toy(Broken::OpenedRefuses), settings).expect("memory");
    let history = || History {
        seed: 1,
        ops: vec![11, 22, 33],
        ..History::default()
    };
    explorer.explore(&history()).expect("no run follows a crash");
    let failure = explorer.hunt([history()], 200, |_| true);
    let failure = failure.expect_err("it is broken");
    assert!(failure.message.contains("refuses to push"), "{failure}");
    assert_eq!(failure.operations.len(), 3, "{failure}");
    assert_eq!(explorer.report().failures.len(), 1);
}

/// A failing history is shrunk to what is needed: to one crash, at most two pushes and one non-durable store; or, where
/// it takes two crashes, to these without any push.
#[test]
fn failures_are_shrunk() {
    let shrunk = |broken, threads| {
        let settings = Settings {
            memory: 2 << 20,
            again_share: 1,
            ..Settings::default()
        };
        let mut explorer = Explorer::new(Toy(broken), settings).expect("memory");
        let history = History {
            seed: 1,
            ops: (0..20).collect(),
            prepared: 10,
            threads,
            ..History::default()
        };
        let failure = explorer.explore(&history).expect_err("it is broken");
        let histories = explorer.report().histories;
        let (history, failure) = explorer.shrink(&history, failure, 300);
        assert_eq!(
            explorer.report().histories,
            histories,
            "shrinking adds nothing to the report"
        );
        assert_eq!(history.threads, 1);
        assert_eq!(history.ops.len(), failure.operations.len());
        (history, failure)
    };
    for broken in [Broken::NoFence, Broken::HalfTheNode, Broken::NodeNotPersisted] {
        let (history, failure) = shrunk(broken, 1);
        assert!(history.ops.len() <= 2, "{broken:?}: {failure}");
        assert_eq!(failure.crashes, 1, "{failure}");
        assert_eq!(failure.missing.len(), 1, "one store is enough: {failure}");
    }
    let (history, failure) = shrunk(Broken::RecoveryWaits, 1);
    assert!(history.ops.is_empty(), "{failure}");
    assert_eq!((failure.crashes, failure.earlier.len()), (2, 1), "{failure}");
}

/// When its time is up, the kit judges no image (`stop_at`), shrinks nothing (`shrink_for`), and begins no history
/// (`budget`).
#[test]
fn a_deadline_ends_the_exploration() {
    let history = History {
        ops: (0..20).collect(),
        ..History::default()
    };
    let settings = Settings {
        memory: 2 << 20,
        shrink_for: Duration::ZERO,
        ..Settings::default()
    };
    let explorer = || Explorer::new(Toy(Broken::NoFence), settings.clone()).expect("memory");
    let mut late = explorer();
    late.stop_at(Instant::now());
    late.explore(&history).expect("nothing is judged");
    assert_eq!((late.report().histories, late.report().images), (1, 0));
    let mut explorer = explorer();
    let failure = explorer.explore(&history).expect_err("it is broken");
    assert_eq!(explorer.shrink(&history, failure, 300).0.ops.len(), 20);
    let whole = torture(Toy(Broken::NoFence), |random| random.below(100));
    let report = whole.settings(settings).budget(Duration::ZERO).run();
    assert_eq!(report.expect("nothing begins").histories, 0);
}

/// The same seed finds the same failure.
#[test]
fn explorations_are_repeatable() {
    let one = || {
        let (found, report) = explore(Broken::NoFence, Mode::Power);
        (
            found.expect_err("it is broken").to_string(),
            report.images,
            report.states,
        )
    };
    assert_eq!(one(), one());
}
