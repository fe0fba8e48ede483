//! Executes the steps of a history, and records the answers.

use super::truth::{BEGIN, Content, LONGEST, Trouble, Truth, Written};
use crashkit::Random;
use crashkit::disk::{CrashDisk, DiskEvent, DiskFault, FaultKind, Medium, Site};
use log::{Error, Log, Lsn};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A run of a process over a disk, from the opening of the log to the end of the process.
pub struct History {
    /// The disk's content at the beginning.
    pub base: Medium,
    /// The records that the disk might hold at the beginning.
    pub before: Truth,
    /// The events of the disk.
    pub events: Vec<DiskEvent>,
    /// The number of events when the opening returned, and the number of records it found. `None`: it failed.
    pub opened: Option<(usize, usize)>,
    notes: Notes,
    /// The source locations that called a sync.
    pub sync_sites: Vec<Site>,
}

/// The answers that a process got from its log. A `usize` is the number of disk events before the answer (for `kept`,
/// before the call).
#[derive(Default)]
struct Notes {
    written: Vec<Written>,
    acknowledged: Vec<(usize, Lsn)>,
    kept: Vec<(usize, Lsn)>,
}

/// The parameters of a history.
#[derive(Clone, Copy)]
pub struct Draw {
    /// Steps after the opening.
    pub steps: usize,
    /// The number of the first record.
    pub first: u64,
    /// Whether disk calls may fail.
    pub faults: bool,
    /// A sync to omit.
    pub skip: Option<Site>,
}

/// Executes a history. Returns only errors that no injected fault explains.
pub fn run(
    base: Medium,
    before: Truth,
    least: usize,
    draw: Draw,
    random: &mut Random,
) -> Result<History, Trouble> {
    let disk = CrashDisk::new(base.clone());
    disk.skip(draw.skip);
    if draw.faults {
        disk.inject(Some(draw_fault(draw.steps, random)));
    }
    let mut history = History {
        base,
        before,
        events: Vec::new(),
        opened: None,
        notes: Notes::default(),
        sync_sites: Vec::new(),
    };
    match history.before.open(Arc::new(disk.clone()), least, random) {
        Ok((log, found)) => {
            history.opened = Some((disk.now(), found));
            let mut process = Process {
                log: Arc::new(log),
                disk: disk.clone(),
                notes: Arc::default(),
                next: draw.first,
            };
            process.notes().kept.push((0, history.before.keep));
            process.go(draw.steps, random)?;
            history.notes = std::mem::take(&mut *process.notes());
        }
        Err(_) if disk.injected() > 0 => {}
        Err(trouble) => return Err(trouble),
    }
    history.events = disk.events();
    history.sync_sites = disk.sync_sites();
    Ok(history)
}

/// Executes a history of several threads, each of which appends and waits. Their interleaving depends on the machine.
pub fn run_together(writers: u64, each: u64, random: &mut Random) -> Result<History, Trouble> {
    let disk = CrashDisk::new(Medium::new());
    let (log, found) = Truth::nothing().open(Arc::new(disk.clone()), 0, random)?;
    let opened = Some((disk.now(), found));
    let (log, notes) = (Arc::new(log), Arc::default());
    let results = std::thread::scope(|scope| {
        let spawn = |writer| {
            let mut random = Random(random.next());
            let mut process = Process {
                log: log.clone(),
                disk: disk.clone(),
                notes: Arc::clone(&notes),
                next: writer * each,
            };
            scope.spawn(move || {
                for _ in 0..each {
                    process.append(&mut random)?;
                    if random.below(3) > 0 {
                        process.acknowledge(process.log.appended())?;
                    }
                }
                Ok(())
            })
        };
        let threads: Vec<_> = (0..writers).map(spawn).collect();
        let results = threads.into_iter().map(|thread| match thread.join() {
            Ok(Ok(()) | Err(Error::LogFull { .. })) => Ok(()),
            Ok(Err(error)) => Err(Trouble::Refused(error)),
            Err(_) => Err(Trouble::Wrong("a thread panicked".into())),
        });
        results.collect::<Result<(), Trouble>>()
    });
    results?;
    drop(log);
    let mut notes = std::mem::take(&mut *lock(&notes));
    notes.written.sort_by_key(|written| written.end);
    notes.kept.push((0, BEGIN));
    Ok(History {
        base: Medium::new(),
        before: Truth::nothing(),
        events: disk.events(),
        opened,
        notes,
        sync_sites: disk.sync_sites(),
    })
}

