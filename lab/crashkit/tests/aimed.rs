//! Races that need a thread to be stopped at one place while others access the same words: aimed preemptions find each
//! of them within a few histories, and nothing in the correct structure.

use pmem::{Media, Offset, PWord, Pool, Purpose, VWord, persist_scope};
use wollemi_crashkit::{Crash, Explorer, Failure, History, Random, Settings, Subject, Verdict};

/// The fault of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    Nothing,
    /// A reader looks at the flag before it reads the slot, and not again after it.
    FlagBeforeSlot,
    /// A reader answers before the flag that it has followed is durable.
    FlagNotPersisted,
    /// A writer releases its lock, under which others look at the flag, between the store that publishes and the fence.
    LockBeforeFence,
}

/// A register: `flag` says which of two slots, in lines of their own, holds the value.
struct Register(Broken);

/// Number of registers. Each has four lines: the flag, the slots and the lock.
const REGISTERS: u64 = 2;
const START: u64 = 64 << 10;

struct Cells<'p> {
    flag: &'p PWord,
    slots: [&'p PWord; 2],
    lock: &'p VWord,
}

fn cells(pool: &Pool<Crash>, register: u64) -> Cells<'_> {
    let at = |line: u64| Offset::new(START + (register * 4 + line) * 64).expect("aligned");
    Cells {
        // SAFETY: there is no allocator here, and these bytes hold words only.
        flag: unsafe { pool.at(at(0)) }.expect("inside"),
        // SAFETY: as above.
        slots: [1, 2].map(|line| unsafe { pool.at(at(line)) }.expect("inside")),
        // SAFETY: as above.
        lock: unsafe { pool.at(at(3)) }.expect("inside"),
    }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Set(u64, u64),
    Get(u64),
    /// Get under the lock.
    GetLocked(u64),
}

impl Register {
    fn lock(&self, pool: &Pool<Crash>, lock: &VWord) {
        let (media, taken) = (pool.media(), u64::from(pool.generation()));
        let mut turn = 0;
        // SAFETY: a word of the pool is one atomic.
        let word = unsafe { &*std::ptr::from_ref(lock).cast::<std::sync::atomic::AtomicU64>() };
        loop {
            let seen = media.load_volatile(word);
            // A value that another generation has left does not count.
            if seen != taken && media.compare_exchange_volatile(word, seen, taken).is_ok() {
                return;
            }
            media.wait(turn);
            turn += 1;
        }
    }

    fn set(&self, pool: &Pool<Crash>, register: u64, value: u64) {
        let media = pool.media();
        let Cells { flag, slots, lock } = cells(pool, register);
        self.lock(pool, lock);
        let free = 1 - flag.load(media);
        persist_scope(media, Purpose::Node, |batch| {
            slots[free as usize].store(value, &batch);
            let _durable = batch.fence().durable();
        });
        persist_scope(media, Purpose::Node, |batch| {
            flag.store(free, &batch);
            if self.0 == Broken::LockBeforeFence {
                lock.store(0, media);
            }
            let _durable = batch.fence().durable();
        });
        if self.0 != Broken::LockBeforeFence {
            lock.store(0, media);
        }
    }

    /// Reads under the lock, where everything is durable.
    fn get_locked(&self, pool: &Pool<Crash>, register: u64) -> u64 {
        let media = pool.media();
        let Cells { flag, slots, lock } = cells(pool, register);
        self.lock(pool, lock);
        let value = slots[flag.load(media) as usize].load(media);
        lock.store(0, media);
        value
    }

    fn get(&self, pool: &Pool<Crash>, register: u64) -> u64 {
        let media = pool.media();
        let Cells { flag, slots, .. } = cells(pool, register);
        loop {
            let seen = flag.load(media);
            let slot = slots[seen as usize];
            let value = slot.load(media);
            let is_current = self.0 == Broken::FlagBeforeSlot || flag.load(media) == seen;
            // Makes what was read durable, even if it will be read again.
            persist_scope(media, Purpose::Node, |batch| {
                slot.persist_seen(&batch);
                if self.0 != Broken::FlagNotPersisted {
                    flag.persist_seen(&batch);
                }
                let _durable = batch.fence().durable();
            });
            if is_current {
                return value;
            }
        }
    }
}

impl Subject for Register {
    type Op = Op;
    type Answer = u64;
    type State = [u64; REGISTERS as usize];
    type Live = Pool<Crash>;

    fn name(&self) -> String {
        format!("registers with {:?} broken", self.0)
    }

    fn create(&self, pool: Pool<Crash>) -> Result<Pool<Crash>, String> {
        Ok(pool)
    }

