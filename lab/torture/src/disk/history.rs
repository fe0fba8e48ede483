//! A process from its opening to its end: the events of its disk, the content of its pool, and its answers.

use super::notes::{Allowed, Bounds, Notes};
use super::pool::{ID, draw_options, pool};
use super::process::{Durable, MAPS, Process, lock};
use super::state::State;
use super::trouble::Trouble;
use crashkit::Random;
use crashkit::disk::{CrashDisk, DiskEvent, DiskFault, FailedCall, Medium, Site};
use crashkit::killed::{Image, told};
use pmem::Memory;
use pmem::pool::LastShutdown;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use wollemi::Durability;

/// A crash state.
#[derive(Clone)]
pub struct CrashState {
    pub medium: Medium,
    /// The pool. A loss of power destroys it, unless it was closed cleanly.
    pub pool: Option<Image>,
}

/// The parameters of a history.
#[derive(Clone, Copy)]
pub struct Draw {
    pub steps: usize,
    /// The greatest number that a value has; 0: there is no value.
    pub last_value: u64,
    /// The failing call of the disk, if one fails.
    pub fault: Option<DiskFault>,
    /// A sync to omit.
    pub skip: Option<Site>,
}

/// A run of a process.
pub struct History {
    /// The disk's content at the beginning.
    pub base: Medium,
    pub events: Vec<DiskEvent>,
    /// The states that a crash may leave before each event, and after the last.
    pub bounds: Vec<Bounds>,
    /// All states that the run may have led through.
    pub notes: Notes,
    /// Kills between two stores, and amid some of the events; and one at the end, if the pool was not closed cleanly.
    pub kills: Vec<Kill>,
    /// The pool after a clean close.
    pub closed: Option<Image>,
    /// The greatest number that a value has.
    pub last_value: u64,
    pub sync_sites: Vec<Site>,
    /// The calls of the disk that failed.
    pub failed: Vec<FailedCall>,
    pub reached: BTreeMap<&'static str, u64>,
}

/// A moment at which the process is killed.
pub struct Kill {
    /// The number of events before it.
    pub events: usize,
    /// Whether the next event had begun.
    pub amid: bool,
    /// `None`: the pool that replaces the lost one does not exist yet.
    pub pool: Option<Image>,
    pub bounds: Bounds,
}

/// Observes the process's stores and events.
struct Watcher {
    disk: CrashDisk,
    notes: Arc<Mutex<Notes>>,
    seen: Mutex<Seen>,
}

struct Seen {
    memory: Option<Memory>,
    /// Whether the opening is still making the pool that replaces the lost one.
    is_making: bool,
    random: Random,
    bounds: Vec<Bounds>,
    kills: Vec<Kill>,
    /// Stores until the next kill.
    left: u64,
}

/// A kill comes after every `STORES_PER_KILL` stores on average.
const STORES_PER_KILL: u64 = 600;

/// After a call has failed, the disk has room again from one in this many steps on.
const ROOM_AGAIN: u64 = 8;

/// A kill comes amid one in this many events on average.
const EVENTS_PER_KILL: u64 = 12;

impl Watcher {
    fn before_store(&self) {
        let mut seen = lock(&self.seen);
        seen.left -= 1;
        if seen.left == 0 {
            seen.left = 1 + seen.random.below(2 * STORES_PER_KILL);
            let bounds = lock(&self.notes).now;
            seen.kill(self.disk.now(), false, bounds);
        }
    }

    fn before_event(&self) {
        let (mut seen, bounds) = (lock(&self.seen), lock(&self.notes).now);
        seen.bounds.push(bounds);
        if seen.random.below(EVENTS_PER_KILL) == 0 {
            let events = seen.bounds.len() - 1;
            seen.kill(events, true, bounds);
        }
    }
}

impl Seen {
    fn kill(&mut self, events: usize, amid: bool, bounds: Bounds) {
        let pool = match (&self.memory, self.is_making) {
            (Some(memory), false) => Some(Image::of(memory)),
            (None, false) => return,
            (_, true) => None,
        };
        self.kills.push(Kill {
            events,
            amid,
            pool,
            bounds,
        });
    }
}

