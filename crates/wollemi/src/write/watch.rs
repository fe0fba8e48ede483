//! Watches: a stream of the changes of all keys with a prefix.
//!
//! A writer sends the event when its change is durable (at level `disk` the receiver waits for that), and before it
//! releases the key's [stripe](super::stripes), so events of one key arrive in the order of its writes. Events of
//! [eventual](crate::Durability::Eventual) writes are delivered at once: waiting would cost a sync per event.
//!
//! I1 A queue holds at most its watch's capacity: no writer waits for a watcher that does not read.

use crate::write::journal::Journal;
use index::{Action, Edit};
use log::Lsn;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

/// A change of a key. Keys and values are bytes, or the types of a typed map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<K = Vec<u8>, V = Vec<u8>> {
    /// The key has a new value; `None`: it was removed.
    Changed {
        /// The key.
        key: K,
        /// The new value.
        value: Option<V>,
    },
    /// The watch did not keep up: this many events are lost at this place in the stream. Later events follow.
    Missed(u64),
}

/// A stream of the changes of the keys with a prefix, from when the watch began.
///
/// Each event is sent when its change is durable. That of an [eventual](crate::Durability::Eventual) write is sent at
/// once, as a reader may see it: a loss of power may take the change back. Events of one key arrive in the order of its
/// changes; those of different keys too, if one change was acknowledged before the other began. A batch is sent as one
/// event per key. A watch buffers up to its capacity of undelivered events; beyond that it drops the oldest and yields
/// [`Event::Missed`].
///
/// As an iterator it waits for the next event, and ends when the map, or the last handle to its database, is dropped. A
/// dropped map's keys are no events.
///
/// ```
/// use wollemi::Event;
///
/// let db = wollemi::Db::anonymous()?;
/// let map = db.map("prices")?;
/// let watch = map.watch("ap", 100)?;
/// map.upsert("apple", "0.30")?;
/// map.upsert("pear", "0.20")?;
/// map.remove("apple")?;
/// drop((map, db));
///
/// let events: Vec<_> = watch.collect();
/// let key = b"apple".to_vec();
/// assert_eq!(events[0], Event::Changed { key: key.clone(), value: Some(b"0.30".to_vec()) });
/// assert_eq!(events[1], Event::Changed { key, value: None });
/// assert_eq!(events.len(), 2);
/// # Ok::<(), wollemi::Error>(())
/// ```
#[derive(Debug)]
pub struct Watch {
    queue: Arc<Queue>,
    watches: Weak<Watches>,
}

impl Watch {
    pub(crate) fn new(watches: &Arc<Watches>, map: &str, prefix: &[u8], capacity: usize) -> Watch {
        let queue = Arc::new(Queue {
            map: map.into(),
            prefix: prefix.into(),
            capacity: capacity.max(1),
            waiting: Mutex::default(),
            more: Condvar::new(),
        });
        watches.add(queue.clone());
        Watch {
            queue,
            watches: Arc::downgrade(watches),
        }
    }

    /// Returns the next event, if there is one. At level `disk` it waits until the event's change is durable, unless
    /// the write was [eventual](crate::Durability::Eventual).
    pub fn try_next(&mut self) -> Option<Event> {
        let event = self.queue.lock().take();
        event.map(QueuedEvent::settled)
    }

