//! The records that must, and those that may, survive a crash.

use log::{Change, Disk, Log, Lsn, Needs, Options};
use std::sync::{Arc, OnceLock};

/// The id of every log here.
pub const ID: u128 = 0x1eaf;

/// The smallest segments, so that a few records fill several.
pub fn options() -> Options {
    Options {
        segment_size: 8192,
        limit: 64 << 10,
        spares: 2,
    }
}

/// Where a log begins.
pub const BEGIN: Lsn = Lsn(4096);

/// What a record says, in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// No two records of a history have the same.
    pub number: u64,
    /// Of its value.
    pub len: usize,
}

/// The longest value.
pub const LONGEST: usize = 11 << 10;

impl Content {
    /// Hands the record's changes over.
    pub fn with<T>(&self, take: impl FnOnce(&[Change<'_>]) -> T) -> T {
        static NOISE: OnceLock<Vec<u8>> = OnceLock::new();
        let noise = NOISE.get_or_init(|| {
            let mut random = crashkit::Random(1);
            (0..LONGEST + 256).map(|_| random.next() as u8).collect()
        });
        let key = self.number.to_le_bytes();
        let from = self.number as usize % 256;
        let value = &noise[from..from + self.len];
        let put = |map| Change::Put {
            map,
            key: &key,
            value,
        };
        match self.number % 6 {
            0 => take(&[put("a"), Change::Remove { map: "b", key: &key }, put("c")]),
            1 => take(&[Change::MapMade {
                map: "new",
                index: "roart",
                settings: value,
            }]),
            2 => take(&[Change::Remove { map: "a", key: &key }]),
            _ => take(&[put("a")]),
        }
    }
}

/// A record that was appended, or perhaps.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    pub content: Content,
    /// Its end; the highest there is where the append has not returned.
    pub end: Lsn,
    /// The numbers of the disk's events between which it was appended.
    pub begun: usize,
    pub done: usize,
}

/// What a crash may leave: some of the first records, in order.
#[derive(Clone, Debug)]
pub struct Truth {
    /// Whether the log's creation had returned.
    pub exists: bool,
    /// All records from `keep` on that may be there.
    pub records: Vec<Written>,
    /// How many must be there after a power cut.
    pub durable: usize,
    /// How many must be there after a kill.
    pub there: usize,
    /// Where the records begin that the caller needs.
    pub keep: Lsn,
}

impl Truth {
    /// The truth of a disk without a log.
    pub fn nothing() -> Truth {
        Truth {
            exists: false,
            records: Vec::new(),
            durable: 0,
            there: 0,
            keep: BEGIN,
        }
    }

    /// The end of the first `count` records.
    pub fn end(&self, count: usize) -> Lsn {
        count
            .checked_sub(1)
            .map_or(self.keep, |last| self.records[last].end)
    }

    /// Opens what a crash has left, of which this many records must be there, and compares. Returns how many were.
    pub fn open<D: Disk>(
        &self,
        disk: Arc<D>,
        least: usize,
        random: &mut crashkit::Random,
    ) -> Result<(Log<D>, usize), Trouble> {
        if !self.exists {
            Log::remove(&*disk)?;
            return Ok((Log::create(disk, ID, options())?, 0));
        }
        // What the pool and the manifest know lies below what must be there. A caller knows less to be durable than to
        // be there after a kill.
        let mut among = |count: usize| self.end(random.below(count as u64 + 1) as usize);
        let needs = Needs {
            keep: self.keep,
            check: among(least),
            reach: among(least),
            durable: among(least.min(self.durable)),
        };
        let log = Log::open(disk, ID, needs, options())?;
        let found = self.compare(&log)?;
        match found < least {
            true => Err(Trouble::Wrong(format!(
                "{found} records are there, and {least} must be"
            ))),
            false => Ok((log, found)),
        }
    }

    /// Compares all records of a log: how many there are.
    pub fn compare<D: Disk>(&self, log: &Log<D>) -> Result<usize, Trouble> {
        let mut scan = log.scan(self.keep..log.appended())?;
        let mut found = 0;
        while let Some(record) = scan.next()? {
            let Some(expected) = self.records.get(found) else {
                let more = format!("a record ends at {} behind all that were appended", record.end);
                return Err(Trouble::Wrong(more));
            };
            let same = expected
                .content
                .with(|changes| record.changes.eq(changes.iter().copied()));
            let ends = expected.done == usize::MAX || expected.end == record.end;
            if !same || !ends {
                return Err(Trouble::Wrong(format!(
                    "record {found} ends at {} and is not {:?}, which ends at {}",
                    record.end, expected.content, expected.end
                )));
            }
            found += 1;
        }
        Ok(found)
    }
}

/// Why an opening was not what it must be.
#[derive(Debug)]
pub enum Trouble {
    /// The log said so.
    Refused(log::Error),
    /// It is not what was appended.
    Wrong(String),
}

impl From<log::Error> for Trouble {
    fn from(error: log::Error) -> Trouble {
        Trouble::Refused(error)
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Refused(error) => write!(f, "it is refused: {error}"),
            Trouble::Wrong(what) => what.fmt(f),
        }
    }
}
