//! The maps that a call uses.

use crate::op::{Body, Op, Rare};
use crate::truth::Slots;

impl Op {
    /// Returns the maps that the call uses; none for a call of the database as a whole.
    pub fn slots(&self) -> Slots {
        match self {
            Op::Batch { changes, expected } => {
                let expected = expected.iter().map(|&(slot, ..)| slot);
                changes.iter().map(|&(slot, ..)| slot).chain(expected).collect()
            }
            Op::Transaction(Body {
                reads,
                changes,
                range,
                ..
            }) => {
                let changes = changes.iter().map(|&(slot, ..)| slot);
                let range = range.iter().map(|&(slot, ..)| slot);
                let reads = reads.iter().map(|&(slot, _)| slot);
                reads.chain(changes).chain(range).collect()
            }
            &Op::Read(slot, ..)
            | &Op::Write(slot, ..)
            | &Op::Load { slot, .. }
            | &Op::Scan { slot, .. }
            | &Op::Walk { slot, .. }
            | &Op::ReadSnapshot(slot, _)
            | &Op::Watch(slot)
            | &Op::Create(slot)
            | &Op::Drop(slot)
            | &Op::Count(slot)
            | &Op::Sweep(slot) => Slots::from_iter([slot]),
            Op::Rare(rare) => rare.slot().into_iter().collect(),
            Op::Snapshot(_)
            | Op::DropSnapshot
            | Op::Backup
            | Op::Stats
            | Op::Maps
            | Op::GiveBack
            | Op::Recover
            | Op::WaitRecovered => Slots::default(),
        }
    }
}

impl Rare {
    /// Returns the map that the call uses.
    fn slot(self) -> Option<usize> {
        match self {
            Rare::About(slot)
            | Rare::Ends(slot)
            | Rare::Pop(slot, _)
            | Rare::Edit(slot, ..)
            | Rare::Borrowed(slot, _)
            | Rare::Views(slot, ..)
            | Rare::Transaction(slot, ..)
            | Rare::Wait(slot, ..)
            | Rare::Alive(slot, ..)
            | Rare::Relive(slot, ..)
            | Rare::Eventual(slot, ..)
            | Rare::Unordered(slot, ..) => Some(slot),
            // The default index holds the thread's own maps, and it holds the first map.
            Rare::Own => Some(0),
            Rare::Durable(_) => None,
        }
    }
}
