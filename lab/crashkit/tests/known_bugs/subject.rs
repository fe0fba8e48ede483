//! The structure as a subject.

use super::node::{Live, MAGIC};
use super::tree::{Bug, Tree};
use pmem::{Pool, Purpose, persist_scope};
use std::collections::BTreeMap;
use std::sync::Mutex;
use wollemi_crashkit::{Crash, Random, Subject, Verdict};

#[derive(Clone, Copy, Debug)]
pub enum Op {
    Insert(u8, u32),
    Update(u8, u32),
    Remove(u8),
    Get(u8),
    Deepen,
    Depth,
    Move,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    pub map: BTreeMap<u8, u32>,
    pub depth: u64,
}

pub type Answer = Option<u64>;

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
        let node = live.node(1)?;
        if self.0 == Bug::RootNotPersisted {
            persist_scope(live.media(), Purpose::Node, |batch| {
                node.magic.store(MAGIC, &batch)
            });
        } else {
            live.persist(|batch| node.magic.store(MAGIC, batch));
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
            return Err("the root does not lead to a node".into());
        }
        // A killed process may have left stores that are not durable, on which the structure acts from now on.
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
        // A key that no other operation uses, so that it replaces no other key.
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

pub fn op(random: &mut Random) -> Op {
    // A few keys, of all kinds of bytes.
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
