//! The slots of intents: which of them are claimed, in DRAM.

use crate::write::gate::{Gate, wait};
use crate::write::intent::{Own, SLOTS};
use pmem::{Media, Offset, PSlot};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// The root's offset, once it is known, and the claims on its slots.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    pub root: OnceLock<Offset>,
    claimed: AtomicU32,
}

const _: () = assert!(SLOTS <= u32::BITS as usize);

/// A slot that this thread has claimed, until this is dropped.
#[derive(Debug)]
pub(crate) struct Slot<'s> {
    slots: &'s Slots,
    number: usize,
    pub slot: &'s PSlot,
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.slots.claimed.fetch_and(!(1 << self.number), SeqCst);
    }
}

impl Slots {
    /// Claims a slot; waits until one is free. The caller has a pass, and waits only for holders of passes.
    ///
    /// # Errors
    ///
    /// [`Error::Unfinished`](index::Error::Unfinished)
    pub fn claim<'s, M: Media>(
        &'s self,
        own: &'s Own,
        gate: &Gate,
        media: &M,
    ) -> Result<Slot<'s>, index::Error> {
        let mut turn = 0;
        loop {
            let claimed = self.claimed.load(SeqCst);
            let number = claimed.trailing_ones() as usize;
            if let Some(slot) = own.intents.get(number) {
                let bit = 1 << number;
                if self.claimed.fetch_or(bit, SeqCst) & bit == 0 {
                    return Ok(Slot {
                        slots: self,
                        number,
                        slot,
                    });
                }
            } else {
                gate.refuse_if_shut()?;
                wait(&mut turn, media);
            }
        }
    }
}
