//! A thread's knowledge of its own keys.
//!
//! A stamp and a length determine a value's bytes, so the truth about a key takes a few words, however long its value
//! is.

use crate::calls::Calls;
use crate::keys::Shape;
use crate::random::Random;
use std::io::{self, Read, Write};
use wollemi::{Durability, IndexKind};

/// Lifetime of an entry of an expiring map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// The entry never expires.
    Endless,
    /// The entry expires after 100 hours, later than any run ends.
    Hours,
}

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Val {
    pub stamp: u64,
    pub len: u32,
    pub life: Life,
}

impl Val {
    /// Returns the value's bytes: the stamp, repeated.
    pub fn bytes(self) -> Vec<u8> {
        let mut bytes = self.stamp.to_le_bytes().repeat((self.len as usize).div_ceil(8));
        bytes.truncate(self.len as usize);
        bytes
    }

    /// Returns whether these are the value's bytes.
    pub fn is(self, bytes: &[u8]) -> bool {
        let stamp = self.stamp.to_le_bytes();
        bytes.len() == self.len as usize && bytes.chunks(8).all(|chunk| *chunk == stamp[..chunk.len()])
    }
}

/// How the threads use a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Every thread writes its own keys.
    Shared,
    /// Every thread writes its own keys, through `Expiring`.
    Expiring,
    /// One thread uses the map, drops it and creates it again.
    Private,
}

/// A map of the plan.
#[derive(Clone, Debug)]
pub(crate) struct MapPlan {
    pub role: Role,
    pub kind: IndexKind,
    pub shape: Shape,
    pub keys: usize,
}

impl MapPlan {
    /// Whether its index is ordered by the keys' bytes, so that it has ranges and ends.
    pub fn is_ordered(&self) -> bool {
        self.kind.is_ordered()
    }
}

/// Some of a plan's maps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slots(u32);

impl Slots {
    pub fn has(self, slot: usize) -> bool {
        self.0 >> slot & 1 == 1
    }
}

impl FromIterator<usize> for Slots {
    fn from_iter<I: IntoIterator<Item = usize>>(slots: I) -> Slots {
        Slots(slots.into_iter().fold(0, |all, slot| all | 1 << slot))
    }
}

/// The maps of a pool. For each private map of the plan every thread has a map of its own.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub seed: u64,
    pub threads: usize,
    pub maps: Vec<MapPlan>,
    /// One in this many calls drawn as a batch or a transaction is carried out as one.
    pub batches: u64,
    /// Rounds are short, and drop and recreate large maps: this plan exercises openings.
    pub openings: bool,
    /// Default durability of a pool that moves to level `disk` and back; `None`: the pool stays without a log.
    pub durability: Option<Durability>,
}

const PRIVATE: usize = 2;

impl Plan {
    /// Draws the plan of this seed, over these indexes.
    pub fn new(seed: u64, threads: usize, kinds: &[IndexKind]) -> Plan {
        let random = &mut Random::new(seed, 1);
        let roles = [Role::Shared, Role::Shared, Role::Shared, Role::Expiring];
        let private = [Role::Private; PRIVATE];
        let openings = random.one_in(3);
        let scale = if openings {
            2000
        } else {
            random.pick(&[30, 300, 2000])
        };
        let maps: Vec<_> = roles
            .iter()
            .chain(&private)
            .map(|&role| MapPlan {
                role,
                kind: random.pick(kinds),
                shape: random.pick(&Shape::ALL),
                keys: match role {
                    Role::Private => scale * 30,
                    Role::Shared | Role::Expiring => scale,
                },
            })
            .collect();
        Plan {
            seed,
            threads,
            maps,
            batches: random.pick(&[1, 30, 300]),
            openings,
            durability: random.pick(&[
                None,
                None,
                Some(Durability::Immediate),
                Some(Durability::Eventual),
            ]),
        }
    }

    /// Returns the name of a map in this thread.
    pub fn name(&self, slot: usize, thread: usize) -> String {
        match self.maps[slot].role {
            Role::Shared => format!("shared {slot}"),
            Role::Expiring => format!("expiring {slot}"),
            Role::Private => format!("private {slot} of {thread}"),
        }
    }

    /// Counts a call of these maps, once for each of their indexes.
    pub fn count(&self, slots: Slots, calls: &mut Calls) {
        for (slot, map) in self.maps.iter().enumerate() {
            let counted = |other: &usize| slots.has(*other) && self.maps[*other].kind == map.kind;
            if slots.has(slot) && !(0..slot).any(|other| counted(&other)) {
                calls.add(map.kind.name());
            }
        }
    }