    /// Waits at most this time for the next event, and then, as [`try_next`](Watch::try_next) does, until its change is
    /// durable. Returns `None` if there was no event.
    pub fn next_within(&mut self, patience: Duration) -> Option<Event> {
        let until = Instant::now().checked_add(patience);
        let mut waiting = self.queue.lock();
        loop {
            let event = waiting.take();
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if event.is_some() || waiting.ended || left == Some(Duration::ZERO) {
                drop(waiting);
                return event.map(QueuedEvent::settled);
            }
            let more = &self.queue.more;
            waiting = more
                .wait_timeout(waiting, left.unwrap_or(patience))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

impl Iterator for Watch {
    type Item = Event;
    fn next(&mut self) -> Option<Event> {
        let waiting = self.queue.lock();
        let waited = self
            .queue
            .more
            .wait_while(waiting, |waiting| !waiting.ended && waiting.is_empty());
        let event = waited.unwrap_or_else(PoisonError::into_inner).take();
        event.map(QueuedEvent::settled)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(watches) = self.watches.upgrade() {
            watches.remove(&self.queue);
        }
    }
}

/// The undelivered events of a watch.
#[derive(Debug)]
struct Queue {
    map: Box<str>,
    prefix: Box<[u8]>,
    capacity: usize,
    waiting: Mutex<Waiting>,
    more: Condvar,
}

/// An event, and the position that must be durable before it is delivered.
#[derive(Debug)]
struct QueuedEvent {
    event: Event,
    end: Option<(Arc<Journal>, Lsn)>,
}

impl QueuedEvent {
    /// Returns the event once its change is durable. If that cannot be known, it counts as missed.
    fn settled(self) -> Event {
        match self.end {
            Some((journal, end)) if journal.log().wait_durable(end).is_err() => Event::Missed(1),
            _ => self.event,
        }
    }
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<QueuedEvent>,
    missed: u64,
    /// No more events will come.
    ended: bool,
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.events.is_empty() && self.missed == 0
    }

    fn take(&mut self) -> Option<QueuedEvent> {
        match std::mem::take(&mut self.missed) {
            0 => self.events.pop_front(),
            missed => Some(QueuedEvent {
                event: Event::Missed(missed),
                end: None,
            }),
        }
    }
}

impl Queue {
    // A panicking holder leaves the queue consistent: each change is one push or pop.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, event: QueuedEvent) {
        let mut waiting = self.lock();
        if waiting.events.len() == self.capacity {
            waiting.events.pop_front();
            waiting.missed += 1;
        }
        waiting.events.push_back(event);
        drop(waiting);
        self.more.notify_one();
    }

    /// Lets the watch end after the events that it has.
    fn end(&self) {
        self.lock().ended = true;
        self.more.notify_all();
    }
}

/// All watches of a database.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    any: AtomicBool,
    all: RwLock<Vec<Arc<Queue>>>,
}

impl Watches {
    fn add(&self, queue: Arc<Queue>) {
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        all.push(queue);
        self.any.store(true, Relaxed);
    }

    fn remove(&self, queue: &Arc<Queue>) {
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|other| !Arc::ptr_eq(other, queue));
        self.any.store(!all.is_empty(), Relaxed);
    }

    /// Ends the watches of a map that is dropped. The caller has closed the gate.
    pub fn end_of_map(&self, map: &str) {
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|queue| {
            let is_of_another = *queue.map != *map;
            if !is_of_another {
                queue.end();
            }
            is_of_another
        });
        self.any.store(!all.is_empty(), Relaxed);
    }

    /// Returns whether any watch exists. A writer asks after passing the gate, which is closed when a watch begins.
    #[inline]
    pub fn are_there(&self) -> bool {
        self.any.load(Relaxed)
    }

    /// Sends what an edit has done. In a database with a log: also the log, and the position to be durable first.
    pub fn publish(
        &self,
        (map, key): (&str, &[u8]),
        action: Action,
        edit: &dyn Edit,
        end: Option<(&Arc<Journal>, Lsn)>,
    ) {
        for queue in &*self.all.read().unwrap_or_else(PoisonError::into_inner) {
            if *queue.map == *map && key.starts_with(&queue.prefix) {
                queue.push(QueuedEvent {
                    event: Event::Changed {
                        key: key.to_vec(),
                        value: (action == Action::Put).then(|| edit.value().to_vec()),
                    },
                    end: end.map(|(journal, end)| (journal.clone(), end)),
                });
            }
        }
    }
}

impl Drop for Watches {
    fn drop(&mut self) {
        for queue in self.all.get_mut().unwrap_or_else(PoisonError::into_inner) {
            queue.end();
        }
    }
}
