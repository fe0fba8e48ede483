//! A line of memory: the contents that it may have after a crash.

use super::{Content, Mode};
use crate::log::StoreKind;

/// A store that a crash may lose.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) word: u8,
    pub(super) kind: StoreKind,
    pub(super) value: u64,
    /// Its place in the log.
    pub(super) event: u32,
    pub(super) thread: u32,
}

/// A line, with the stores to it that a crash may lose.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    /// Number of stores that are guaranteed, and so removed from `stores`.
    pub(super) gone: u64,
    pub(super) stores: Vec<Pending>,
    pub(super) past_cache: Vec<Pending>,
    /// Bits of the words that are valid in their generation only, and of the locks among them.
    pub(super) volatile: u8,
    pub(super) locks: u8,
    /// The last values of these words, and the values before.
    pub(super) last: Content,
    pub(super) before: Content,
}

/// One of the contents that a line may have after a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) content: Content,
    /// The newest store in it, as its place in the log plus one; 0: only guaranteed stores.
    pub(crate) newest: u32,
}

/// What volatile words may hold after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Volatile {
    /// The value before the last store.
    Before,
    /// The last value stored.
    Last,
    Zero,
    Garbage,
}

impl Volatile {
    pub(crate) fn of(number: u64) -> Volatile {
        [
            Volatile::Before,
            Volatile::Last,
            Volatile::Zero,
            Volatile::Garbage,
        ][(number % 4) as usize]
    }
}

/// Maximum number of combinations of the words' prefixes of one line that are tried one by one (model `word`).
const MAX_VERSIONS: usize = 64;

/// Maximum number of non-temporal stores to one line that are combined freely.
const MAX_FREE: usize = 4;

impl Line {
    pub(super) fn is_settled(&self) -> bool {
        self.stores.is_empty() && self.past_cache.is_empty() && self.volatile == 0
    }

    /// Accounts for a non-temporal store that is guaranteed now: earlier stores to its word can no longer come after
    /// it.
    pub(super) fn overtake(&mut self, durable: Pending) {
        let overtaken = |store: &Pending| store.word == durable.word && store.event < durable.event;
        self.past_cache.retain(|store| !overtaken(store));
        // Write-backs count the line's stores, so these stay in place and change nothing.
        for store in self.stores.iter_mut().filter(|store| overtaken(store)) {
            store.value = durable.value;
            store.kind = StoreKind::Unpersisted;
        }
    }

    /// Returns the line's content with all stores, as threads see it.
    pub(crate) fn visible(&self, mut content: Content) -> Content {
        let mut all: Vec<&Pending> = self.stores.iter().chain(&self.past_cache).collect();
        all.sort_by_key(|store| store.event);
        for store in all {
            content[usize::from(store.word)] = store.value;
        }
        for (word, value) in content.iter_mut().enumerate() {
            if self.volatile >> word & 1 != 0 {
                *value = self.last[word];
            }
        }
        content
    }

