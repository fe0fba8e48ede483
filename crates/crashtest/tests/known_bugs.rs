//! What implementations of these designs got wrong, each seeded in a small structure, and found.
//!
//! The structure is one node, or another after it has moved: entries that are appended, a counter that makes them count,
//! a volatile count that is rebuilt at the first lock after a restart, a prefix that goes with a depth. Without a bug all
//! of it is right. What the heap got wrong is seeded beside an index of the list.

mod common;

use common::IndexKind;
use pmem::{Batch, GenerationLock, Locked, Offset, PWord, Persistent, Pool, Purpose, VWord, persist_scope};
use std::collections::BTreeMap;
use std::sync::Mutex;
use wollemi_crashtest::map::{LiveIndex, Map, OfIndex, Op as MapOp};
use wollemi_crashtest::{
    Crash, Explorer, Failure, History, Random, Report, Settings, Subject, Verdict, history, silence_findings,
};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    Nothing,
    /// The first root is published before what it leads to is durable.
    RootNotPersisted,
    /// Entry and counter are persisted together: the counter may be durable alone.
    CountWithEntry,
    /// The counter is persisted before the entry.
    CountFirst,
    /// The count is not rebuilt after a restart.
    StaleCount,
    /// It is rebuilt as one less: the next insert overwrites the last child.
    CountOneLess,
    /// What was handed out is known in memory only: it is handed out twice.
    HandsOutTwice,
    /// Recovery looks at two leaves; there is one.
    TwoLeavesAssumed,
    /// Two inserts of one key both pass the check made before the lock.
    CheckBeforeLock,
    /// Updates take another lock than removes: a removed key comes back.
    UpdateUnderOtherLock,
    /// A lock that can be had is taken for a crash: a sound prefix is repaired to what was read before.
    TryLockMeansCrash,
    /// A writer that has waited for the lock of a node writes into it though it was replaced.
    OldNodeWritten,
    /// A lock that is no word of its generation is found taken after a crash.
    LockIsPersistent,
    /// A reader answers what is not durable.
    DirtyRead,
    /// Fingerprints of signed bytes are looked for by unsigned ones.
    SignedFingerprint,
    /// A pointer to volatile memory is followed after a restart.
    StalePointer,
}

#[repr(C, align(64))]
struct Node {
    lock: GenerationLock,
    other_lock: GenerationLock,
    /// Entries handed out.
    count: VWord,
    rest: [PWord; 5],
    /// Entries that count.
    counted: PWord,
    held: PWord,
    table: PWord,
    rest_1: [PWord; 5],
    depth: PWord,
    rest_2: [PWord; 7],
    /// Three times the depth.
    prefix: PWord,
    magic: PWord,
    rest_3: [PWord; 6],
    /// `key:8 | present:1 | used:1 | fingerprint:8 | value:32`
    entries: [PWord; 16],
}

// SAFETY: words only, without padding.
unsafe impl Persistent for Node {
    const WORDS_ONLY: bool = true;
}

const MAGIC: u64 = 0x57;
const PRESENT: u64 = 1 << 41;
const USED: u64 = 1 << 40;

fn key_of(entry: u64) -> u8 {
    (entry >> 42) as u8
}

fn print_of(entry: u64) -> u8 {
    (entry >> 32) as u8
}

struct Tree(Bug);

struct Live {
    pool: Pool<Crash>,
    /// What a process keeps beside the tree.
    table: Mutex<Vec<u64>>,
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Insert(u8, u32),
    Update(u8, u32),
    Remove(u8),
    Get(u8),
    Deepen,
    Depth,
    Move,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    map: BTreeMap<u8, u32>,
    depth: u64,
}

type Answer = Option<u64>;

impl Live {
    fn at<T: Persistent>(&self, bytes: u64) -> Result<&T, String> {
        let offset = Offset::new(bytes).ok_or("nowhere")?;
        self.pool.at(offset).map_err(|fault| fault.to_string())
    }

    /// The number of the node in use; 0 before there is one.
    fn root(&self) -> Result<&PWord, String> {
        self.at(64 << 10)
    }

    fn node(&self, number: u64) -> Result<&Node, String> {
        self.at((65 << 10) + (number % 2) * 1024)
    }

    fn media(&self) -> &Crash {
        self.pool.media()
    }

    fn persist(&self, change: impl FnOnce(&Batch<'_, '_, Crash>)) {
        persist_scope(self.media(), Purpose::Node, |batch| {
            change(&batch);
            let _durable = batch.fence().durable();
        });
    }
}

