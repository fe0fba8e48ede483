//! The operations of the child's threads, determined by the seed, and their reports.

use crate::common::Random;

/// The map under test.
pub const MAP: &str = "killed";

/// Number of writing threads, each with its own keys.
pub const WRITERS: u8 = 3;

/// Number of keys of each writer.
pub const KEYS: u32 = 2000;

/// The kind of a writer's operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Insert,
    Upsert,
    Update,
    Remove,
}

/// One operation of one writer.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    pub key: u32,
    pub action: Action,
    /// The version that it writes: unique among the operations on this key.
    pub version: u64,
}

/// Returns the `n`th operation of a writer in a round.
pub fn op(seed: u64, round: u64, writer: u8, n: u32) -> Op {
    let mut random = Random::from_seed(seed ^ round << 40 ^ u64::from(writer) << 32 ^ u64::from(n));
    let action = match random.below(20) {
        0..10 => Action::Upsert,
        10..13 => Action::Insert,
        13..16 => Action::Update,
        _ => Action::Remove,
    };
    let key = random.below(u64::from(KEYS)) as u32;
    Op {
        key,
        action,
        version: round << 32 | u64::from(n),
    }
}

impl Op {
    /// Returns the key's state after the operation, and the operation's result.
    pub fn outcome(&self, before: Option<u64>) -> (Option<u64>, bool) {
        match (self.action, before) {
            (Action::Insert, Some(_)) | (Action::Update | Action::Remove, None) => (before, false),
            (Action::Remove, Some(_)) => (None, true),
            _ => (Some(self.version), true),
        }
    }
}

/// Returns a key's bytes: short and long, with long common prefixes, prefixes of each other, and zeros.
pub fn key(writer: u8, key: u32) -> Vec<u8> {
    let mut bytes = vec![b'a' + writer];
    match key % 4 {
        0 => bytes.extend(key.to_be_bytes()),
        1 => bytes.extend(format!("/usr/share/a/rather/long/common/prefix/{:x}", key / 8).bytes()),
        2 => bytes.extend(std::iter::repeat_n(0, key as usize)),
        _ => bytes.extend(Random::from_seed(key.into()).next().to_le_bytes()),
    }
    // Distinguishes keys that may be equal so far.
    if key % 8 == 5 {
        bytes.push(b'+');
    }
    bytes
}

/// Returns a version's value, from which the version can be read back: mostly one word, sometimes large.
pub fn value(version: u64) -> Vec<u8> {
    let mut random = Random::from_seed(version);
    let more = match random.below(1000) {
        0..500 => 0,
        500..900 => random.below(300),
        900..998 => random.below(5000),
        _ => random.below(400_000),
    };
    let mut value = version.to_le_bytes().to_vec();
    value.extend((0..more).map(|i| (version ^ i) as u8));
    value
}

/// Returns the version in a value; panics if the value was never written.
pub fn version(bytes: &[u8]) -> u64 {
    let word = bytes.first_chunk().expect("a value of eight bytes or more");
    let version = u64::from_le_bytes(*word);
    assert!(
        bytes == value(version),
        "the value of version {version:#x} is torn"
    );
    version
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug)]
pub enum Record {
    /// The writer's next operation is done, with this result.
    Wrote { writer: u8, answer: bool },
    /// A reader has read this from a writer's key.
    Saw {
        writer: u8,
        key: u32,
        version: Option<u64>,
    },
}

impl Record {
    /// Bytes of a record in the pipe.
    pub const LEN: usize = 16;

    pub fn encode(self) -> [u8; Record::LEN] {
        let (kind, writer, key, word) = match self {
            Record::Wrote { writer, answer } => (0, writer, 0, u64::from(answer)),
            Record::Saw {
                writer,
                key,
                version: None,
            } => (1, writer, key, 0),
            Record::Saw {
                writer,
                key,
                version: Some(version),
            } => (2, writer, key, version),
        };
        let mut bytes = [0; Record::LEN];
        bytes[0] = kind;
        bytes[1] = writer;
        bytes[4..8].copy_from_slice(&key.to_le_bytes());
        bytes[8..].copy_from_slice(&word.to_le_bytes());
        bytes
    }

    pub fn decode(bytes: &[u8; Record::LEN]) -> Record {
        let [kind, writer, _, _, k0, k1, k2, k3, word @ ..] = *bytes;
        let (key, word) = (u32::from_le_bytes([k0, k1, k2, k3]), u64::from_le_bytes(word));
        match kind {
            0 => Record::Wrote {
                writer,
                answer: word == 1,
            },
            1 => Record::Saw {
                writer,
                key,
                version: None,
            },
            _ => Record::Saw {
                writer,
                key,
                version: Some(word),
            },
        }
    }
}