    /// Returns the keys of a thread in a map, in order.
    pub fn keys(&self, slot: usize, thread: usize) -> Vec<Vec<u8>> {
        let MapPlan { shape, keys, .. } = self.maps[slot];
        let purpose = 2 + (slot * self.threads + thread) as u64;
        shape.keys(thread, keys, &mut Random::new(self.seed, purpose))
    }
}

/// The expected content of a thread's keys in one map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MapTruth {
    /// Whether the map exists.
    pub exists: bool,
    /// The value of each key, by the key's number.
    pub values: Vec<Option<Val>>,
}

/// The expected content of a thread's keys in all maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Truth {
    pub maps: Vec<MapTruth>,
}

/// The changes of an operation. A batch makes all of them or none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects {
    pub values: Vec<(usize, usize, Option<Val>)>,
    /// A map that is created (`true`) or dropped.
    pub map: Option<(usize, bool)>,
    pub atomic: bool,
}

impl Truth {
    /// Returns the truth before the first write. All maps but the private ones exist from the start.
    pub fn new(plan: &Plan, keys: &[Vec<Vec<u8>>]) -> Truth {
        let maps = plan.maps.iter().zip(keys).map(|(map, keys)| MapTruth {
            exists: map.role != Role::Private,
            values: vec![None; keys.len()],
        });
        Truth { maps: maps.collect() }
    }

    pub fn value(&self, slot: usize, n: usize) -> Option<Val> {
        self.maps[slot].values[n]
    }

    /// Returns the map's first key that has a value, or the last one, and the value.
    pub fn end(&self, slot: usize, last: bool) -> Option<(usize, Val)> {
        let mut held = self.maps[slot]
            .values
            .iter()
            .enumerate()
            .filter_map(|(n, value)| Some((n, (*value)?)));
        if last { held.next_back() } else { held.next() }
    }

    pub fn apply(&mut self, effects: &Effects) {
        for &(slot, n, value) in &effects.values {
            self.maps[slot].values[n] = value;
        }
        if let Some((slot, exists)) = effects.map {
            self.maps[slot].exists = exists;
            self.maps[slot].values.fill(None);
        }
    }

    /// Writes the truth to a file, for a child process.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        for map in &self.maps {
            out.write_all(&[u8::from(map.exists)])?;
            for value in &map.values {
                let (tag, stamp, len) = match value {
                    None => (0, 0, 0),
                    Some(Val { stamp, len, life }) => (1 + u8::from(*life == Life::Hours), *stamp, *len),
                };
                out.write_all(&[tag])?;
                out.write_all(&stamp.to_le_bytes())?;
                out.write_all(&len.to_le_bytes())?;
            }
        }
        Ok(())
    }

    /// Reads the output of [`write`](Truth::write) into a truth of the same plan.
    pub fn read(&mut self, input: &mut impl Read) -> io::Result<()> {
        let (mut byte, mut stamp, mut len) = ([0], [0; 8], [0; 4]);
        for map in &mut self.maps {
            input.read_exact(&mut byte)?;
            map.exists = byte[0] == 1;
            for value in &mut map.values {
                input.read_exact(&mut byte)?;
                input.read_exact(&mut stamp)?;
                input.read_exact(&mut len)?;
                let life = if byte[0] == 2 { Life::Hours } else { Life::Endless };
                *value = (byte[0] != 0).then(|| Val {
                    stamp: u64::from_le_bytes(stamp),
                    len: u32::from_le_bytes(len),
                    life,
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A written truth is read back unchanged.
    #[test]
    fn truth_survives_a_file() -> io::Result<()> {
        let plan = Plan::new(7, 2, &[IndexKind::Roart]);
        let keys: Vec<_> = (0..plan.maps.len()).map(|slot| plan.keys(slot, 1)).collect();
        let mut truth = Truth::new(&plan, &keys);
        for (n, value) in truth.maps[0].values.iter_mut().enumerate() {
            let life = if n % 2 == 0 { Life::Hours } else { Life::Endless };
            *value = (n % 3 != 0).then_some(Val {
                stamp: n as u64,
                len: n as u32 * 7,
                life,
            });
        }
        let mut file = Vec::new();
        truth.write(&mut file)?;
        let mut read = Truth::new(&plan, &keys);
        read.read(&mut &file[..])?;
        assert_eq!(read, truth);
        Ok(())
    }

    /// The bytes of a value are not those of a longer one, nor (unless it is empty) of one with another stamp.
    #[test]
    fn values_are_told_apart() {
        let life = Life::Endless;
        for len in [0, 1, 8, 9, 100] {
            let value = Val {
                stamp: 1 << 56 | 77,
                len,
                life,
            };
            assert!(value.is(&value.bytes()));
            assert!(
                !Val {
                    len: len + 1,
                    ..value
                }
                .is(&value.bytes())
            );
            assert!(len == 0 || !Val { stamp: 78, ..value }.is(&value.bytes()));
        }
    }
}
