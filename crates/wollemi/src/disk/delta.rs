//! What a part of the log comes to: the last statement of each key, by maps. All of it is in memory.

use crate::files_error::FilesError;
use log::{Change, Disk, Log, Lsn};
use std::collections::{BTreeMap, HashMap};

/// The log's statements about a map.
#[derive(Default)]
pub(crate) struct MapDelta {
    /// Its index, if it was made.
    pub made: Option<String>,
    /// Whether the map's earlier content is gone.
    pub dropped: bool,
    /// What each key holds that was changed; `None`: nothing.
    pub entries: HashMap<Vec<u8>, Option<Vec<u8>>>,
}

/// A log record's statement about a map.
enum Statement<'r> {
    Key(&'r [u8], Option<&'r [u8]>),
    Made(&'r str),
    Dropped,
}

impl MapDelta {
    fn take(&mut self, statement: Statement<'_>) {
        match statement {
            Statement::Key(key, value) => {
                self.entries.insert(key.to_vec(), value.map(<[u8]>::to_vec));
            }
            Statement::Made(index) => self.made = Some(index.to_owned()),
            Statement::Dropped => {
                *self = MapDelta {
                    dropped: true,
                    ..MapDelta::default()
                };
            }
        }
    }
}

/// The last statement of each key between two positions, by maps.
pub(crate) fn last_statements<D: Disk>(
    log: &Log<D>,
    from: Lsn,
    until: Lsn,
) -> Result<BTreeMap<String, MapDelta>, FilesError> {
    let mut deltas = BTreeMap::<String, MapDelta>::new();
    let mut scan = log.scan(from..until)?;
    while let Some(record) = scan.next()? {
        for change in record.changes {
            let (map, statement) = match change {
                Change::Put { map, key, value } => (map, Statement::Key(key, Some(value))),
                Change::Remove { map, key } => (map, Statement::Key(key, None)),
                Change::MapMade { map, index, .. } => (map, Statement::Made(index)),
                Change::MapDropped { map } => (map, Statement::Dropped),
                _ => {
                    return Err(FilesError::damaged(
                        "log",
                        "a change that this program does not know",
                    ));
                }
            };
            deltas.entry(map.to_owned()).or_default().take(statement);
        }
    }
    Ok(deltas)
}
