//! The calls that a thread makes: drawn at random from its knowledge, with their changes.
//!
//! Drawing reads only the stream of random numbers and the truth. So a killed process can be replayed: drawing as many
//! calls as it had acknowledged gives the content that the pool must hold.

use crate::random::Random;
use crate::truth::{Effects, Life, Plan, Role, Truth, Val};

/// A write of one key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Write {
    Insert(Val),
    Upsert(Val),
    Update(Val),
    Remove,
    /// Expects the key's value if `right`, else another one.
    CompareAndSwap {
        right: bool,
        new: Option<Val>,
    },
    /// By an [`Edit`](wollemi::Edit) that compares the value that it is shown.
    Edit(Option<Val>),
    /// Sets another lifetime of an expiring entry.
    Touch(Life),
    /// Stores a value that has already expired.
    Expired(Val),
}

/// How a key is read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reading {
    Get,
    Contains,
    Borrowed,
    /// Together with the keys after it, in one call.
    Several,
}

/// How a range is read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scanning {
    Copied,
    Borrowed,
    Visited,
    /// By a prefix of the lower key.
    Prefix,
}

/// A call.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Read(usize, usize, Reading),
    Write(usize, usize, Write),
    /// Loads consecutive keys in one call.
    Load {
        slot: usize,
        from: usize,
        count: usize,
        first: Val,
    },
    /// Changes, and expected values: the key's own, or (`false`) another one.
    Batch {
        changes: Vec<(usize, usize, Option<Val>)>,
        expected: Vec<(usize, usize, bool)>,
    },
    Transaction(Body),
    Scan {
        slot: usize,
        from: usize,
        to: usize,
        reverse: bool,
        how: Scanning,
    },
    /// Walks over the keys after `behind`, or from the first key on, in the order of the map's index.
    Walk {
        slot: usize,
        behind: Option<usize>,
        /// Maximum number of keys that a step visits.
        limit: usize,
        steps: usize,
    },
    /// Takes a snapshot that may use at most this many bytes; drops the snapshot held before.
    Snapshot(Option<u64>),
    /// Reads a key of the snapshot held.
    ReadSnapshot(usize, usize),
    DropSnapshot,
    /// Makes a backup of the snapshot held and restores it.
    Backup,
    /// Compares the events of the watch held, and watches a private map.
    Watch(usize),
    /// A call that few programs make.
    Rare(Rare),
    Create(usize),
    Drop(usize),
    Count(usize),
    Sweep(usize),
    Stats,
    Maps,
    GiveBack,
    Recover,
    WaitRecovered,
}

/// Calls that few programs make. The first number is the map's, the second the key's.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rare {
    /// Properties of a map and of the database.
    About(usize),
    /// Both ends of a private map, and a walk over all of it.
    Ends(usize),
    /// Removes and returns the first entry of a private map, or the last if `true`.
    Pop(usize, bool),
    /// An edit by a closure.
    Edit(usize, usize, Option<Val>),
    /// Borrowed reads of several keys, of a prefix, and after a repin.
    Borrowed(usize, usize),
    /// Views of the snapshot held, from one key to another.
    Views(usize, usize, usize),
    /// Inserts a key in a transaction that the caller begins and commits (`true`), or in one that the database retries
    /// (`false`).
    Transaction(usize, usize, Val, bool),
    /// Puts a key of a private map and waits until a watch reports it.
    Wait(usize, usize, Val),
    /// Entries of an expiring map between two keys.
    Alive(usize, usize, usize),
    /// Replaces or removes an entry of an expiring map in a transaction.
    Relive(usize, usize, Option<Val>),
    /// A call about durability. It has an effect at level `disk` alone.
    Durable(Durable),
    /// Puts a key of a private map by a write that does not wait until it is durable, then waits for that.
    Eventual(usize, usize, Val, EventualBy),
    /// Calls of maps that only this thread uses: typed and expiring ones.
    Own,
    /// Calls that need a key order, between two keys of a map whose index has none. All must be refused.
    Unordered(usize, usize, usize),
}

/// Draws the calls of a thread.
#[derive(Clone, Debug)]
pub(crate) struct Drawer {
    random: Random,
    stamp: u64,
    first: bool,
    /// A private map that was just created, and the first of its keys that has not been put yet.
    filling: Option<(usize, usize)>,
}

/// Keys per load that fills a new map.
const KEYS_PER_FILL: usize = 400;