/// Executes a history. Returns only errors that no injected fault explains.
pub fn run(
    left: &CrashState,
    allowed: &Allowed,
    draw: Draw,
    random: &mut Random,
) -> Result<History, Trouble> {
    let disk = CrashDisk::new(left.medium.clone());
    disk.skip(draw.skip);
    disk.inject(draw.fault);
    let notes = Notes {
        states: allowed.states.clone(),
        now: Bounds {
            durable: 0,
            done: if left.pool.is_some() { allowed.kept } else { 0 },
            max: allowed.states.len() - 1,
        },
    };
    let is_making = left.pool.is_none() && left.medium.names().iter().any(|name| name == "manifest");
    let watcher = Arc::new(Watcher {
        disk: disk.clone(),
        notes: Arc::new(Mutex::new(notes)),
        seen: Mutex::new(Seen {
            memory: None,
            is_making,
            random: Random(random.next()),
            bounds: Vec::new(),
            kills: Vec::new(),
            left: 1 + random.below(2 * STORES_PER_KILL),
        }),
    });
    let watching = watcher.clone();
    disk.before_events(move || watching.before_event());
    let watching = watcher.clone();
    let media = told(move || watching.before_store());
    let (pool, memory) = pool(left.pool.as_ref(), ID, media)?;
    lock(&watcher.seen).memory = Some(memory.clone());
    let opened = draw_options(random).open(pool, Arc::new(disk.clone()));
    lock(&watcher.seen).is_making = false;
    let mut history = History {
        base: left.medium.clone(),
        events: Vec::new(),
        bounds: Vec::new(),
        notes: Notes::default(),
        kills: Vec::new(),
        closed: None,
        last_value: draw.last_value,
        sync_sites: Vec::new(),
        failed: Vec::new(),
        reached: BTreeMap::new(),
    };
    let (mut left_unclosed, has_failed) = (None, opened.is_err());
    match opened {
        Ok(db) => {
            let process = Process {
                db,
                disk: disk.clone(),
                memory: memory.clone(),
                maps: Vec::new(),
                notes: watcher.notes.clone(),
                beside: Arc::default(),
                touched: BTreeSet::new(),
                last_value: draw.last_value,
                reached: BTreeMap::new(),
            };
            let allowed = (allowed, left.pool.is_some());
            (history.last_value, history.reached) = use_it(process, allowed, draw.steps, random)?;
        }
        Err(_) if disk.injected() > 0 => {}
        Err(error) => return Err(error.into()),
    }
    if !(has_failed && is_making) {
        let image = Image::of(&memory);
        let after = super::pool::pool(Some(&image), ID, told(|| ()))?
            .0
            .last_shutdown();
        match after {
            LastShutdown::Clean => history.closed = Some(image),
            _ => left_unclosed = Some(image),
        }
    }
    history.events = disk.events();
    history.sync_sites = disk.sync_sites();
    history.failed = disk.failed(0);
    let mut seen = lock(&watcher.seen);
    seen.memory = None;
    history.bounds = std::mem::take(&mut seen.bounds);
    history.kills = std::mem::take(&mut seen.kills);
    history.notes = std::mem::take(&mut *lock(&watcher.notes));
    history.bounds.push(history.notes.now);
    history.kills.extend(left_unclosed.map(|image| Kill {
        events: history.events.len(),
        amid: false,
        pool: Some(image),
        bounds: history.notes.now,
    }));
    Ok(history)
}

/// The greatest number that a value has, and the named events with their counts.
type Used = (u64, BTreeMap<&'static str, u64>);

/// Uses an opened database, and closes it.
fn use_it(
    mut process: Process,
    (allowed, is_kept): (&Allowed, bool),
    steps: usize,
    random: &mut Random,
) -> Result<Used, Trouble> {
    let found = State::of(&process.db)?;
    allowed.check(&found, is_kept)?;
    // Content that was read must not be lost afterwards.
    let reached = process.notes().begin([found]);
    process.notes().end(reached, true);
    go(&mut process, steps, random)?;
    let Process {
        db,
        maps,
        last_value,
        reached,
        ..
    } = process;
    drop((maps, db));
    Ok((last_value, reached))
}

fn go(process: &mut Process, steps: usize, random: &mut Random) -> Result<(), Trouble> {
    if random.below(2) == 0 {
        process.db.recover();
    }
    if random.below(6) == 0 {
        process.db.set_durability(Durability::Eventual);
        process.db.set_durability(Durability::Immediate);
    }
    process.recover_if_short()?;
    for (name, kind) in MAPS {
        let mut states = Vec::new();
        let now = process.now();
        if !now.0.contains_key(name) {
            let mut state = State::clone(&now);
            state.0.entry(name.into()).or_default().index = kind.name().into();
            states.push(state);
        }
        let made = process.apply(states, Durable::OnReturn, |process| {
            process.db.map_with(name, kind)
        })?;
        match made {
            Some(map) => process.maps.push(map),
            None => return Ok(()),
        }
    }
    for _ in 0..steps {
        process.recover_if_short()?;
        process.step(random)?;
        if process.disk.injected() > 0 && random.below(ROOM_AGAIN) == 0 {
            // A full disk has room again; then nothing fails any more.
            process.disk.inject(None);
        }
        if process.disk.injected() > 0 && process.has_failed()? {
            process.reach("logs failed");
            return process.check_failed();
        }
    }
    Ok(())
}
