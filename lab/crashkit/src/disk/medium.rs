//! The disk's content: its durable part, and the changes that may be durable.

use crate::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

/// Bytes that become durable together.
const SECTOR: usize = 512;

/// An event on a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskEvent {
    /// A file is created.
    Create {
        /// Its name.
        name: String,
        /// Its identity from now on, whatever its name.
        inode: u64,
    },
    /// A file gets another name, replacing the file that had it.
    Rename {
        /// Its name.
        from: String,
        /// Its new name.
        to: String,
    },
    /// A file loses its name.
    Remove {
        /// Its name.
        name: String,
    },
    /// Bytes are written to a file, stored through a mapping of it, or allocated as zeros.
    Write {
        /// The file.
        inode: u64,
        /// The offset of the first.
        at: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// A sync begins.
    SyncBegins,
    /// A file's sync ends.
    Synced {
        /// The file.
        inode: u64,
        /// The number of the event of its beginning.
        begun: usize,
        /// Whether it has succeeded.
        done: bool,
    },
    /// The directory's sync ends.
    DirSynced {
        /// The number of the event of its beginning.
        begun: usize,
        /// Whether it has succeeded.
        done: bool,
    },
}

impl DiskEvent {
    /// Returns a write of a part of the bytes; other events as they are.
    pub(super) fn part(self, range: Range<usize>) -> DiskEvent {
        match self {
            DiskEvent::Write { inode, at, bytes } => DiskEvent::Write {
                inode,
                at: at + range.start as u64,
                bytes: bytes[range].into(),
            },
            other => other,
        }
    }
}

/// The versions that a part of the disk may have after a power cut.
#[derive(Clone, Debug)]
struct Versions<T> {
    /// The durable one first, the newest last.
    all: Vec<Version<T>>,
}

#[derive(Clone, Debug)]
struct Version<T> {
    value: T,
    /// The number of the event that made it.
    event: usize,
    /// Whether a sync of it has failed: later syncs do not make it durable (K5 of the parent module).
    stuck: bool,
}

impl<T: Clone> Versions<T> {
    fn durable(value: T) -> Versions<T> {
        let first = Version {
            value,
            event: 0,
            stuck: false,
        };
        Versions { all: vec![first] }
    }

    fn newest(&self) -> &T {
        &self.all[self.all.len() - 1].value
    }

    fn add(&mut self, value: T, event: usize) {
        self.all.push(Version {
            value,
            event,
            stuck: false,
        });
    }

    /// Applies a sync that began at `begun`: keeps the versions that it leaves possible.
    fn sync(&mut self, begun: usize, done: bool) {
        if done {
            let reached = |version: &Version<T>| !version.stuck && version.event < begun;
            let floor = self.all.iter().rposition(reached).unwrap_or(0);
            self.all.drain(..floor);
        } else {
            for version in self.all.iter_mut().skip(1) {
                version.stuck = true;
            }
        }
    }

    fn pick(&self, number: usize) -> T {
        self.all[number].value.clone()
    }
}

/// A sector's bytes, and a hash of them.
#[derive(Clone, Debug)]
struct Sector(Arc<([u8; SECTOR], u64)>);

impl Sector {
    fn new(bytes: [u8; SECTOR]) -> Sector {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        Sector(Arc::new((bytes, hasher.finish())))
    }
}

#[derive(Clone, Debug)]
struct File {
    sectors: Vec<Versions<Sector>>,
    len: Versions<u64>,
    /// Sectors with several versions.
    dirty: BTreeSet<usize>,
}

/// A change of names.
#[derive(Clone, Debug)]
struct NameChange {
    gone: Option<String>,
    set: Option<(String, u64)>,
    event: usize,
    stuck: bool,
}

impl NameChange {
    /// Drops the parts that a later, durable change overrides.
    fn yield_to(&mut self, later: &NameChange) {
        let names = |name: &String| {
            let set = later.set.as_ref().map(|(name, _)| name);
            later.gone.as_ref() == Some(name) || set == Some(name)
        };
        self.gone.take_if(|gone| names(gone));
        self.set.take_if(|(set, _)| names(set));
    }

    fn apply(&self, names: &mut BTreeMap<String, u64>) {
        if let Some(gone) = &self.gone {
            names.remove(gone);
        }
        if let Some((name, inode)) = &self.set {
            names.insert(name.clone(), *inode);
        }
    }
}

/// The content of a disk: as processes see it, and as it may be after a power cut.
#[derive(Clone, Debug, Default)]
pub struct Medium {
    files: BTreeMap<u64, File>,
    names: BTreeMap<String, u64>,
    durable_names: BTreeMap<String, u64>,
    name_changes: Vec<NameChange>,
    events: usize,
}

impl Medium {
    /// Creates an empty directory.
    pub fn new() -> Medium {
        Medium::default()
    }