    /// Returns the stores that a crash may lose: word of the line, value, place in the log, whether recovery may depend
    /// on it.
    pub(crate) fn pending(&self) -> impl Iterator<Item = (u32, u64, u32, bool)> + '_ {
        let all = self.stores.iter().chain(&self.past_cache);
        all.map(|store| {
            (
                u32::from(store.word),
                store.value,
                store.event,
                store.kind.matters(),
            )
        })
    }

    /// Returns the bits that recovery may ignore: those of volatile words, and those that only unpersisted stores have
    /// changed.
    fn ignored(&self, base: Content) -> Content {
        let mut ignored = [0; 8];
        let mut content = base;
        for store in &self.stores {
            let word = usize::from(store.word);
            if store.kind == StoreKind::Unpersisted {
                ignored[word] |= content[word] ^ store.value;
            }
            content[word] = store.value;
        }
        for (word, ignored) in ignored.iter_mut().enumerate() {
            if self.volatile >> word & 1 != 0 {
                *ignored = !0;
            }
        }
        ignored
    }

    /// Returns the contents that the line may have: the base first, the visible one last, unless it is that of an
    /// earlier version. Contents that differ only in bits that recovery ignores count once; `coin` chooses which.
    pub(crate) fn versions(&self, base: Content, mode: Mode, coin: u64) -> Vec<Version> {
        if self.stores.is_empty() && self.past_cache.is_empty() {
            return vec![Version {
                content: base,
                newest: 0,
            }];
        }
        let mut versions = Versions {
            base,
            ignored: self.ignored(base),
            coin,
            list: Vec::with_capacity(4),
        };
        let past = self.past_cache.len();
        match mode {
            Mode::Process => {}
            Mode::Power => {
                let masks = masks(past);
                for taken in 0..=self.stores.len() {
                    for &mask in &masks {
                        self.add(&mut versions, &|i| i < taken, mask);
                    }
                }
            }
            Mode::Word => self.add_by_words(&mut versions),
        }
        self.add(&mut versions, &|_| true, !0);
        versions.list
    }

    /// Adds any prefix of each word's stores: all combinations if these are no more than the maximum, otherwise the
    /// extremes and the prefixes of the line's stores.
    fn add_by_words(&self, versions: &mut Versions) {
        let mut counts = [0; 8];
        let nth: Vec<(usize, usize)> = self
            .stores
            .iter()
            .map(|store| {
                let count = &mut counts[usize::from(store.word)];
                *count += 1;
                (usize::from(store.word), *count)
            })
            .collect();
        let past = self.past_cache.len();
        let combinations = counts
            .iter()
            .fold(1_usize, |all, count| all.saturating_mul(count + 1));
        let mut add = |taken: [usize; 8], mask| {
            self.add(versions, &|i| nth[i].1 <= taken[nth[i].0], mask);
        };
        if combinations <= MAX_VERSIONS {
            for number in 0..combinations {
                let mut rest = number;
                let taken = counts.map(|count| {
                    let taken = rest % (count + 1);
                    rest /= count + 1;
                    taken
                });
                for mask in masks(past) {
                    add(taken, mask);
                }
            }
            return;
        }
        add([0; 8], 0);
        for word in 0..8 {
            let mut one = [0; 8];
            one[word] = counts[word];
            let mut others = counts;
            others[word] = 0;
            for mask in masks(past) {
                add(one, mask);
                add(others, mask);
            }
        }
        for prefix in 0..=self.stores.len() {
            self.add(versions, &|i| i < prefix, 0);
        }
    }

    /// Adds the base with those of the ordered stores that `taken` names and those past the cache that are in `mask`.
    fn add(&self, versions: &mut Versions, taken: &dyn Fn(usize) -> bool, mask: u64) {
        // Stores beyond the bits of the mask are omitted.
        let masked = |bit: u32| mask.checked_shr(bit).is_some_and(|rest| rest & 1 != 0);
        let mut version = Version {
            content: versions.base,
            newest: 0,
        };
        let mut take = |store: &Pending| {
            let word = &mut version.content[usize::from(store.word)];
            if *word != store.value {
                *word = store.value;
                if store.kind.matters() {
                    version.newest = version.newest.max(store.event + 1);
                }
            }
        };
        let mut past = (0..).zip(&self.past_cache).peekable();
        for (i, store) in self.stores.iter().enumerate() {
            while let Some((j, past)) = past.next_if(|(_, past)| past.event < store.event) {
                if masked(j) {
                    take(past);
                }
            }
            if taken(i) {
                take(store);
            }
        }
        for (j, past) in past {
            if masked(j) {
                take(past);
            }
        }
        versions.add(version);
    }

    /// Overwrites the volatile words of a version as the policy says.
    pub(crate) fn spoil(&self, content: &mut Content, policy: Volatile, mut random: impl FnMut() -> u64) {
        if self.volatile == 0 {
            return;
        }
        for (word, value) in content
            .iter_mut()
            .enumerate()
            .filter(|(word, _)| self.volatile >> word & 1 != 0)
        {
            *value = match policy {
                Volatile::Before => self.before[word],
                Volatile::Last => self.last[word],
                Volatile::Zero => 0,
                // A generation is durable before a lock holds it, so a lock never holds a future one.
                Volatile::Garbage if self.locks >> word & 1 != 0 => {
                    let generation = if random().is_multiple_of(2) {
                        self.last[word] >> 32
                    } else {
                        0
                    };
                    generation << 32 | random() & 0xffff_ffff
                }
                Volatile::Garbage => random(),
            };
        }
    }
}

/// Versions being collected.
struct Versions {
    base: Content,
    ignored: Content,
    coin: u64,
    list: Vec<Version>,
}

impl Versions {
    fn add(&mut self, version: Version) {
        let same = |other: &&mut Version| {
            let pairs = other.content.iter().zip(&version.content);
            pairs
                .zip(&self.ignored)
                .all(|((a, b), ignored)| (a ^ b) & !ignored == 0)
        };
        match self.list.iter_mut().rev().find(same) {
            Some(other) => {
                self.coin = self.coin.rotate_left(1);
                if self.coin & 1 != 0 {
                    other.content = version.content;
                }
            }
            None => self.list.push(version),
        }
    }
}

/// Returns the subsets to try of `count` non-temporal stores: all subsets of a few; of many none, each alone, all but
/// one, all.
fn masks(count: usize) -> Vec<u64> {
    let count = count.min(63);
    let all = (1 << count) - 1;
    if count <= MAX_FREE {
        return (0..=all).collect();
    }
    let each = || (0..count).map(|i| 1_u64 << i);
    let mut masks = vec![0];
    masks.extend(each());
    masks.extend(each().map(|one| all & !one));
    masks.push(all);
    masks
}
