//! A disk that records every change and every sync, and the contents that a crash may leave.
//!
//! [`CrashDisk`] replaces the directory that a log and its users access ([`::log::Disk`]). Each call that changes
//! something is a [`DiskEvent`], and each sync is two; between any two events the process may be killed or the power
//! may fail. A [`Medium`] takes the events one by one and knows at each moment what is durable and what may be:
//! [`Medium::choices`] and [`Medium::image`] return every legal image after a power cut, [`Medium::killed`] the content
//! that a killed process leaves. Both can follow each other, since a disk can start from any medium.
//!
//! A power cut may leave what D1 to D4 of [`::log::disk`] allow:
//!
//! K1 Each 512-byte sector holds its content at its file's last sync, or anything written to it since, independently of
//!    others.
//! K2 A file has the length of its last sync, or any that it has had since.
//! K3 Each creation, renaming and removal since the directory's last sync has happened or not, independently of others.
//! K4 A sync need not cover data that is written while it runs.
//! K5 After a failed sync, each sector that was waiting for it may have become durable or not, and later syncs do not
//!    change that, until the sector is written again. Processes still read the data. The same holds for names.
//!
//! Errors are injected by the number of the call ([`DiskFault`]); a sync can be omitted by the place that calls it
//! ([`CrashDisk::skip`]).

mod faults;
mod images;
mod medium;

pub use faults::{DiskFault, FailedCall, FaultKind};
pub use images::images;
pub use medium::{DiskEvent, Medium};

use ::log::{Disk, DiskError, DiskFile, Mapping};
use rustix::io::Errno;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A place in the source that calls a disk.
pub type Site = &'static Location<'static>;

/// A disk that records every event. Clones share one state.
#[derive(Clone)]
pub struct CrashDisk {
    state: Arc<Mutex<State>>,
}

/// An open file of a [`CrashDisk`].
pub struct CrashFile {
    disk: CrashDisk,
    inode: u64,
    name: String,
}

/// A mapping of a [`CrashFile`].
pub struct CrashMapping {
    disk: CrashDisk,
    inode: u64,
    len: u64,
}