/// Draws a fault: one call fails, or the disk is full from that call on.
fn draw_fault(steps: usize, random: &mut Random) -> DiskFault {
    let kind = *random.pick(&[FaultKind::Io, FaultKind::Io, FaultKind::Full, FaultKind::Short]);
    DiskFault {
        call: random.below(40 + 2 * steps as u64),
        kind,
        lasting: kind == FaultKind::Full && random.below(2) == 0,
    }
}

struct Process {
    log: Arc<Log<CrashDisk>>,
    disk: CrashDisk,
    notes: Arc<Mutex<Notes>>,
    next: u64,
}

fn lock(notes: &Mutex<Notes>) -> MutexGuard<'_, Notes> {
    notes.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Process {
    fn notes(&self) -> MutexGuard<'_, Notes> {
        lock(&self.notes)
    }

    fn go(&mut self, steps: usize, random: &mut Random) -> Result<(), Trouble> {
        for _ in 0..steps {
            let failed = self.disk.injected();
            let done = match random.below(20) {
                0..10 => self.append(random),
                10..13 => self.wait(random),
                13..16 => self.wait_beside_a_writer(random),
                16 | 17 => self.drop_below(random),
                18 => self.prepare_or_sync_full(),
                _ => self.acknowledge(self.log.appended()),
            };
            match done {
                Ok(()) => {}
                Err(Error::LogFull { .. }) => self.make_room()?,
                // The process ends once the log has failed.
                Err(Error::Failed(_)) if self.may_have_failed() => return self.check_failed(),
                // It continues after a call of the disk has failed, which explains no later error.
                Err(_) if self.disk.injected() > failed && self.log.failure().is_none() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn append(&mut self, random: &mut Random) -> Result<(), Error> {
        let content = draw_content(self.next, random);
        self.next += 1;
        append(&self.log, &self.disk, &self.notes, content)
    }

    /// Waits until one of the records is durable.
    fn wait(&mut self, random: &mut Random) -> Result<(), Error> {
        let ends: Vec<_> = self.notes().written.iter().map(|written| written.end).collect();
        if ends.is_empty() {
            return Ok(());
        }
        // Prefers a late record.
        let back = random.below(ends.len() as u64).min(random.below(4));
        self.acknowledge(ends[ends.len() - 1 - back as usize])
    }

    fn acknowledge(&mut self, lsn: Lsn) -> Result<(), Error> {
        self.log.wait_durable(lsn)?;
        let now = self.disk.now();
        self.notes().acknowledged.push((now, lsn));
        Ok(())
    }

    /// Does what the database's background thread does.
    fn prepare_or_sync_full(&mut self) -> Result<(), Error> {
        match self.next % 3 {
            0 => self.log.prepare(),
            1 => self.log.prepare_for((self.next % 6) << 13),
            _ => {
                let end = self.log.sync_full()?;
                self.acknowledge(end)
            }
        }
    }

    /// Waits for all records, while another writer appends in the middle of the sync.
    fn wait_beside_a_writer(&mut self, random: &mut Random) -> Result<(), Error> {
        let (log, disk, notes) = (self.log.clone(), self.disk.clone(), self.notes.clone());
        let contents: Vec<_> = (0..1 + random.below(2))
            .map(|n| draw_content(self.next + n, random))
            .collect();
        self.next += contents.len() as u64;
        self.disk.amid_next_sync(move || {
            for content in contents {
                // `append` does not record a refused one as written.
                let _ = append(&log, &disk, &notes, content);
            }
        });
        let waited = self.acknowledge(self.log.appended());
        self.disk.forget_amid_sync();
        waited
    }

    /// Drops records, as a checkpoint does once its manifest is durable.
    fn drop_below(&mut self, random: &mut Random) -> Result<(), Error> {
        let durable = self.log.durable();
        let ends: Vec<_> = self.notes().written.iter().map(|written| written.end).collect();
        let ends: Vec<_> = ends
            .into_iter()
            .filter(|&end| end <= durable && end > self.log.begin())
            .collect();
        if ends.is_empty() {
            return Ok(());
        }
        let lsn = *random.pick(&ends);
        let now = self.disk.now();
        self.notes().kept.push((now, lsn));
        self.log.drop_below(lsn)
    }

    /// Drops all records.
    fn make_room(&mut self) -> Result<(), Trouble> {
        let end = self.log.appended();
        let dropped = self.acknowledge(end).and_then(|()| {
            let now = self.disk.now();
            self.notes().kept.push((now, end));
            self.log.drop_below(end)
        });
        match dropped {
            Err(Error::Failed(_)) if self.may_have_failed() => Ok(()),
            other => Ok(other?),
        }
    }

    /// Returns whether a call has failed for which the log may fail. A full disk is no such failure.
    fn may_have_failed(&self) -> bool {
        let failed = self.disk.failed(0);
        failed.iter().any(|call| call.kind != FaultKind::Full)
    }

    /// Checks that a failed log refuses appends and acknowledges nothing more.
    fn check_failed(&self) -> Result<(), Trouble> {
        let (durable, appended) = (self.log.durable(), self.log.appended());
        let refuses = self.log.append(&[]).is_err() && self.log.appended() == appended;
        let waits = durable < appended && self.log.sync().is_ok();
        match refuses && !waits && self.log.failure().is_some() {
            true => Ok(()),
            false => Err(Trouble::Wrong("a failed log continues to work".into())),
        }
    }
}

fn draw_content(number: u64, random: &mut Random) -> Content {
    let max = *random.pick(&[8, 100, 100, 200, 600, 600, 1500, 9000, LONGEST]);
    Content {
        number,
        len: random.below(max as u64) as usize,
    }
}

/// Appends a record, and notes it.
fn append(
    log: &Log<CrashDisk>,
    disk: &CrashDisk,
    notes: &Mutex<Notes>,
    content: Content,
) -> Result<(), Error> {
    let begun = disk.now();
    let end = content.with(|changes| log.append(changes))?;
    let written = Written {
        content,
        end,
        begun,
        done: disk.now(),
    };
    lock(notes).written.push(written);
    Ok(())
}

impl History {
    /// Returns the truth for a crash before this event.
    pub fn truth_at(&self, event: usize) -> Truth {
        let Some((opened, found)) = self.opened.filter(|&(opened, _)| opened <= event) else {
            return self.before.clone();
        };
        debug_assert!(opened <= event, "the log was open");
        let mut records = self.before.records[..found].to_vec();
        records.extend(self.notes.written.iter().filter(|written| written.begun <= event));
        let acknowledged = self.notes.acknowledged.iter().filter(|(at, _)| *at <= event);
        let durable = acknowledged.map(|(_, lsn)| *lsn).max().unwrap_or(Lsn(0));
        let durable = found.max(records.iter().filter(|record| record.end <= durable).count());
        let there = found
            + self
                .notes
                .written
                .iter()
                .filter(|written| written.done <= event)
                .count();
        let kept = self.notes.kept.iter().filter(|(at, _)| *at <= event);
        let keep = kept.map(|(_, lsn)| *lsn).max().unwrap_or(self.before.keep);
        let gone = records.iter().take_while(|record| record.end <= keep).count();
        Truth {
            exists: true,
            records: records.split_off(gone),
            durable: durable.saturating_sub(gone),
            there: there.saturating_sub(gone),
            keep,
        }
    }

    /// Returns the first number that no record has.
    pub fn next_number(&self) -> u64 {
        let before = self.before.records.iter();
        let numbers = before
            .chain(&self.notes.written)
            .map(|written| written.content.number);
        numbers.max().map_or(0, |number| number + 1)
    }
}
