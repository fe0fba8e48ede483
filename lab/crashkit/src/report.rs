//! The report: statistics of an exploration, and its failures.

mod diagram;

use crate::coverage::Coverage;
use crate::log::{EventKind, EventLog, Site};
use crate::meetings::Met;
use crate::model::MemoryModel;
use crate::{Forgiven, History, Lacks, Subject, forgiven};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

pub(crate) use diagram::{diagram, preemptions, readable};

/// A persist in the source: file, line, column, and its kind.
pub type Persist = (&'static str, u32, u32, Lacks);

/// Returns the persist at a source line.
pub(crate) fn persist(site: Site, lacks: Lacks) -> Persist {
    (site.file(), site.line(), site.column(), lacks)
}

/// A store that a failing image lacks.
#[derive(Clone, Debug)]
pub struct Missing {
    /// The call site that made it.
    pub site: Site,
    /// The word: its offset in the pool divided by 8.
    pub word: u32,
    /// The value that it stored.
    pub value: u64,
    /// The value in the image.
    pub there: u64,
}

/// Formats an operation or an answer by `Debug`, with bytes as text.
pub(crate) fn shown(value: &impl fmt::Debug) -> String {
    readable(&format!("{value:?}"))
}

/// A wrong image or a wrong answer, with the history that led to it.
#[derive(Clone, Debug, Default)]
pub struct Failure {
    /// What is wrong with the image or the answer.
    pub message: String,
    /// The seed of its history.
    pub seed: u64,
    /// The logical threads of its history.
    pub threads: u32,
    /// The operations of its history.
    pub operations: Vec<String>,
    /// Number of operations at the beginning that prepare.
    pub prepared: u32,
    /// Their answers; `None`: none yet.
    pub answers: Vec<Option<String>>,
    /// What its threads did, step by step, if it has several...
    pub schedule: Vec<String>,
    /// ...and how often one of them was stopped within an operation while another continued.
    pub preemptions: u32,
    /// How many crashes led to it.
    pub crashes: u32,
    /// The crashes before the last, in order; each message names the kind of crash.
    pub earlier: Vec<Failure>,
    /// The crash came before this event of the (last) log...
    pub place: usize,
    /// ...which is this one...
    pub event: Option<EventKind>,
    /// ...of this line of source. `None`: after the last.
    pub site: Option<Site>,
    /// The operations in flight.
    pub in_flight: Vec<String>,
    /// The stores that did not become durable.
    pub missing: Vec<Missing>,
    /// The operations of the run after this crash; none if the crash image itself failed.
    pub afterwards: Vec<String>,
}

impl Failure {
    /// Records the history that failed.
    pub(crate) fn of<O: fmt::Debug>(&mut self, history: &History<O>) {
        self.seed = history.seed;
        self.threads = history.threads;
        self.prepared = history.prepared;
        self.operations = history.ops.iter().map(shown).collect();
    }

    /// Returns the failure of a wrong or premature answer: the event at `place`.
    pub(crate) fn answered(message: String, place: usize) -> Box<Failure> {
        Box::new(Failure {
            place,
            ..*Failure::outright(message)
        })
    }

    /// Returns a failure that needed no image.
    pub(crate) fn outright(message: String) -> Box<Failure> {
        Box::new(Failure {
            message,
            ..Failure::default()
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.message)?;
        match self.threads {
            0 | 1 => writeln!(f, "  history of seed {}:", self.seed)?,
            threads => writeln!(
                f,
                "  history of seed {}, by {threads} threads, with {}:",
                self.seed,
                match self.preemptions {
                    1 => "1 preemption".into(),
                    several => format!("{several} preemptions"),
                }
            )?,
        }
        for (number, op) in (0..).zip(&self.operations) {
            let thread = match number {
                _ if self.threads < 2 => String::new(),
                prepares if prepares < self.prepared => "before    ".into(),
                number => format!("thread {}  ", 1 + (number - self.prepared) % self.threads),
            };
            write!(f, "    {thread}{op}")?;
            match self.answers.get(number as usize) {
                Some(Some(answer)) if self.threads > 1 && number >= self.prepared => {
                    writeln!(f, " -> {answer}")?;
                }
                _ => writeln!(f)?,
            }
        }
        if !self.schedule.is_empty() {
            writeln!(f, "  step by step; each line starts with its thread:")?;
        }
        for step in &self.schedule {
            writeln!(f, "    {step}")?;
        }
        for earlier in &self.earlier {
            write!(f, "  {}", earlier.message)?;
            earlier.crash(f)?;
        }
        if self.crashes == 0 {
            return Ok(());
        }
        write!(f, "  crash {}", self.crashes)?;
        self.crash(f)
    }
}

impl Failure {
    /// Writes where the crash came, the operations in flight, the lost stores and the operations after it.
    fn crash(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.event, self.site) {
            (Some(EventKind::Ack(_)), _) => writeln!(f, " before the answer")?,
            (Some(EventKind::Invoke(_)), _) | (None, _) | (_, None) => writeln!(f, " between operations")?,
            (Some(event), Some(site)) => {
                let event = match event {
                    EventKind::Fence => "the fence",
                    EventKind::Locked => "the locked instruction",
                    EventKind::Store { .. } => "the store",
                    EventKind::WriteBack { .. } => "the write-back",
                    _ => "the event",
                };
                writeln!(f, " before {event} at {site}")?;
            }
        }
        for op in &self.in_flight {
            writeln!(f, "    in flight: {op}")?;
        }
        for store in &self.missing {
            let Missing {
                site,
                word,
                value,
                there,
            } = store;
            writeln!(
                f,
                "    not durable: word {:#x} = {value:#x} (there: {there:#x}), stored at {site}",
                word * 8
            )?;
        }
        for op in &self.afterwards {
            writeln!(f, "    afterwards: {op}")?;
        }
        Ok(())
    }
}

/// The statistics of an exploration, and its failures.
#[derive(Clone, Debug)]
pub struct Report {
    /// The name of the subject.
    pub subject: String,
    /// The memory model.
    pub model: MemoryModel,
    /// The seed of the exploration.
    pub seed: u64,
    /// Histories explored.
    pub histories: u64,
    /// Operations of these histories.
    pub operations: u64,
    /// Crash points that were examined.
    pub crash_points: u64,
    /// Of these, those with more images than could be judged one by one.
    pub sampled_points: u64,
    /// Images opened, recovered and judged.
    pub images: u64,
    /// Of these, the distinct ones: those that differ in what was read of them or in what was expected.
    pub states: u64,
    /// Images and kills from which another history ran, up to its own crash.
    pub again: u64,
    /// How logical threads have met.
    pub met: Met,
    /// Time taken, without that for mutants.
    pub elapsed: Duration,
    /// What the histories have reached.
    pub coverage: Coverage,
    /// Mutants met so far, and how many of them were killed.
    pub mutants: (usize, usize),
    /// Distinct states judged of mutants.
    pub mutant_states: u64,
    /// Time taken for mutants.
    pub mutant_elapsed: Duration,
    /// How often each source line has asked for a persist.
    pub sites: BTreeMap<Persist, (Site, u64)>,
    /// Reasons why some of these stay although their absence need not be detected.
    pub reasons: BTreeMap<Persist, &'static str>,
    /// The failures found.
    pub failures: Vec<Failure>,
    /// The subject's own table of persists that a hunt may forgive.
    forgiven: &'static [Forgiven],
}

impl Report {
    pub(crate) fn new(subject: &impl Subject, model: MemoryModel, seed: u64) -> Report {
        Report {
            subject: subject.name(),
            forgiven: subject.forgiven(),
            model,
            seed,
            histories: 0,
            operations: 0,
            crash_points: 0,
            sampled_points: 0,
            images: 0,
            states: 0,
            again: 0,
            met: Met::default(),
            elapsed: Duration::ZERO,
            coverage: Coverage::default(),
            mutants: (0, 0),
            mutant_states: 0,
            mutant_elapsed: Duration::ZERO,
            sites: BTreeMap::new(),
            reasons: BTreeMap::new(),
            failures: Vec::new(),
        }
    }

    /// Records a history that has run, in whose log crash points begin at `from`.
    pub(crate) fn note_history(&mut self, log: &EventLog, from: usize, operations: usize) {
        self.histories += 1;
        self.operations += operations as u64;
        self.note_sites(log, false);
        self.coverage.note_steps(log, from);
    }

    /// Records the call sites that stored and asked for persists, after a crash or without one.
    pub(crate) fn note_sites(&mut self, log: &EventLog, after_a_crash: bool) {
        self.coverage.note_stores(log, after_a_crash);
        for event in &log.events {
            let lacks = match event.kind {
                EventKind::WriteBack { .. } => Lacks::WriteBack,
                EventKind::Fence => Lacks::Fence,
                _ => continue,
            };
            for site in log.sites(event) {
                self.sites.entry(persist(site, lacks)).or_insert((site, 0)).1 += 1;
            }
        }
        for named in &log.named {
            let rows = forgiven::HEAP.iter().chain(self.forgiven);
            for row in rows.filter(|row| row.site == named.name) {
                for &lacks in row.lacks {
                    let persists = log.sites_of(named, lacks).map(|site| persist(site, lacks));
                    self.reasons.extend(persists.map(|persist| (persist, row.why)));
                }
            }
        }
    }

    /// Returns the number of distinct states judged per second.
    pub fn states_per_s(&self) -> f64 {
        self.states as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({} model, seed {}): {} histories of {} operations, {} crash points, {} images, {} distinct states, \
             {} second crashes, {:.1} s, {:.0} states/s, {} failures",
            self.subject,
            self.model.mode,
            self.seed,
            self.histories,
            self.operations,
            self.crash_points,
            self.images,
            self.states,
            self.again,
            self.elapsed.as_secs_f64(),
            self.states_per_s(),
            self.failures.len()
        )
    }
}
