//! The records that must, and those that may, survive a crash.

use log::{Change, Disk, Log, LogOptions, Lsn, Needs};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

/// The id of every tortured log.
pub const ID: u128 = 0x1eaf;

/// Returns options with the smallest segments, so that a few records fill several.
pub fn options() -> LogOptions {
    LogOptions {
        segment_size: 8192,
        limit: 64 << 10,
        spares: 2,
    }
}

/// The position of the first record of a new log.
pub const BEGIN: Lsn = Lsn(4096);

/// The content of a record, from which its changes are generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// Unique within a history.
    pub number: u64,
    /// The length of its value.
    pub len: usize,
}

/// The length of the longest value.
pub const LONGEST: usize = 11 << 10;

impl Content {
    /// Calls `take` with the record's changes.
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

/// A record that was appended, or whose append may not have returned.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    pub content: Content,
    /// Its end; the maximum if the append has not returned.
    pub end: Lsn,
    /// The number of disk events before the append began.
    pub begun: usize,
    /// The number of disk events before the append returned; `usize::MAX` if it has not.
    pub done: usize,
}

/// What a crash may leave: a prefix of the records.
#[derive(Clone, Debug)]
pub struct Truth {
    /// Whether the log's creation had returned.
    pub exists: bool,
    /// All records from `keep` on that may survive.
    pub records: Vec<Written>,
    /// How many records must survive a power cut.
    pub durable: usize,
    /// How many records must survive a kill.
    pub there: usize,
    /// The position from which the caller needs records.
    pub keep: Lsn,
}

impl Truth {
    /// Returns the truth of a disk without a log.
    pub fn nothing() -> Truth {
        Truth {
            exists: false,
            records: Vec::new(),
            durable: 0,
            there: 0,
            keep: BEGIN,
        }
    }

    /// Returns a hash of all that an opening is judged by, except for the number of records that must survive.
    pub fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.exists, self.durable, self.keep.0).hash(&mut hasher);
        for Written {
            content, end, done, ..
        } in &self.records
        {
            let is_done = *done != usize::MAX;
            (content.number, content.len, end.0, is_done).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Returns the end of the first `count` records.
    pub fn end(&self, count: usize) -> Lsn {
        count
            .checked_sub(1)
            .map_or(self.keep, |last| self.records[last].end)
    }

    /// Opens the log of a crash state, which must hold at least `least` records, and compares them. If the log's
    /// creation had not returned, removes what it has left and creates the log. Returns the log and the number of its
    /// records.
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
        // The positions that the pool and the manifest know lie within the records that must survive. Fewer records
        // are known to be durable than must survive a kill.
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
                "found {found} records, expected at least {least}"
            ))),
            false => Ok((log, found)),
        }
    }

    /// Compares all records of a log with the expected ones. Returns their number.
    pub fn compare<D: Disk>(&self, log: &Log<D>) -> Result<usize, Trouble> {
        let mut scan = log.scan(self.keep..log.appended())?;
        let mut found = 0;
        while let Some(record) = scan.next()? {
            let Some(expected) = self.records.get(found) else {
                let more = format!("the record that ends at {} was never appended", record.end);
                return Err(Trouble::Wrong(more));
            };
            let same = expected
                .content
                .with(|changes| record.changes.eq(changes.iter().copied()));
            let ends = expected.done == usize::MAX || expected.end == record.end;
            if !same || !ends {
                return Err(Trouble::Wrong(format!(
                    "record {found}, which ends at {}, should be {:?}, which ends at {}",
                    record.end, expected.content, expected.end
                )));
            }
            found += 1;
        }
        Ok(found)
    }
}

/// Why a run or a judgement failed.
#[derive(Debug)]
pub enum Trouble {
    /// The log returned an error.
    Refused(log::Error),
    /// The log holds or does something wrong.
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
            Trouble::Refused(error) => write!(f, "the log returned an error: {error}"),
            Trouble::Wrong(what) => what.fmt(f),
        }
    }
}
