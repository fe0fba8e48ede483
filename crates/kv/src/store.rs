//! A pool's heap and the indexes in it: what a database is made of, without names held or handles counted.
//!
//! Each map is a root of the heap. The root says which index holds it, and so who opens and who traces it; a kind that
//! this program does not know is refused, never guessed at.

use crate::report::{HeapCheck, MapInfo, Recovery, RecoveryState, Space, Stats};
use crate::{Error, IndexKind, Media};
use heap::{Heap, Root, State, Trace};
use index::Index;
use indexes::WithIndex;
use pmem::{Link, Pool};
use std::sync::Arc;

/// Objects of a dropped map that are retired under one guard.
const RETIRE_BATCH: usize = 256;

pub(crate) struct Store<M: Media> {
    heap: Heap<M>,
}

/// What a map was opened as, and its index.
type Opened = (IndexKind, Arc<dyn Index>);

/// An index as a handle that can be shared.
struct Shared;

impl WithIndex for Shared {
    type Out = Arc<dyn Index>;
    fn with<I: Index + 'static>(self, index: I) -> Arc<dyn Index> {
        Arc::new(index)
    }
}

impl<M: Media> Store<M> {
    /// The store in a pool. Recovery begins in the background, if it is given threads.
    pub fn start(pool: Pool<M>, recovery_threads: usize) -> Result<Store<M>, Error> {
        let store = Store {
            heap: Heap::new(pool)?,
        };
        if recovery_threads > 0 {
            store.recover(recovery_threads)?;
        }
        Ok(store)
    }

    pub fn create(&self, name: &str, kind: IndexKind) -> Result<Arc<dyn Index>, Error> {
        Ok(kind.create(&self.heap, name.as_bytes(), Shared)?)
    }

    /// Opens a map as what it is; as `wanted`, if it can be opened as that.
    pub fn open(&self, name: &str, wanted: Option<IndexKind>) -> Result<Option<Opened>, Error> {
        let Some(root) = self.heap.root(name.as_bytes())? else {
            return Ok(None);
        };
        let found = kind_of(name, &root)?;
        let kind = match wanted {
            Some(wanted) if wanted == found || wanted.holds(&root) => wanted,
            Some(wanted) => return Err(Error::other_index(name, found, wanted)),
            None => found,
        };
        let index = kind.open(&self.heap, name.as_bytes(), Shared)?;
        Ok(index.map(|index| (kind, index)))
    }

    /// Removes a map's root, then gives back what hung from it. Nobody may use the map any more.
    pub fn remove(&self, name: &str) -> Result<bool, Error> {
        let Some((kind, _)) = self.open(name, None)? else {
            return Ok(false);
        };
        let root = self.heap.remove_root(name.as_bytes())?;
        if let Some(root) = root {
            self.retire_all(root.link, &*kind.tracer())?;
        }
        Ok(root.is_some())
    }

    /// Retires everything below a link that nobody else can reach. What a crash or an error leaves over comes back
    /// by the next recovery.
    fn retire_all(&self, link: Link, tracer: &dyn Trace<M>) -> Result<(), Error> {
        let mut links = vec![link];
        while !links.is_empty() {
            let guard = heap::pin();
            for _ in 0..RETIRE_BATCH {
                let Some(link) = links.pop() else { break };
                let Some(offset) = link.offset() else { continue };
                let len = tracer.trace(&self.heap, link, &mut links)?;
                self.heap.retire(&guard, offset, len as usize);
            }
        }
        Ok(())
    }

    /// The maps, by name. A root of another program's making has its name made readable.
    pub fn maps(&self) -> Result<Vec<MapInfo>, Error> {
        let mut maps: Vec<_> = self
            .heap
            .roots()?
            .into_iter()
            .map(|(name, root)| map_info(&name, &root))
            .collect();
        maps.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(maps)
    }

    /// Starts recovery, unless it was started already.
    pub fn recover(&self, threads: usize) -> Result<(), Error> {
        Ok(self.heap.recover(IndexKind::tracers(), threads)?)
    }

    pub fn recovery(&self) -> Recovery {
        let progress = self.heap.recovery();
        Recovery {
            state: match progress.state {
                State::Idle => RecoveryState::Idle,
                State::Running => RecoveryState::Running,
                State::Done => RecoveryState::Done,
                State::Failed(why) => RecoveryState::Failed(why),
            },
            objects: progress.traced,
            pages_swept: progress.pages_swept.into(),
            pages: progress.pages_to_sweep.into(),
            seconds: progress.elapsed.as_secs_f64(),
        }
    }

    pub fn wait_recovered(&self) {
        self.heap.wait_recovered();
    }

    pub fn audit(&self) -> HeapCheck {
        match self.heap.audit(&IndexKind::tracers(), 1) {
            Ok(audit) => HeapCheck {
                reachable: audit.reachable,
                reachable_bytes: audit.reachable_bytes,
                unreachable: audit.leaked(),
                doubly_reachable: audit.doubly_reachable,
                faults: audit.faults,
            },
            Err(error) => HeapCheck::fault(error.to_string()),
        }
    }

    pub fn stats(&self, opened_in: f64) -> Result<Stats, Error> {
        let pool = self.heap.pool();
        let stats = self.heap.stats();
        Ok(Stats {
            path: pool.path().map(Into::into),
            uuid: pool.uuid().to_string(),
            generation: pool.generation(),
            level: pool.level().to_string(),
            last_shutdown: pool.last_shutdown().to_string(),
            crashes: pool.dirty_count().into(),
            page_size: pool.page_size(),
            max_size: pool.max_size(),
            huge_pages: pool.huge_pages(),
            opened_in,
            space: Space {
                reserved: stats.reserved,
                used: stats.used,
                free: stats.free,
                unswept: stats.unswept,
                objects: stats.objects,
            },
            recovery: self.recovery(),
            maps: self.maps()?,
        })
    }
}

/// What holds a map.
fn kind_of(name: &str, root: &Root) -> Result<IndexKind, Error> {
    IndexKind::of(root).ok_or_else(|| Error::OtherKind {
        name: name.to_owned(),
        kind: root.kind,
    })
}

fn map_info(name: &[u8], root: &Root) -> MapInfo {
    let kind = IndexKind::of(root);
    MapInfo {
        name: String::from_utf8_lossy(name).into_owned(),
        index: kind.map_or_else(|| format!("unknown kind {}", root.kind), |kind| kind.to_string()),
    }
}
