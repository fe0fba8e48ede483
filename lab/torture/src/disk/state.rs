//! A database's content.

use super::trouble::Trouble;
use crate::map::reads::{both_ways, get_agrees, walks_agree};
use crashkit::Random;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use wollemi::{Db, Error, Expiring, Map, Media};

/// The name of the map with expiring entries.
pub const EXPIRING: &str = "lives";

/// The entries of a map, as a reader sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Entries {
    /// The name of its index.
    pub index: String,
    pub held: BTreeMap<Vec<u8>, Arc<[u8]>>,
}

/// The content of all maps.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
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

    /// Reads all maps of a database: walks in both directions, and gets of each key that is present or that histories
    /// draw.
    pub fn of<M: Media>(db: &Db<M>) -> Result<State, Trouble> {
        let mut state = State::default();
        for info in db.maps()? {
            if let Some(map) = db.find_map(&info.name)? {
                state.0.insert(info.name, read(map)?);
            }
        }
        Ok(state)
    }
}

/// A read of a single key.
type Get = Box<dyn Fn(&[u8]) -> Result<Option<Vec<u8>>, Error>>;

/// Reads a map.
fn read(map: Map) -> Result<Entries, Trouble> {
    let (name, index) = (map.name().to_owned(), map.index_kind().name().to_owned());
    let order = map.index().order();
    let (walked, get): (_, Get) = if name == EXPIRING {
        let lives = Expiring::new(map);
        (both_ways(|| lives.iter())?, Box::new(move |key| lives.get(key)))
    } else {
        (both_ways(|| map.iter())?, Box::new(move |key| map.get(key)))
    };
    let wrong = |wrong| Trouble::Wrong(format!("map {name}: {wrong}"));
    walks_agree(order, &walked.0, &walked.1).map_err(wrong)?;
    let held: BTreeMap<Vec<u8>, Arc<[u8]>> = walked
        .0
        .into_iter()
        .map(|(key, value)| (key, value.into()))
        .collect();
    let (drawn, present) = (keys(), held.keys().cloned());
    for key in drawn.filter(|key| !held.contains_key(key)).chain(present) {
        let got = get(&key)?;
        get_agrees(&key, held.get(&key).map(|value| &**value), got.as_deref()).map_err(wrong)?;
    }
    Ok(Entries { index, held })
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

/// The number of keys that histories draw.
const KEYS: u64 = 14;

/// Returns all keys that histories draw: the empty one, short and long ones, and prefixes of others.
pub fn keys() -> impl Iterator<Item = Vec<u8>> {
    (0..KEYS).map(nth_key)
}

fn nth_key(n: u64) -> Vec<u8> {
    match n {
        0 => Vec::new(),
        1 => vec![0],
        2 => vec![0, 0, 1],
        3 => vec![b'l'; 300],
        n => format!("key {n}").into_bytes(),
    }
}

/// Draws a key.
pub fn key(random: &mut Random) -> Vec<u8> {
    nth_key(random.below(KEYS))
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