impl Drawer {
    /// Draws the calls of this thread in this round.
    pub fn new(seed: u64, round: u64, thread: usize) -> Drawer {
        let place = round * 16 + thread as u64;
        Drawer {
            random: Random::new(seed, 1 << 32 | place),
            stamp: place << 32,
            first: true,
            filling: None,
        }
    }

    fn value(&mut self) -> Val {
        self.stamp += 1;
        let random = &mut self.random;
        let len = match random.below(1000) {
            0..700 => 8,
            700..900 => random.below(41),
            900..990 => random.below(1200),
            990..999 => random.below(20_000),
            _ => random.below(300_000),
        };
        let life = if random.one_in(2) {
            Life::Hours
        } else {
            Life::Endless
        };
        Val {
            stamp: self.stamp,
            len: len as u32,
            life,
        }
    }

    fn value_or_removal(&mut self) -> Option<Val> {
        let remove = self.random.one_in(3);
        let value = self.value();
        (!remove).then_some(value)
    }

    /// Draws a key of an existing map.
    fn key(&mut self, truth: &Truth) -> (usize, usize) {
        let slot = self.slot(truth);
        let keys = truth.maps[slot].values.len();
        // Some keys are hot.
        let keys = if self.random.one_in(4) { keys.min(8) } else { keys };
        (slot, self.random.index(keys))
    }

    fn slot(&mut self, truth: &Truth) -> usize {
        loop {
            let slot = self.random.index(truth.maps.len());
            if truth.maps[slot].exists {
                return slot;
            }
        }
    }

    fn private(&mut self, plan: &Plan) -> usize {
        loop {
            let slot = self.random.index(plan.maps.len());
            if plan.maps[slot].role == Role::Private {
                return slot;
            }
        }
    }

    /// Draws the next call.
    pub fn next(&mut self, plan: &Plan, truth: &Truth) -> Op {
        if std::mem::take(&mut self.first) && self.random.one_in(2) {
            // Immediately after the opening, while recovery runs.
            let slot = self.private(plan);
            return self.create_or_drop(slot, truth);
        }
        if let Some((slot, from)) = self.filling.take()
            && truth.maps[slot].exists
            && from < truth.maps[slot].values.len()
        {
            self.filling = Some((slot, from + KEYS_PER_FILL));
            let count = KEYS_PER_FILL.min(truth.maps[slot].values.len() - from);
            return self.load(slot, from, count);
        }
        let (slot, n) = self.key(truth);
        match self.random.below(100_000) {
            0..22_000 => Op::Read(slot, n, Reading::Get),
            22_000..25_000 => Op::Read(slot, n, Reading::Contains),
            25_000..28_000 => Op::Read(slot, n, Reading::Borrowed),
            28_000..32_000 => Op::Read(slot, n, Reading::Several),
            32_000..88_000 => Op::Write(slot, n, self.write(plan.maps[slot].role)),
            88_000..89_000 => {
                let count = 1 + self.random.index(40);
                self.load(slot, n, count.min(truth.maps[slot].values.len() - n))
            }
            89_000..90_500 if self.random.one_in(plan.batches) => self.batch(plan, truth),
            90_500..94_500 => {
                let last = (n + self.random.index(60)).min(truth.maps[slot].values.len() - 1);
                let how = [
                    Scanning::Copied,
                    Scanning::Borrowed,
                    Scanning::Visited,
                    Scanning::Prefix,
                ];
                let scan = Op::Scan {
                    slot,
                    from: n,
                    to: last,
                    reverse: self.random.one_in(2),
                    how: self.random.pick(&how),
                };
                match (plan.maps[slot].is_ordered(), self.random.below(16)) {
                    (false, 0) => Op::Rare(Rare::Unordered(slot, n, last)),
                    (true, 1..) => scan,
                    _ => self.walk(slot, n),
                }
            }
            94_500..94_540 => {
                let bounded = self.random.one_in(3);
                Op::Snapshot(bounded.then(|| self.random.below(200_000)))
            }
            94_540..96_500 => Op::ReadSnapshot(slot, n),
            96_500..96_540 => Op::DropSnapshot,
            96_540..96_542 => Op::Backup,
            96_542..96_800 => Op::Rare(self.rare(plan, truth, slot, n)),
            96_980..97_000 => Op::Watch(self.private(plan)),
            97_000..97_002 => {
                let slot = self.private(plan);
                self.create_or_drop(slot, truth)
            }
            97_030..97_032 => Op::Count(slot),
            97_050..98_000 => {
                let is_expiring = |&slot: &usize| plan.maps[slot].role == Role::Expiring;
                (0..plan.maps.len())
                    .find(is_expiring)
                    .map_or(Op::Stats, Op::Sweep)
            }
            98_000..98_050 => Op::Stats,
            98_050..98_100 => Op::Maps,
            98_100..98_102 => Op::GiveBack,
            98_102..98_110 => Op::Recover,
            98_110..98_120 => Op::WaitRecovered,
            _ => Op::Read(slot, n, Reading::Get),
        }
    }

