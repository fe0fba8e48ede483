//! A pool's heap and the indexes in it: what a database is made of, without names held or handles counted.
//!
//! Each map is a root of the heap. The root's kind says which index holds it, and so who opens and who traces it; a
//! kind that this program does not know is refused, never guessed at.

use crate::report::{HeapCheck, MapInfo, Recovery, RecoveryState, Space, Stats};
use crate::{Error, Media};
use heap::{Heap, State, Tracers};
use index::Index;
use pmem::{Link, Pool};
use roart::Roart;
use std::sync::Arc;

/// Objects of a dropped map that are retired under one guard.
const RETIRE_BATCH: usize = 256;

pub(crate) struct Store<M: Media> {
    heap: Heap<M>,
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

    /// Every index that can be in a pool.
    fn tracers() -> Tracers<M> {
        vec![(roart::KIND, roart::tracer())]
    }

    pub fn create(&self, name: &str) -> Result<Arc<dyn Index>, Error> {
        Ok(Arc::new(Roart::<M>::create(&self.heap, name.as_bytes())?))
    }

    pub fn open(&self, name: &str) -> Result<Option<Arc<dyn Index>>, Error> {
        match self.heap.root(name.as_bytes())? {
            None => Ok(None),
            Some(root) if root.kind == roart::KIND => {
                let index = Roart::<M>::open(&self.heap, name.as_bytes())?;
                Ok(index.map(|index| Arc::new(index) as Arc<dyn Index>))
            }
            Some(root) => Err(Error::OtherKind {
                name: name.to_owned(),
                kind: root.kind,
            }),
        }
    }

    /// Removes a map's root, then gives back what hung from it. Nobody may use the map any more.
    pub fn remove(&self, name: &str) -> Result<bool, Error> {
        if self.open(name)?.is_none() {
            return Ok(false);
        }
        let root = self.heap.remove_root(name.as_bytes())?;
        if let Some(root) = root {
            self.retire_all(root.link)?;
        }
        Ok(root.is_some())
    }

    /// Retires everything below a link that nobody else can reach. What a crash or an error leaves over comes back
    /// by the next recovery.
    fn retire_all(&self, link: Link) -> Result<(), Error> {
        let tracer = roart::tracer::<M>();
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
            .map(|(name, root)| map_info(&name, root.kind))
            .collect();
        maps.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(maps)
    }

    /// Starts recovery, unless it was started already.
    pub fn recover(&self, threads: usize) -> Result<(), Error> {
        Ok(self.heap.recover(Self::tracers(), threads)?)
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
        match self.heap.audit(&Self::tracers(), 1) {
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

fn map_info(name: &[u8], kind: u32) -> MapInfo {
    let index = if kind == roart::KIND {
        "roart".to_owned()
    } else {
        format!("unknown kind {kind}")
    };
    MapInfo {
        name: String::from_utf8_lossy(name).into_owned(),
        index,
    }
}