    /// Applies an event and returns its number.
    pub fn apply(&mut self, event: &DiskEvent) -> usize {
        let number = self.events;
        match event {
            DiskEvent::Create { name, inode } => {
                let file = File {
                    sectors: Vec::new(),
                    len: Versions::durable(0),
                    dirty: BTreeSet::new(),
                };
                self.files.insert(*inode, file);
                self.change_names(None, Some((name.clone(), *inode)));
            }
            DiskEvent::Rename { from, to } => {
                let inode = self.names.get(from).copied();
                self.change_names(Some(from.clone()), inode.map(|inode| (to.clone(), inode)));
            }
            DiskEvent::Remove { name } => self.change_names(Some(name.clone()), None),
            DiskEvent::Write { inode, at, bytes } => {
                if let Some(file) = self.files.get_mut(inode) {
                    file.write(*at as usize, bytes, number);
                }
            }
            DiskEvent::SyncBegins => {}
            DiskEvent::Synced { inode, begun, done } => {
                if let Some(file) = self.files.get_mut(inode) {
                    file.sync(*begun, *done);
                }
            }
            DiskEvent::DirSynced { begun, done } => self.sync_names(*begun, *done),
        }
        self.events += 1;
        number
    }

    fn change_names(&mut self, gone: Option<String>, set: Option<(String, u64)>) {
        let change = NameChange {
            gone,
            set,
            event: self.events,
            stuck: false,
        };
        change.apply(&mut self.names);
        self.name_changes.push(change);
    }

    fn sync_names(&mut self, begun: usize, done: bool) {
        if !done {
            self.name_changes
                .iter_mut()
                .for_each(|change| change.stuck = true);
            return;
        }
        let changes = std::mem::take(&mut self.name_changes);
        for change in changes {
            if change.stuck || change.event >= begun {
                self.name_changes.push(change);
            } else {
                self.name_changes
                    .iter_mut()
                    .for_each(|older| older.yield_to(&change));
                change.apply(&mut self.durable_names);
            }
        }
    }

    pub(super) fn new_inode(&self) -> u64 {
        self.files.last_key_value().map_or(1, |(inode, _)| inode + 1)
    }

    pub(super) fn find(&self, name: &str) -> Option<u64> {
        self.names.get(name).copied()
    }

    /// Returns the files' names.
    pub fn names(&self) -> Vec<String> {
        self.names.keys().cloned().collect()
    }

    pub(super) fn len(&self, inode: u64) -> u64 {
        self.files.get(&inode).map_or(0, |file| *file.len.newest())
    }

    pub(super) fn read(&self, inode: u64, at: u64, bytes: &mut [u8]) -> bool {
        let Some(file) = self.files.get(&inode) else {
            return false;
        };
        if at + bytes.len() as u64 > *file.len.newest() {
            return false;
        }
        let mut at = at as usize;
        let mut rest = bytes;
        while !rest.is_empty() {
            let within = at % SECTOR;
            let now = rest.len().min(SECTOR - within);
            let (part, behind) = rest.split_at_mut(now);
            part.copy_from_slice(&file.sectors[at / SECTOR].newest().0.0[within..within + now]);
            at += now;
            rest = behind;
        }
        true
    }

    /// Returns a file's bytes, as a process reads them.
    pub fn contents(&self, name: &str) -> Option<Vec<u8>> {
        let inode = self.find(name)?;
        let mut bytes = vec![0; self.len(inode) as usize];
        self.read(inode, 0, &mut bytes).then_some(bytes)
    }

    /// Creates a durable file, replacing one of the same name. Undecided changes of names stay undecided, and may still
    /// affect it.
    pub fn put(&mut self, name: &str, bytes: &[u8]) {
        let inode = self.new_inode();
        let mut file = File {
            sectors: Vec::new(),
            len: Versions::durable(0),
            dirty: BTreeSet::new(),
        };
        file.write(0, bytes, 0);
        file.sync(usize::MAX, true);
        self.files.insert(inode, file);
        self.names.insert(name.into(), inode);
        self.durable_names.insert(name.into(), inode);
    }

    /// Removes a file, durably. An undecided change of names may still bring it back.
    pub fn remove(&mut self, name: &str) {
        self.names.remove(name);
        self.durable_names.remove(name);
    }

    /// Returns the number of possible versions of each undecided part: names, lengths, sectors.
    pub fn choices(&self) -> Vec<usize> {
        let names = self.name_changes.iter().map(|_| 2);
        let lens = self
            .files
            .values()
            .map(|file| file.len.all.len())
            .filter(|&ways| ways > 1);
        let sectors = self
            .files
            .values()
            .flat_map(|file| file.dirty.iter().map(|&n| file.sectors[n].all.len()));
        names.chain(lens).chain(sectors).collect()
    }

