//! The targets of torture, by their names on the command line.

use ::torture::batches::Batches;
use ::torture::items::Items;
use crashkit::blobs::Blobs;
use std::fmt;
use std::str::FromStr;
use wollemi::indexes::IndexKind;

/// What to torture.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    All,
    Heap,
    Database(Batches),
    Items,
    Log,
    Disk,
    Index(IndexKind),
}

impl FromStr for Target {
    type Err = String;
    fn from_str(name: &str) -> Result<Target, String> {
        Ok(match name {
            "all" => Target::All,
            "heap" => Target::Heap,
            "items" => Target::Items,
            "log" => Target::Log,
            "disk" => Target::Disk,
            name if name == "kv" || name.starts_with("kv:") => Target::Database(Batches::named(name)?),
            name => Target::Index(
                name.parse()
                    .map_err(|error: wollemi::indexes::Unknown| error.to_string())?,
            ),
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::All => f.write_str("all"),
            Target::Heap => f.write_str("heap"),
            Target::Database(batches) => batches.fmt(f),
            Target::Items => f.write_str("items"),
            Target::Log => f.write_str("log"),
            Target::Disk => f.write_str("disk"),
            Target::Index(kind) => f.write_str(kind.name()),
        }
    }
}

impl Target {
    /// Returns the single targets whose stores go to a pool.
    pub fn each(self) -> Vec<Target> {
        match self {
            Target::Log | Target::Disk => Vec::new(),
            Target::All => [Target::Heap, Target::Items]
                .into_iter()
                .chain(Batches::HELD.map(Target::Database))
                .chain(IndexKind::ALL.iter().copied().map(Target::Index))
                .collect(),
            one => vec![one],
        }
    }

    /// Returns the single targets that write files.
    pub fn with_files(self) -> &'static [Target] {
        match self {
            Target::All => &[Target::Log, Target::Disk],
            Target::Log => &[Target::Log],
            Target::Disk => &[Target::Disk],
            _ => &[],
        }
    }

    /// Returns whether the target claims the model `word`.
    pub fn claims_word(self) -> bool {
        match self {
            Target::Index(kind) => kind.claims_word(),
            Target::Heap => Blobs::CLAIMS_WORD,
            Target::Database(batches) => batches.claims_word(),
            Target::Items => Items::CLAIMS_WORD,
            Target::All | Target::Log | Target::Disk => false,
        }
    }
}
