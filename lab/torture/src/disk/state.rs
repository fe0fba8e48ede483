//! A database's content.

use crashkit::Random;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::sync::{Arc, OnceLock};
use wollemi::{Db, Error, Expiring, Media};

/// The name of the map with expiring entries.
pub const EXPIRING: &str = "lives";

/// The entries of a map, as a reader sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    /// The name of its index.
    pub index: String,
    pub held: BTreeMap<Vec<u8>, Arc<[u8]>>,
}

/// The content of all maps.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct State(pub BTreeMap<String, Entries>);

impl State {
    pub fn get(&self, map: &str, key: &[u8]) -> Option<&Arc<[u8]>> {
        self.0.get(map)?.held.get(key)
    }

    /// Returns the state after a change.
    #[must_use]
    pub fn with(&self, map: &str, key: &[u8], value: Option<&Arc<[u8]>>) -> State {
        let mut state = self.clone();
        state.set(map, key, value);
        state
    }

    pub fn set(&mut self, map: &str, key: &[u8], value: Option<&Arc<[u8]>>) {
        let held = &mut self.0.entry(map.to_owned()).or_default().held;
        match value {
            Some(value) => held.insert(key.to_vec(), value.clone()),
            None => held.remove(key),
        };
    }

    /// Reads all maps of a database.
    pub fn of<M: Media>(db: &Db<M>) -> Result<State, Error> {
        let mut state = State::default();
        for info in db.maps()? {
            let Some(map) = db.find_map(&info.name)? else {
                continue;
            };
            let mut entries = Entries {
                index: map.index_kind().name().to_owned(),
                held: BTreeMap::new(),
            };
            if info.name == EXPIRING {
                for entry in Expiring::new(map).range(..) {
                    let (key, value) = entry?;
                    entries.held.insert(key, value.into());
                }
            } else {
                let mut show = |key: &[u8], value: &[u8]| {
                    entries.held.insert(key.to_vec(), Arc::from(value));
                };
                map.walk(Bound::Unbounded, usize::MAX, &mut show)?;
            }
            state.0.insert(info.name, entries);
        }
        Ok(state)
    }
}

/// Shows abbreviated keys and values.
impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, map) in &self.0 {
            write!(f, "{name} ({}):", map.index)?;
            for (key, value) in &map.held {
                write!(f, " {}=", Short(key))?;
                match value.first_chunk::<8>() {
                    Some(number) => write!(f, "#{}", u64::from_le_bytes(*number))?,
                    None => write!(f, "{}", Short(value))?,
                }
                write!(f, "[{}]", value.len())?;
            }
            f.write_str("; ")?;
        }
        Ok(())
    }
}

struct Short<'b>(&'b [u8]);

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            long if long.len() > 8 => write!(f, "{}..", long[..4].escape_ascii()),
            bytes => write!(f, "{}", bytes.escape_ascii()),
        }
    }
}

/// Draws one of a few keys: the empty one, short and long ones, and prefixes of others.
pub fn key(random: &mut Random) -> Vec<u8> {
    match random.below(14) {
        0 => Vec::new(),
        1 => vec![0],
        2 => vec![0, 0, 1],
        3 => vec![b'l'; 300],
        n => format!("key {n}").into_bytes(),
    }
}

/// Draws a value that begins with its number, if it is long enough for that.
pub fn value(number: u64, random: &mut Random) -> Arc<[u8]> {
    static NOISE: OnceLock<Vec<u8>> = OnceLock::new();
    let noise = NOISE.get_or_init(|| {
        let mut random = Random(2);
        (0..4000).map(|_| random.next() as u8).collect()
    });
    let max = *random.pick(&[9, 9, 20, 20, 100, 400, 400, 1500, 3500]);
    let len = random.below(max) as usize;
    let from = number as usize % 200;
    let bytes = [&number.to_le_bytes()[..], &noise[from..]].concat();
    bytes[..len].into()
}