impl Tree {
    fn print(&self, key: u8, stored: bool) -> u8 {
        if self.0 == Bug::SignedFingerprint && stored {
            ((key as i8) >> 1) as u8
        } else {
            key >> 1
        }
    }

    fn entry(&self, key: u8, value: u32) -> u64 {
        let print = u64::from(self.print(key, true));
        u64::from(key) << 42 | PRESENT | USED | print << 32 | u64::from(value)
    }

    fn find(&self, live: &Live, node: &Node, key: u8) -> Option<(usize, u64)> {
        let media = live.media();
        let counted = node.counted.load(media) as usize;
        let entries = node.entries.iter().take(counted).map(|word| word.load(media));
        let mut found = entries.enumerate();
        found.find(|(_, entry)| key_of(*entry) == key && print_of(*entry) == self.print(key, false))
    }

    /// The node in use, locked, and rebuilt if that is due.
    fn lock<'l>(&self, live: &'l Live) -> Result<(&'l Node, Locked<'l, Crash>), String> {
        let media = live.media();
        loop {
            let number = live.root()?.load(media);
            let node = live.node(number)?;
            let locked = node.lock.lock(media, live.pool.generation());
            let mut locked = locked.map_err(|obsolete| format!("{obsolete:?}"))?;
            if locked.is_stale() {
                self.rebuild(live, node)?;
                locked.repaired();
            }
            if self.0 == Bug::OldNodeWritten || live.root()?.load(media) == number {
                return Ok((node, locked));
            }
        }
    }

    fn rebuild(&self, live: &Live, node: &Node) -> Result<(), String> {
        let media = live.media();
        let counted = node.counted.load(media);
        let present = |word: &&PWord| word.load(media) & PRESENT != 0;
        if self.0 == Bug::TwoLeavesAssumed && node.entries.iter().any(|word| present(&word)) {
            let leaves: Vec<&PWord> = node.entries.iter().filter(present).take(2).collect();
            assert_eq!(leaves.len(), 2, "the prefix is what two leaves share");
        }
        match self.0 {
            Bug::StaleCount => {}
            Bug::CountOneLess => node.count.store(counted.saturating_sub(1), media),
            Bug::HandsOutTwice => node.count.store(0, media),
            _ => node.count.store(counted, media),
        }
        let depth = node.depth.load(media);
        live.persist(|batch| node.prefix.store(3 * depth, batch));
        Ok(())
    }

    /// What a writer does that meets a prefix which does not go with the depth.
    fn mend_prefix(&self, live: &Live) -> Result<(), String> {
        let media = live.media();
        let node = live.node(live.root()?.load(media))?;
        let depth = node.depth.peek(media);
        if node.prefix.peek(media) == 3 * depth {
            return Ok(());
        }
        if let Ok(Some(mut locked)) = node.lock.try_lock(media, live.pool.generation()) {
            if locked.is_stale() {
                self.rebuild(live, node)?;
                locked.repaired();
            }
            let depth = match self.0 {
                Bug::TryLockMeansCrash => depth,
                _ => node.depth.load(media),
            };
            live.persist(|batch| node.prefix.store(3 * depth, batch));
        }
        Ok(())
    }

    fn insert(&self, live: &Live, key: u8, value: u32) -> Result<bool, String> {
        let media = live.media();
        let before = match self.0 {
            Bug::CheckBeforeLock => Some(self.find(live, live.node(live.root()?.load(media))?, key)),
            _ => None,
        };
        let (node, _locked) = self.lock(live)?;
        if self.0 == Bug::LockIsPersistent {
            let mut turn = 0;
            while node.held.load(media) != 0 {
                pmem::Media::wait(media, turn);
                turn += 1;
            }
            persist_scope(media, Purpose::Node, |batch| node.held.store(1, &batch));
        }
        if self.0 == Bug::StalePointer {
            self.follow(live, node)?;
        }
        let found = before.unwrap_or_else(|| self.find(live, node, key));
        let entry = self.entry(key, value);
        match found {
            Some((_, entry)) if entry & PRESENT != 0 => return Ok(false),
            Some((number, _)) => live.persist(|batch| node.entries[number].store(entry, batch)),
            None => self.append(live, node, entry)?,
        }
        if self.0 == Bug::LockIsPersistent {
            persist_scope(media, Purpose::Node, |batch| node.held.store(0, &batch));
        }
        Ok(true)
    }

    fn append(&self, live: &Live, node: &Node, entry: u64) -> Result<(), String> {
        let media = live.media();
        let count = node.count.load(media);
        let place = node.entries.get(count as usize).ok_or("the node is full")?;
        match self.0 {
            Bug::CountWithEntry => live.persist(|batch| {
                place.store(entry, batch);
                node.counted.store(count + 1, batch);
            }),
            Bug::CountFirst => {
                live.persist(|batch| node.counted.store(count + 1, batch));
                live.persist(|batch| place.store(entry, batch));
            }
            _ => {
                live.persist(|batch| place.store(entry, batch));
                live.persist(|batch| node.counted.store(count + 1, batch));
            }
        }
        node.count.store(count + 1, media);
        Ok(())
    }

    /// Reads what the process keeps for the node.
    fn follow(&self, live: &Live, node: &Node) -> Result<u64, String> {
        let mut table = live.table.lock().map_err(|_| "poisoned")?;
        if node.table.load(live.media()) == 0 {
            table.push(1);
            live.persist(|batch| node.table.store(table.len() as u64, batch));
        }
        Ok(table[node.table.load(live.media()) as usize - 1])
    }

    fn change(&self, live: &Live, key: u8, new: Option<u32>) -> Result<bool, String> {
        let (node, mut locked) = self.lock(live)?;
        if self.0 == Bug::UpdateUnderOtherLock && new.is_some() {
            drop(locked);
            let other = node.other_lock.lock(live.media(), live.pool.generation());
            locked = other.map_err(|obsolete| format!("{obsolete:?}"))?;
            locked.repaired();
        }
        let _locked = locked;
        match self.find(live, node, key) {
            Some((number, entry)) if entry & PRESENT != 0 => {
                let word = new.map_or(entry & !PRESENT, |value| self.entry(key, value));
                live.persist(|batch| node.entries[number].store(word, batch));
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn get(&self, live: &Live, key: u8) -> Result<Option<u32>, String> {
        if self.0 == Bug::DirtyRead {
            let node = live.node(live.root()?.load(live.media()))?;
            let found = self.find(live, node, key);
            return Ok(found
                .filter(|(_, entry)| entry & PRESENT != 0)
                .map(|(_, entry)| entry as u32));
        }
        let (node, _locked) = self.lock(live)?;
        let found = self.find(live, node, key);
        Ok(found
            .filter(|(_, entry)| entry & PRESENT != 0)
            .map(|(_, entry)| entry as u32))
    }

    fn deepen(&self, live: &Live) -> Result<u64, String> {
        let (node, _locked) = self.lock(live)?;
        let depth = node.depth.load(live.media()) + 1;
        live.persist(|batch| node.depth.store(depth, batch));
        live.persist(|batch| node.prefix.store(3 * depth, batch));
        Ok(depth)
    }

    /// Copies the node into the other one, which takes its place.
    fn replace(&self, live: &Live) -> Result<(), String> {
        let media = live.media();
        let (old, _locked) = self.lock(live)?;
        let number = live.root()?.load(media) + 1;
        let new = live.node(number)?;
        let locked = new.lock.lock(media, live.pool.generation());
        let mut locked = locked.map_err(|obsolete| format!("{obsolete:?}"))?;
        live.persist(|batch| {
            for (to, from) in new.entries.iter().zip(&old.entries) {
                to.store(from.load(media), batch);
            }
            for (to, from) in [
                (&new.counted, &old.counted),
                (&new.depth, &old.depth),
                (&new.prefix, &old.prefix),
                (&new.magic, &old.magic),
            ] {
                to.store(from.load(media), batch);
            }
        });
        new.count.store(old.count.load(media), media);
        locked.repaired();
        live.persist(|batch| match live.root() {
            Ok(root) => root.store(number, batch),
            Err(_) => unreachable!("it was there before"),
        });
        Ok(())
    }

    fn state(&self, live: &Live) -> Result<State, String> {
        let (node, _locked) = self.lock(live)?;
        let media = live.media();
        let counted = node.counted.load(media) as usize;
        let mut map = BTreeMap::new();
        for word in node.entries.iter().take(counted) {
            let entry = word.load(media);
            if entry & USED == 0 {
                return Err("an entry counts that was never made".into());
            }
            if entry & PRESENT != 0 && map.insert(key_of(entry), entry as u32).is_some() {
                return Err(format!("key {} is there twice", key_of(entry)));
            }
        }
        let depth = node.prefix.load(media) / 3;
        Ok(State { map, depth })
    }
}

impl Subject for Tree {
    type Op = Op;
    type Answer = Answer;
    type State = State;
    type Live = Live;

    fn name(&self) -> String {
        format!("tree with {:?} wrong", self.0)
    }

    fn create(&self, pool: Pool<Crash>) -> Result<Live, String> {
        let live = Live {
            pool,
            table: Mutex::default(),
        };
        let magic = &live.node(1)?.magic;
        if self.0 == Bug::RootNotPersisted {
            persist_scope(live.media(), Purpose::Node, |batch| magic.store(MAGIC, &batch));
        } else {
            live.persist(|batch| magic.store(MAGIC, batch));
        }
        let root = live.root()?;
        live.persist(|batch| root.store(1, batch));
        Ok(live)
    }

    fn open(&self, pool: Pool<Crash>) -> Result<Option<Live>, String> {
        let live = Live {
            pool,
            table: Mutex::default(),
        };
        let number = live.root()?.load(live.media());
        if number == 0 {
            return Ok(None);
        }
        if live.node(number)?.magic.load(live.media()) != MAGIC {
            return Err("the root leads to what is no node".into());
        }
        // What a killed process has stored last may not be durable, and is acted upon from now on.
        let root = live.root()?;
        live.persist(|batch| {
            root.persist_seen(batch);
            if let Ok(node) = live.node(number) {
                let words = [&node.counted, &node.depth, &node.prefix];
                words
                    .into_iter()
                    .chain(&node.entries)
                    .for_each(|word| word.persist_seen(batch));
            }
        });
        Ok(Some(live))
    }

    fn apply(&self, live: &Live, op: &Op) -> Result<Answer, String> {
        if matches!(op, Op::Insert(..)) {
            self.mend_prefix(live)?;
        }
        let changed = |changed| Some(u64::from(changed));
        Ok(match *op {
            Op::Insert(key, value) => changed(self.insert(live, key, value)?),
            Op::Update(key, value) => changed(self.change(live, key, Some(value))?),
            Op::Remove(key) => changed(self.change(live, key, None)?),
            Op::Get(key) => self.get(live, key)?.map(u64::from),
            Op::Deepen => Some(self.deepen(live)?),
            Op::Depth => {
                let (node, _locked) = self.lock(live)?;
                Some(node.prefix.load(live.media()) / 3)
            }
            Op::Move => {
                self.replace(live)?;
                None
            }
        })
    }

    fn specify(&self, state: &mut State, op: &Op) -> Answer {
        let map = &mut state.map;
        let changed = |changed| Some(u64::from(changed));
        match *op {
            Op::Insert(key, value) => {
                let absent = !map.contains_key(&key);
                map.entry(key).or_insert(value);
                changed(absent)
            }
            Op::Update(key, value) => changed(map.get_mut(&key).map(|place| *place = value).is_some()),
            Op::Remove(key) => changed(map.remove(&key).is_some()),
            Op::Get(key) => map.get(&key).copied().map(u64::from),
            Op::Deepen => {
                state.depth += 1;
                Some(state.depth)
            }
            Op::Depth => Some(state.depth),
            Op::Move => None,
        }
    }

    fn judge(&self, live: &Live, verdict: Verdict<'_, Tree>) -> Result<usize, String> {
        let mut found = self.state(live)?;
        let which = verdict.allowed.iter().position(|state| **state == found);
        let which = which.ok_or_else(|| format!("{found:?} instead of {:?}", verdict.allowed))?;
        // A key that nobody else uses: it takes nobody's place.
        const NEW: u8 = 200;
        self.insert(live, NEW, 5)?;
        found.map.insert(NEW, 5);
        let now = self.state(live)?;
        if now != found {
            return Err(format!("after an insert {now:?} instead of {found:?}"));
        }
        Ok(which)
    }

    fn follow_up(&self, _state: &State, _in_flight: &[&Op], random: &mut Random) -> Vec<Op> {
        (0..3).map(|_| op(random)).collect()
    }
}

fn op(random: &mut Random) -> Op {
    // Of all kinds of bytes, and few.
    let key = *random.pick(&[0, 1, 97, 127, 128, 255]);
    let value = random.next() as u32;
    match random.below(18) {
        0..4 => Op::Insert(key, value),
        4..6 => Op::Update(key, value),
        6 => Op::Remove(key),
        7..13 => Op::Get(key),
        13..16 => Op::Deepen,
        16 => Op::Depth,
        _ => Op::Move,
    }
}

/// Histories of one to three threads, in turn.
fn histories() -> impl Iterator<Item = History<Op>> {
    (0..400).map(|seed| {
        let mut random = Random(seed);
        History {
            seed,
            ops: (0..24).map(|_| op(&mut random)).collect(),
            prepared: 0,
            threads: 1 + seed as u32 % 3,
        }
    })
}

fn explore(bug: Bug) -> (Result<(), Box<Failure>>, Report) {
    silence_findings();
    let settings = Settings {
        memory: 2 << 20,
        steps: 100_000,
        again_share: 20,
        kill_share: 20,
        ..Settings::default()
    };
    let mut explorer = Explorer::new(Tree(bug), settings).expect("memory");
    let found = histories().try_for_each(|history| explorer.explore(&history));
    (found, explorer.into_report())
}

/// Nothing is found in the structure without a bug.
#[test]
fn the_whole_one_passes() {
    let (found, report) = explore(Bug::Nothing);
    assert!(found.is_ok(), "{}", found.expect_err("checked"));
    assert!(report.states > 2000 && report.again > 50, "{report}");
}

/// Each bug is found within four hundred histories.
#[test]
fn each_is_found() {
    for bug in [
        Bug::RootNotPersisted,
        Bug::CountWithEntry,
        Bug::CountFirst,
        Bug::StaleCount,
        Bug::CountOneLess,
        Bug::HandsOutTwice,
        Bug::TwoLeavesAssumed,
        Bug::CheckBeforeLock,
        Bug::UpdateUnderOtherLock,
        Bug::TryLockMeansCrash,
        Bug::OldNodeWritten,
        Bug::LockIsPersistent,
        Bug::DirtyRead,
        Bug::SignedFingerprint,
        Bug::StalePointer,
    ] {
        let (found, report) = explore(bug);
        let failure = found.expect_err(&format!("{bug:?}: {report}"));
        println!("{bug:?}, after {} states: {}", report.states, failure.message);
    }
}

/// An index that leaves an object behind with each update.
struct Leaking(OfIndex);

impl Subject for Leaking {
    type Op = MapOp;
    type Answer = <OfIndex as Subject>::Answer;
    type State = Map;
    type Live = LiveIndex;

    fn name(&self) -> String {
        "leaking".into()
    }

    fn create(&self, pool: Pool<Crash>) -> Result<LiveIndex, String> {
        self.0.create(pool)
    }

    fn open(&self, pool: Pool<Crash>) -> Result<Option<LiveIndex>, String> {
        let live = self.0.open(pool)?;
        live.iter().for_each(leak);
        Ok(live)
    }

    fn apply(&self, live: &LiveIndex, op: &MapOp) -> Result<Self::Answer, String> {
        self.0.apply(live, op)
    }

    fn specify(&self, state: &mut Map, op: &MapOp) -> Self::Answer {
        self.0.specify(state, op)
    }

    fn judge(&self, live: &LiveIndex, verdict: Verdict<'_, Self>) -> Result<usize, String> {
        let Verdict {
            allowed,
            in_flight,
            depth,
            random,
        } = verdict;
        self.0.judge(
            live,
            Verdict {
                allowed,
                in_flight,
                depth,
                random,
            },
        )
    }

    fn follow_up(&self, state: &Map, in_flight: &[&MapOp], random: &mut Random) -> Vec<MapOp> {
        self.0.follow_up(state, in_flight, random)
    }
}

fn leak(live: &LiveIndex) {
    let _link = persist_scope(live.heap.media(), Purpose::Node, |batch| {
        let draft = live.heap.draft(PWord::new(1), 0, &batch).expect("room");
        let flushed = draft.flush(&batch);
        flushed.persisted(&batch.fence()).into_link(pmem::Tag::default())
    });
}

/// An object that is in use and that nothing leads to is found by the accounts after recovery.
#[test]
fn leaks_are_found() {
    let leaking = Leaking(common::subject(IndexKind::Roart));
    let mut explorer = Explorer::new(leaking, Settings::default()).expect("memory");
    let failure = explorer
        .explore(&history::of_map(1, 10, 1))
        .expect_err("it leaks");
    assert!(failure.message.contains("the heap's accounts"), "{failure}");
}
