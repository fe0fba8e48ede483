//! A node in persistent memory, and the structure in use.

use pmem::{
    GenerationLock, Offset, PWord, PersistBatch, Persistent, Pool, Purpose, VWord, persist_scope, persistent,
};
use std::sync::Mutex;
use wollemi_crashkit::Crash;

persistent! {
    pub struct Node [size: 384, align: 64] {
        pub lock: GenerationLock,
        pub other_lock: GenerationLock,
        /// Entries handed out.
        pub count: VWord,
        rest: [PWord; 5],
        /// Entries that count.
        pub counted: PWord,
        pub held: PWord,
        pub table: PWord,
        rest_1: [PWord; 5],
        pub depth: PWord,
        rest_2: [PWord; 7],
        /// Three times the depth.
        pub prefix: PWord,
        pub magic: PWord,
        /// The generation in which it was made.
        pub made: PWord,
        rest_3: [PWord; 5],
        /// `key:8 | present:1 | used:1 | fingerprint:8 | value:32`
        pub entries: [PWord; 16],
    }
}

pub const MAGIC: u64 = 0x57;
pub const PRESENT: u64 = 1 << 41;
pub const USED: u64 = 1 << 40;

pub fn key_of(entry: u64) -> u8 {
    (entry >> 42) as u8
}

pub fn print_of(entry: u64) -> u8 {
    (entry >> 32) as u8
}

pub struct Live {
    pub pool: Pool<Crash>,
    /// Data that the process keeps in DRAM beside the tree.
    pub table: Mutex<Vec<u64>>,
}

impl Live {
    fn at<T: Persistent>(&self, bytes: u64) -> Result<&T, String> {
        let offset = Offset::new(bytes).ok_or("nowhere")?;
        // SAFETY: there are no drafts here.
        unsafe { self.pool.at(offset) }.map_err(|fault| fault.to_string())
    }

    /// The number of the node in use; 0 before there is one.
    pub fn root(&self) -> Result<&PWord, String> {
        self.at(64 << 10)
    }

    pub fn node(&self, number: u64) -> Result<&Node, String> {
        self.at((65 << 10) + (number % 2) * 1024)
    }

    pub fn media(&self) -> &Crash {
        self.pool.media()
    }

    /// Returns the generation for nodes made now.
    pub fn made(&self) -> u64 {
        u64::from(self.pool.generation())
    }

    pub fn persist<'p>(&'p self, change: impl FnOnce(&PersistBatch<'_, 'p, Crash>)) {
        persist_scope(self.media(), Purpose::Node, |batch| {
            change(&batch);
            let _durable = batch.fence().durable();
        });
    }
}