    fn walk(&mut self, slot: usize, n: usize) -> Op {
        Op::Walk {
            slot,
            behind: (!self.random.one_in(4)).then_some(n),
            limit: self.random.pick(&[1, 7, 40]),
            steps: 1 + self.random.index(4),
        }
    }

    fn rare(&mut self, plan: &Plan, truth: &Truth, slot: usize, n: usize) -> Rare {
        let private = self.private(plan);
        let last = (n + self.random.index(60)).min(truth.maps[slot].values.len() - 1);
        let is_private = truth.maps[private].exists;
        match (self.random.below(12), plan.maps[slot].role) {
            (0, _) if is_private => Rare::Ends(private),
            (1, _) if is_private && !plan.maps[private].is_ordered() => {
                Rare::Unordered(private, 0, truth.maps[private].values.len() - 1)
            }
            (1, _) if is_private => Rare::Pop(private, self.random.one_in(2)),
            (2, _) if is_private => {
                let key = self.random.index(truth.maps[private].values.len());
                Rare::Wait(private, key, self.value())
            }
            (3, Role::Expiring) => Rare::Alive(slot, n, last),
            (4, Role::Expiring) => Rare::Relive(slot, n, self.value_or_removal()),
            (3, _) => Rare::Edit(slot, n, self.value_or_removal()),
            (4, _) => Rare::Transaction(slot, n, self.value(), self.random.one_in(2)),
            (5, _) => Rare::Borrowed(slot, n),
            (6 | 7, _) => Rare::Views(slot, n, last),
            (8, _) => Rare::Own,
            (9, _) => Rare::Durable(self.durable()),
            (10, _) if is_private => {
                let key = self.random.index(truth.maps[private].values.len());
                let ways = [
                    EventualBy::Map,
                    EventualBy::Batch,
                    EventualBy::Transaction,
                    EventualBy::Turn,
                ];
                Rare::Eventual(private, key, self.value(), self.random.pick(&ways))
            }
            _ => Rare::About(slot),
        }
    }

    fn durable(&mut self) -> Durable {
        match self.random.below(8) {
            0 => Durable::Checkpoint(self.random.one_in(2)),
            1 => Durable::RequestCheckpoint,
            2 => Durable::SyncInterval(self.random.pick(&[1, 20, 1000])),
            3..6 => Durable::Sync,
            _ => Durable::About,
        }
    }

    fn load(&mut self, slot: usize, from: usize, count: usize) -> Op {
        let mut first = self.value();
        first.len = first.len.min(64);
        self.stamp += count as u64;
        Op::Load {
            slot,
            from,
            count,
            first,
        }
    }

    /// Creates the private map, which the next calls fill, or drops it.
    fn create_or_drop(&mut self, slot: usize, truth: &Truth) -> Op {
        if truth.maps[slot].exists {
            return Op::Drop(slot);
        }
        self.filling = Some((slot, 0));
        Op::Create(slot)
    }

    fn write(&mut self, role: Role) -> Write {
        match self.random.below(56) {
            0..22 => Write::Upsert(self.value()),
            22..29 => Write::Insert(self.value()),
            37..48 => Write::Remove,
            29..33 if role == Role::Expiring => Write::Expired(self.value()),
            _ if role == Role::Expiring => Write::Touch(if self.random.one_in(2) {
                Life::Hours
            } else {
                Life::Endless
            }),
            29..37 => Write::Update(self.value()),
            48..52 => Write::CompareAndSwap {
                right: !self.random.one_in(4),
                new: self.value_or_removal(),
            },
            _ => Write::Edit(self.value_or_removal()),
        }
    }

    fn transaction(&mut self, changes: Vec<(usize, usize, Option<Val>)>, truth: &Truth) -> Op {
        let reads = (0..self.random.below(4)).map(|_| self.key(truth)).collect();
        let range = self.random.one_in(3).then(|| {
            let (slot, n) = self.key(truth);
            let last = truth.maps[slot].values.len() - 1;
            (slot, n, (n + self.random.index(30)).min(last))
        });
        Op::Transaction(Body {
            reads,
            changes: if self.random.one_in(8) {
                Vec::new()
            } else {
                changes
            },
            range,
            commits: !self.random.one_in(8),
        })
    }