    /// Returns the image after a power cut with these choices: 0 is the durable version, the last the newest.
    pub fn image(&self, picks: &[usize]) -> Medium {
        let mut picks = picks.iter().copied();
        let mut next = || picks.next().unwrap_or(0);
        let mut names = self.durable_names.clone();
        for change in &self.name_changes {
            if next() == 1 {
                change.apply(&mut names);
            }
        }
        let mut lens = BTreeMap::new();
        for (inode, file) in &self.files {
            let pick = if file.len.all.len() > 1 { next() } else { 0 };
            lens.insert(*inode, file.len.pick(pick));
        }
        let mut files = BTreeMap::new();
        for (inode, file) in &self.files {
            let mut image = file.clone();
            for &sector in &file.dirty {
                image.sectors[sector] = Versions::durable(file.sectors[sector].pick(next()));
            }
            image.dirty.clear();
            image.set_len(lens[inode]);
            if names.values().any(|named| named == inode) {
                files.insert(*inode, image);
            }
        }
        Medium {
            files,
            durable_names: names.clone(),
            names,
            name_changes: Vec::new(),
            events: 0,
        }
    }

    /// Returns what a process leaves that is killed before `next`: everything that it has done, and if `next` is a
    /// write, perhaps a part of it. A later power cut may still lose it.
    pub fn killed(&self, next: Option<&DiskEvent>, random: &mut Random) -> Medium {
        let mut left = self.clone();
        if let Some(DiskEvent::Write { bytes, .. }) = next
            && let Some(write) = next
        {
            let (a, b) = (
                random.below(bytes.len() as u64 + 1),
                random.below(bytes.len() as u64 + 1),
            );
            left.apply(&write.clone().part(a.min(b) as usize..a.max(b) as usize));
        }
        left.rebase();
        left
    }

    /// Restarts the numbering of events at 1. All undecided changes get the number 0, so that any later sync covers
    /// them.
    fn rebase(&mut self) {
        self.events = 0;
        for file in self.files.values_mut() {
            file.len.all.iter_mut().for_each(|version| version.event = 0);
            for &sector in &file.dirty {
                file.sectors[sector]
                    .all
                    .iter_mut()
                    .for_each(|version| version.event = 0);
            }
        }
        self.name_changes.iter_mut().for_each(|change| change.event = 0);
        self.events = 1;
    }

    /// Returns a hash of the content that processes see.
    pub fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for (name, inode) in &self.names {
            name.hash(&mut hasher);
            let Some(file) = self.files.get(inode) else {
                continue;
            };
            file.len.newest().hash(&mut hasher);
            for sector in &file.sectors {
                sector.newest().0.1.hash(&mut hasher);
            }
        }
        hasher.finish()
    }
}

impl File {
    fn write(&mut self, at: usize, bytes: &[u8], event: usize) {
        let end = at + bytes.len();
        while self.sectors.len() * SECTOR < end {
            self.sectors.push(Versions::durable(Sector::new([0; SECTOR])));
        }
        let stuck = self.len.all.last().is_some_and(|version| version.stuck);
        if end as u64 > *self.len.newest() || (stuck && end as u64 == *self.len.newest()) {
            self.len.add(end as u64, event);
        }
        let mut done = 0;
        while done < bytes.len() {
            let (number, within) = ((at + done) / SECTOR, (at + done) % SECTOR);
            let now = (bytes.len() - done).min(SECTOR - within);
            self.write_sector(number, within, &bytes[done..done + now], event);
            done += now;
        }
    }

    fn write_sector(&mut self, number: usize, within: usize, bytes: &[u8], event: usize) {
        let versions = &mut self.sectors[number];
        let mut sector = versions.newest().0.0;
        let stuck = versions.all.last().is_some_and(|version| version.stuck);
        if sector[within..within + bytes.len()] == *bytes && !stuck {
            return;
        }
        sector[within..within + bytes.len()].copy_from_slice(bytes);
        versions.add(Sector::new(sector), event);
        self.dirty.insert(number);
    }

    fn sync(&mut self, begun: usize, done: bool) {
        self.len.sync(begun, done);
        for &sector in &self.dirty {
            self.sectors[sector].sync(begun, done);
        }
        let sectors = &self.sectors;
        self.dirty.retain(|&sector| sectors[sector].all.len() > 1);
    }

    /// Truncates the file to a length, durably.
    fn set_len(&mut self, len: u64) {
        self.len = Versions::durable(len);
        self.sectors.truncate((len as usize).div_ceil(SECTOR));
        let within = len as usize % SECTOR;
        if let Some(last) = self.sectors.last_mut()
            && within > 0
        {
            let mut bytes = last.newest().0.0;
            bytes[within..].fill(0);
            *last = Versions::durable(Sector::new(bytes));
        }
    }
}