struct State {
    medium: Medium,
    /// The inode number handed out last.
    last_inode: u64,
    events: Vec<DiskEvent>,
    calls: u64,
    fault: Option<DiskFault>,
    failed: Vec<FailedCall>,
    skipped: Option<Site>,
    syncs: Vec<Site>,
    amid_sync: Option<Box<dyn FnOnce() + Send>>,
    before: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl CrashDisk {
    /// Creates a disk on this medium.
    pub fn new(medium: Medium) -> CrashDisk {
        let state = State {
            medium,
            last_inode: 0,
            events: Vec::new(),
            calls: 0,
            fault: None,
            failed: Vec::new(),
            skipped: None,
            syncs: Vec::new(),
            amid_sync: None,
            before: None,
        };
        CrashDisk {
            state: Arc::new(Mutex::new(state)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Injects a fault, whose call number counts from now on; `None` removes it.
    pub fn inject(&self, fault: Option<DiskFault>) {
        let mut state = self.state();
        let calls = state.calls;
        state.fault = fault.map(|fault| DiskFault {
            call: fault.call + calls,
            ..fault
        });
    }

    /// Returns the number of calls that injected faults have made fail.
    pub fn injected(&self) -> usize {
        self.state().failed.len()
    }

    /// Returns the calls that injected faults have made fail, in order, without the first `before` of them.
    pub fn failed(&self, before: usize) -> Vec<FailedCall> {
        self.state().failed[before..].to_vec()
    }

    /// Skips the syncs called at this place: they return `Ok` and make nothing durable. (They still run the action of
    /// [`amid_next_sync`](CrashDisk::amid_next_sync).)
    pub fn skip(&self, site: Option<Site>) {
        self.state().skipped = site;
    }

    /// Runs `action` during the next sync of a file: after the sync has fixed the data that it covers, before that data
    /// is durable.
    pub fn amid_next_sync(&self, action: impl FnOnce() + Send + 'static) {
        self.state().amid_sync = Some(Box::new(action));
    }

    /// Drops the action of [`amid_next_sync`](CrashDisk::amid_next_sync) if no sync has run it.
    pub fn forget_amid_sync(&self) {
        let action = self.state().amid_sync.take();
        drop(action);
    }

    /// Calls `before` before each event from now on.
    pub fn before_events(&self, before: impl Fn() + Send + Sync + 'static) {
        self.state().before = Some(Arc::new(before));
    }

    /// Returns the number of events so far.
    pub fn now(&self) -> usize {
        self.state().events.len()
    }

    /// Returns the number of calls so far that can fail.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// Returns the events so far, in order.
    pub fn events(&self) -> Vec<DiskEvent> {
        self.state().events.clone()
    }

    /// Returns the places that have called a sync.
    pub fn sync_sites(&self) -> Vec<Site> {
        self.state().syncs.clone()
    }

    /// Returns a copy of the medium in its present state.
    pub fn medium(&self) -> Medium {
        self.state().medium.clone()
    }

    /// Applies an event and returns its number.
    fn act(&self, event: DiskEvent) -> usize {
        let before = self.state().before.clone();
        if let Some(before) = before {
            before();
        }
        let mut state = self.state();
        let number = state.medium.apply(&event);
        state.events.push(event);
        number
    }

    /// Counts a call, and fails it if an injected fault strikes.
    fn call(&self, file: &str, operation: &'static str) -> Result<(), DiskError> {
        match self.fault(file, operation) {
            None => Ok(()),
            Some(kind) => Err(failed(file, operation, kind.errno())),
        }
    }

    fn fault(&self, file: &str, operation: &'static str) -> Option<FaultKind> {
        let mut state = self.state();
        let number = state.calls;
        state.calls += 1;
        let kind = state.fault.as_mut()?.strike(number, operation)?;
        state.failed.push(FailedCall {
            number,
            file: file.into(),
            operation,
            kind,
        });
        Some(kind)
    }

    /// Syncs the file `inode`, or the directory if that is `None`.
    fn sync(
        &self,
        file: &str,
        operation: &'static str,
        site: Site,
        inode: Option<u64>,
    ) -> Result<(), DiskError> {
        let mut state = self.state();
        if !state.syncs.contains(&site) {
            state.syncs.push(site);
        }
        if state.skipped == Some(site) {
            // An action meant for this sync must not run during another one, whose caller may hold other locks.
            let amid = state.amid_sync.take_if(|_| inode.is_some());
            drop(state);
            if let Some(action) = amid {
                action();
            }
            return Ok(());
        }
        drop(state);
        // A skipped sync is no call, so no fault strikes it.
        let fault = self.fault(file, operation);
        let begun = self.act(DiskEvent::SyncBegins);
        let amid = self.state().amid_sync.take_if(|_| inode.is_some());
        if let Some(action) = amid {
            action();
        }
        let done = fault.is_none();
        self.act(match inode {
            Some(inode) => DiskEvent::Synced { inode, begun, done },
            None => DiskEvent::DirSynced { begun, done },
        });
        match fault {
            None => Ok(()),
            Some(kind) => Err(failed(file, operation, kind.errno())),
        }
    }

    /// Returns the file of this name.
    fn lookup(&self, name: &str, operation: &'static str) -> Result<CrashFile, DiskError> {
        match self.state().medium.find(name) {
            Some(inode) => Ok(CrashFile {
                disk: self.clone(),
                inode,
                name: name.into(),
            }),
            None => Err(failed(name, operation, Errno::NOENT)),
        }
    }
}

impl State {
    /// Reserves the inode number of a file about to be created, so that no other thread gets it.
    fn new_inode(&mut self) -> u64 {
        self.last_inode = self.medium.new_inode().max(self.last_inode + 1);
        self.last_inode
    }
}

impl Disk for CrashDisk {
    type File = CrashFile;

    fn create(&self, name: &str) -> Result<CrashFile, DiskError> {
        self.call(name, "create")?;
        if self.state().medium.find(name).is_some() {
            return Err(failed(name, "create", Errno::EXIST));
        }
        let inode = self.state().new_inode();
        self.act(DiskEvent::Create {
            name: name.into(),
            inode,
        });
        self.lookup(name, "create")
    }

    fn open(&self, name: &str) -> Result<CrashFile, DiskError> {
        self.call(name, "open")?;
        self.lookup(name, "open")
    }

    fn list(&self) -> Result<Vec<String>, DiskError> {
        self.call("", "list")?;
        Ok(self.state().medium.names())
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        self.call(from, "rename")?;
        self.lookup(from, "rename")?;
        self.act(DiskEvent::Rename {
            from: from.into(),
            to: to.into(),
        });
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        self.call(name, "remove")?;
        self.lookup(name, "remove")?;
        self.act(DiskEvent::Remove { name: name.into() });
        Ok(())
    }

    #[track_caller]
    fn sync_dir(&self) -> Result<(), DiskError> {
        self.sync("", "fsync of the directory", Location::caller(), None)
    }
}

impl DiskFile for CrashFile {
    type Mapping = CrashMapping;

    fn len(&self) -> Result<u64, DiskError> {
        self.disk.call(&self.name, "stat")?;
        Ok(self.disk.state().medium.len(self.inode))
    }

    fn read_at(&self, at: u64, bytes: &mut [u8]) -> Result<(), DiskError> {
        self.disk.call(&self.name, "read")?;
        match self.disk.state().medium.read(self.inode, at, bytes) {
            true => Ok(()),
            false => Err(DiskError {
                file: self.name.clone(),
                operation: "read",
                source: std::io::ErrorKind::UnexpectedEof.into(),
            }),
        }
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<(), DiskError> {
        let fault = self.disk.fault(&self.name, "write");
        let whole = DiskEvent::Write {
            inode: self.inode,
            at,
            bytes: bytes.into(),
        };
        match fault {
            None => {
                self.disk.act(whole);
                Ok(())
            }
            Some(kind) => {
                if kind == FaultKind::Short {
                    self.disk.act(whole.part(0..bytes.len() / 2));
                }
                Err(failed(&self.name, "write", kind.errno()))
            }
        }
    }

    fn preallocate(&self, len: u64) -> Result<(), DiskError> {
        let fault = self.disk.fault(&self.name, "allocate");
        let zeros = if fault.is_some() { len / 2 } else { len };
        self.disk.act(DiskEvent::Write {
            inode: self.inode,
            at: 0,
            bytes: vec![0; zeros as usize],
        });
        match fault {
            None => Ok(()),
            Some(kind) => Err(failed(&self.name, "allocate", kind.errno())),
        }
    }

    fn map(&self, len: u64) -> Result<CrashMapping, DiskError> {
        self.disk.call(&self.name, "map")?;
        if self.disk.state().medium.len(self.inode) < len {
            return Err(failed(&self.name, "map", Errno::INVAL));
        }
        Ok(CrashMapping {
            disk: self.disk.clone(),
            inode: self.inode,
            len,
        })
    }

    #[track_caller]
    fn sync(&self) -> Result<(), DiskError> {
        let site = Location::caller();
        self.disk.sync(&self.name, "fdatasync", site, Some(self.inode))
    }
}

impl Mapping for CrashMapping {
    fn store(&mut self, at: u64, bytes: &[u8]) {
        assert!(
            at + bytes.len() as u64 <= self.len,
            "the store ends beyond the mapping"
        );
        self.disk.act(DiskEvent::Write {
            inode: self.inode,
            at,
            bytes: bytes.into(),
        });
    }
}

fn failed(file: &str, operation: &'static str, errno: Errno) -> DiskError {
    DiskError {
        file: file.into(),
        operation,
        source: errno.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files that several threads create at once are different files.
    #[test]
    fn files_made_at_once_are_different() {
        const THREADS: usize = 4;
        const FILES: usize = 500;
        let disk = CrashDisk::new(Medium::new());
        let start = std::sync::Barrier::new(THREADS);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (disk, start) = (&disk, &start);
                scope.spawn(move || {
                    start.wait();
                    for n in 0..FILES {
                        let name = format!("{thread} {n}");
                        let file = disk.create(&name).expect("a new name");
                        file.write_at(0, name.as_bytes()).expect("no fault");
                    }
                });
            }
        });
        let medium = disk.medium();
        for name in medium.names() {
            assert_eq!(medium.contents(&name).as_deref(), Some(name.as_bytes()));
        }
        assert_eq!(medium.names().len(), THREADS * FILES);
    }
}