    fn batch(&mut self, plan: &Plan, truth: &Truth) -> Op {
        let max = if self.random.one_in(10) { 60 } else { 5 };
        let count = 1 + self.random.index(max);
        let changes = (0..count).map(|_| {
            let (slot, n) = self.key(truth);
            (slot, n, self.value_or_removal())
        });
        let changes: Vec<_> = changes.collect();
        if self.random.one_in(2) {
            return self.transaction(changes, truth);
        }
        let expected = (0..self.random.below(3)).map(|_| {
            let (slot, n) = self.key(truth);
            (slot, n, !self.random.one_in(8))
        });
        // A value in an expiring map begins with its expiry time, which is unknown here.
        let expected = expected.filter(|&(slot, ..)| plan.maps[slot].role != Role::Expiring);
        Op::Batch {
            changes,
            expected: expected.collect(),
        }
    }
}

/// Returns the `i`-th value of a load.
pub(crate) fn nth(first: Val, i: usize) -> Val {
    Val {
        stamp: first.stamp + i as u64,
        ..first
    }
}

/// A transaction: reads, then changes, then reads of what was changed and of a range.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub reads: Vec<(usize, usize)>,
    pub changes: Vec<(usize, usize, Option<Val>)>,
    pub range: Option<(usize, usize, usize)>,
    /// Whether it is committed; otherwise it is dropped.
    pub commits: bool,
}

impl Op {
    /// Returns the changes that the call makes if it is carried out.
    pub fn effects(&self, truth: &Truth) -> Effects {
        let mut effects = Effects::default();
        match self {
            &Op::Write(slot, n, write) => {
                let old = truth.value(slot, n);
                effects.values.push((slot, n, after(old, write)));
            }
            &Op::Load {
                slot,
                from,
                count,
                first,
            } => {
                let values = (0..count).map(|i| (slot, from + i, Some(nth(first, i))));
                effects.values.extend(values);
            }
            Op::Batch { changes, expected } if expected.iter().all(|&(_, _, right)| right) => {
                effects.atomic = true;
                effects.values.clone_from(changes);
            }
            Op::Transaction(Body {
                changes,
                commits: true,
                ..
            }) => {
                effects.atomic = true;
                effects.values.clone_from(changes);
            }
            &Op::Rare(rare) => effects.values.extend(rare.effect(truth)),
            &Op::Create(slot) => effects.map = Some((slot, true)),
            &Op::Drop(slot) => effects.map = Some((slot, false)),
            _ => {}
        }
        effects
    }
}

impl Rare {
    /// Returns the key that the call changes, and its value afterwards.
    fn effect(self, truth: &Truth) -> Option<(usize, usize, Option<Val>)> {
        match self {
            Rare::Pop(slot, last) => truth.end(slot, last).map(|(n, _)| (slot, n, None)),
            Rare::Edit(slot, n, new) | Rare::Relive(slot, n, new) => Some((slot, n, new)),
            Rare::Transaction(slot, n, new, _) => {
                let old = truth.value(slot, n);
                Some((slot, n, old.or(Some(new))))
            }
            Rare::Wait(slot, n, new) | Rare::Eventual(slot, n, new, _) => Some((slot, n, Some(new))),
            _ => None,
        }
    }
}

/// Calls about the durability of writes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Durable {
    Sync,
    /// A checkpoint; `true`: a full one.
    Checkpoint(bool),
    RequestCheckpoint,
    /// Sets the interval, in milliseconds, at which the log syncs writes that do not wait.
    SyncInterval(u64),
    /// Properties of the log, and the default durability.
    About,
}

/// The ways to write without waiting until the write is durable.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EventualBy {
    Map,
    Batch,
    Transaction,
    /// Within a turn, which the thread pauses and resumes.
    Turn,
}

/// Returns a key's value after a write.
fn after(old: Option<Val>, write: Write) -> Option<Val> {
    match write {
        Write::Insert(new) => old.or(Some(new)),
        Write::Upsert(new) => Some(new),
        Write::Update(new) => old.map(|_| new),
        Write::Remove | Write::Expired(_) => None,
        Write::CompareAndSwap { right: false, .. } => old,
        Write::CompareAndSwap { new, .. } | Write::Edit(new) => new,
        Write::Touch(life) => old.map(|old| Val { life, ..old }),
    }
}