    /// A killed process may have left stores that are not durable: the opening persists the words that it acts on.
    fn open(&self, pool: Pool<Crash>) -> Result<Option<Pool<Crash>>, String> {
        persist_scope(pool.media(), Purpose::Node, |batch| {
            for register in 0..REGISTERS {
                let Cells { flag, slots, .. } = cells(&pool, register);
                flag.persist_seen(&batch);
                slots.iter().for_each(|slot| slot.persist_seen(&batch));
            }
            let _durable = batch.fence().durable();
        });
        Ok(Some(pool))
    }

    fn apply(&self, pool: &Pool<Crash>, op: &Op) -> Result<u64, String> {
        Ok(match *op {
            Op::Set(register, value) => {
                self.set(pool, register, value);
                0
            }
            Op::Get(register) => self.get(pool, register),
            Op::GetLocked(register) => self.get_locked(pool, register),
        })
    }

    fn specify(&self, state: &mut Self::State, op: &Op) -> u64 {
        match *op {
            Op::Set(register, value) => {
                state[register as usize] = value;
                0
            }
            Op::Get(register) | Op::GetLocked(register) => state[register as usize],
        }
    }

    fn judge(&self, pool: &Pool<Crash>, verdict: Verdict<'_, Register>) -> Result<usize, String> {
        let found = [0, 1].map(|register| {
            let Cells { flag, slots, .. } = cells(pool, register);
            slots[flag.load(pool.media()) as usize & 1].load(pool.media())
        });
        let which = verdict.allowed.iter().position(|state| **state == found);
        which.ok_or_else(|| format!("it holds {found:?} instead of one of {:?}", verdict.allowed))
    }

    fn follow_up(&self, _state: &Self::State, _in_flight: &[&Op], random: &mut Random) -> Vec<Op> {
        ops(random.next(), 4)
    }
}

fn ops(seed: u64, count: usize) -> Vec<Op> {
    let mut random = Random(seed);
    let op = |_| {
        let register = random.below(REGISTERS);
        match random.below(4) {
            0 => Op::Get(register),
            1 => Op::GetLocked(register),
            _ => Op::Set(register, 1 + random.below(1000)),
        }
    };
    (0..count).map(op).collect()
}

fn explore(broken: Broken, histories: u64) -> Option<(Explorer<Register>, History<Op>, Box<Failure>)> {
    let settings = Settings {
        memory: 2 << 20,
        aimed: 16,
        ..Settings::default()
    };
    let mut explorer = Explorer::new(Register(broken), settings).expect("memory");
    for seed in 1..=histories {
        let history = History {
            seed,
            ops: ops(seed, 30),
            prepared: 4,
            threads: 3,
            ..History::default()
        };
        if let Err(failure) = explorer.explore(&history) {
            let report = explorer.report();
            println!(
                "{broken:?}: {} histories, {} schedules, {} states",
                report.histories, report.met.schedules, report.states
            );
            return Some((explorer, history, failure));
        }
    }
    let report = explorer.report();
    assert!(report.met.schedules >= histories * 18, "{report}");
    let (possible, seen) = report.met.orders();
    assert!(report.met.preemptions > 0 && report.met.words > 0, "{report}");
    assert!(0 < seen && seen <= possible, "{seen} of {possible}");
    None
}

/// The kit finds nothing in the correct register, and reports how the threads have met.
#[test]
fn the_whole_one_passes() {
    if let Some((.., failure)) = explore(Broken::Nothing, 20) {
        panic!("{failure}");
    }
}

/// The kit finds each fault.
#[test]
fn races_are_found() {
    for broken in [
        Broken::FlagBeforeSlot,
        Broken::FlagNotPersisted,
        Broken::LockBeforeFence,
    ] {
        let found = explore(broken, 100);
        let (mut explorer, history, failure) = found.unwrap_or_else(|| panic!("{broken:?} is not found"));
        let (history, failure) = explorer.shrink(&history, failure, 300);
        assert!(history.threads >= 2, "a race needs two threads: {failure}");
        assert!(history.ops.len() <= 16, "{failure}");
        assert!((1..=4).contains(&failure.preemptions), "{failure}");
        let again = explorer
            .explore(&history)
            .expect_err("a shrunk history fails by itself");
        assert_eq!(again.to_string(), failure.to_string());
        println!("{failure}");
    }
}

/// The same seed finds the same failure.
#[test]
fn aimed_preemptions_are_repeatable() {
    let found = || {
        let (explorer, _, failure) = explore(Broken::FlagNotPersisted, 100).expect("it is broken");
        (failure.to_string(), explorer.report().met.schedules)
    };
    assert_eq!(found(), found());
}
