//! Exploration: one run of a history serves for all crashes during it. The images that each of them may leave are
//! judged, or a sample where there are too many.
//!
//! 1. *Record.* The history runs to its end; the log is kept.
//! 2. *Walk.* The log is followed event by event. Crash points are before an event that makes something durable, before
//!    an operation begins, after its acknowledgement, and at the log's end. The tracker describes the images that a
//!    crash there may leave.
//! 3. *Probe.* Each image is opened, recovered and judged, and everything is put back.
//! 4. *Again.* For a share of the images, recovery and a few operations run with a log of their own, which is walked in
//!    the same way: a second crash, and a third. The same is done with the memory of a killed process.
//!
//! | file | idea |
//! |---|---|
//! | `walk` | along a log, from crash point to crash point |
//! | `aim` | where a hunt kills the process |
//! | `apart` | a thread for each history |
//! | `hunted` | the walks of mutants |
//! | `image` | the images of one crash point |
//! | `again` | the run after a crash, up to the next one |
//! | `carry` | runs histories |
//! | `panics` | panics of the subject |
//! | `preempt` | runs histories again, with aimed preemptions |
//! | `settings` | the settings of an exploration |
//! | `survey` | the structure modifications that a history reaches |
//! | `shrink` | makes a failure smaller, as long as it still fails |
//!
//! I1 Between two acknowledgements, an image without any store since the last judged crash point was already an image
//!    of that point, and need not be made again: it was judged there, or skipped because there were too many and only a
//!    sample was judged, or because the walk had used up its share.
//! I2 The same history with the same settings explores the same images in the same order, whatever was explored before
//!    it, unless the deadline ends it.

mod again;
mod aim;
mod apart;
mod carry;
mod hunted;
mod image;
mod panics;
mod preempt;
mod settings;
mod shrink;
mod survey;
mod walk;

pub(crate) use apart::apart;
pub(crate) use carry::Start;
pub(crate) use hunted::Walked;
pub use panics::silence_findings;
pub use settings::Settings;

use crate::choose::Random;
use crate::expect::{Expectation, hash_of_states};
use crate::history::History;
use crate::log::{EventKind, EventLog, Site};
use crate::mutant::Mutant;
use crate::report::{Failure, Report, diagram, preemptions};
use crate::{Crash, Subject, schedule};
use aim::Persisted;
use carry::carry_out;
use panics::caught;
use pmem::Memory;
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// The number of the structure's creation among the operations in the log.
const CREATION: u32 = u32::MAX;

/// Which images of a history to judge.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Walk {
    /// All of the program itself.
    Whole,
    /// Those of a mutant, at crash points where the unmutated program cannot leave all of them.
    Differing(Mutant),
    /// The same after an earlier crash or kill, at a few places.
    Again(Mutant),
}

impl Walk {
    fn mutant(self) -> Option<Mutant> {
        match self {
            Walk::Whole => None,
            Walk::Differing(mutant) | Walk::Again(mutant) => Some(mutant),
        }
    }
}

/// Explores histories of a subject, one after the other.
pub struct Explorer<S: Subject> {
    subject: Arc<S>,
    settings: Settings,
    walk: Walk,
    /// Events that the walk's mutant has omitted or delayed.
    lacking: u64,
    /// Whether only the walk's mutant may leave what is judged now: the program itself may not.
    is_beyond: bool,
    /// Images that the walk may still judge.
    left: u64,
    /// A walk for second crashes continues after one in this many crash points.
    one_in: u64,
    /// A walk judges one in this many crash points.
    spread: u64,
    /// Further places at which a walk for second crashes continues, always after a kill.
    aims: BTreeSet<usize>,
    /// The lines that the history's persists make durable, in a hunt.
    persisted: Option<Persisted>,
    crash: Crash,
    /// The part of the media's memory that the current history may use.
    memory: Memory,
    random: Random,
    seen: HashSet<u64>,
    /// After this time no further crash point is judged.
    deadline: Option<Instant>,
    report: Report,
}

/// A recorded run of a history.
pub(crate) struct Run<S: Subject> {
    pub(crate) log: EventLog,
    ops: Vec<S::Op>,
    answers: Vec<S::Answer>,
    /// The place in the log where crash points begin...
    from: usize,
    /// ...and end.
    until: usize,
    /// Number of crashes before it.
    crashes: u32,
    /// Number of logical threads.
    threads: u32,
    /// The history's [room](History::room).
    room: u64,
    /// Ranges of the log that a mutant has swapped, ascending: there the log is not the unmutated program's.
    swapped: Vec<Range<usize>>,
}

impl<S: Subject> Run<S> {
    /// Returns the approximate number of crash points.
    fn crash_points(&self) -> u64 {
        let events = &self.log.events;
        let within = events.get(self.from..self.until.min(events.len()));
        let after = within.unwrap_or_default().iter();
        after
            .filter(|event| {
                matches!(
                    event.kind,
                    EventKind::Fence | EventKind::Invoke(_) | EventKind::Ack(_)
                )
            })
            .count() as u64
    }
}

/// The outcome of a run: its answers and where crash points begin, and its log.
type Ran<A> = (Result<(Vec<A>, usize), String>, EventLog);

const NOTHING_RAN: &str = "the scheduler ran nothing";

impl<S: Subject> Run<S> {
    fn of(
        history: &History<S::Op>,
        crashes: u32,
        ran: Result<Ran<S::Answer>, String>,
    ) -> Result<Run<S>, Box<Failure>> {
        let outright = |message| match crashes {
            0 => Failure::outright(format!("without any crash: {message}")),
            _ => Failure::outright(message),
        };
        let (ran, log) = ran.map_err(outright)?;
        let (answers, from) = ran.map_err(|message| {
            let mut failure = outright(message);
            if history.threads > 1 {
                let answers: &[S::Answer] = &[];
                failure.schedule = diagram(&log, log.events.len(), &history.ops, answers);
                failure.preemptions = preemptions(&log, log.events.len());
            }
            failure
        })?;
        Ok(Run {
            log,
            ops: history.ops.clone(),
            answers,
            from,
            until: usize::MAX,
            crashes,
            threads: history.threads,
            room: history.room,
            swapped: Vec::new(),
        })
    }
}

impl<S: Subject> Clone for Run<S> {
    fn clone(&self) -> Run<S> {
        Run {
            log: self.log.clone(),
            ops: self.ops.clone(),
            answers: self.answers.clone(),
            swapped: self.swapped.clone(),
            ..*self
        }
    }
}

/// The states that a crash at one point may leave, and the operations in flight there.
struct Expected<S: Subject> {
    allowed: Vec<Rc<S::State>>,
    in_flight: Vec<S::Op>,
    hash: u64,
}

impl<S: Subject> Expected<S> {
    fn of(expectation: &Expectation<S>, subject: &S) -> Expected<S> {
        let allowed = expectation.allowed(subject);
        Expected {
            hash: hash_of_states(&allowed),
            allowed,
            in_flight: expectation.in_flight().into_iter().cloned().collect(),
        }
    }
}

impl<S: Subject> Expected<S> {
    /// Returns the expectation after the crash.
    fn left(&self) -> Expectation<S> {
        Expectation::from(self.allowed.iter().map(|state| S::State::clone(state)))
    }
}

impl<S: Subject> Explorer<S> {
    /// Creates an explorer with its own memory.
    pub fn new(subject: impl Into<Arc<S>>, settings: Settings) -> Result<Explorer<S>, String> {
        let subject = subject.into();
        let memory = Memory::new(settings.memory).map_err(|error| error.to_string())?;
        Ok(Explorer {
            report: Report::new(&*subject, settings.model, settings.seed),
            subject,
            crash: Crash::new(memory.clone()),
            memory,
            random: Random(settings.seed),
            seen: HashSet::new(),
            deadline: None,
            settings,
            walk: Walk::Whole,
            lacking: 0,
            is_beyond: false,
            left: u64::MAX,
            one_in: 1,
            spread: 1,
            aims: BTreeSet::new(),
            persisted: None,
        })
    }

    /// Returns the report so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    pub(crate) fn report_mut(&mut self) -> &mut Report {
        &mut self.report
    }

    /// Ends the exploration and returns the report.
    pub fn into_report(self) -> Report {
        self.report
    }

    /// Judges no crash point after this time. The current history is still followed to its end.
    pub fn stop_at(&mut self, deadline: Instant) {
        self.deadline = Some(deadline);
    }

    pub(crate) fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Explores one history up to its first failure, which is returned and added to the report.
    pub fn explore(&mut self, history: &History<S::Op>) -> Result<(), Box<Failure>> {
        let started = Instant::now();
        self.random = Random(self.settings.seed ^ history.seed.rotate_left(32));
        // An image's hash does not identify its history.
        self.seen.clear();
        self.memory = self.crash.memory().first(history.room);
        let explored = apart(|| match history.legs.filter(|_| history.threads > 1) {
            Some(legs) => self.nearly_in_turn(history, legs),
            None => {
                let run = self.record(history, Start::Empty, 0)?;
                self.report.note_history(&run.log, run.from, run.ops.len());
                self.survey(history);
                self.walk(&run, self.beginning(), self.nothing(), false)?;
                self.preempt(history)
            }
        });
        self.report.elapsed += started.elapsed();
        explored.map_err(|mut failure| {
            failure.of(history);
            self.report.failures.push(Failure::clone(&failure));
            failure
        })
    }

    /// Returns the expectation before any operation.
    fn nothing(&self) -> Expectation<S> {
        Expectation::from([S::State::default()])
    }

    /// Records the run of a history after this many crashes.
    pub(crate) fn record(
        &mut self,
        history: &History<S::Op>,
        start: Start,
        crashes: u32,
    ) -> Result<Run<S>, Box<Failure>> {
        let body = self.body(history, start);
        let ran = if history.has_threads() {
            let seed = self.settings.seed ^ history.seed.rotate_left(17);
            let ran = caught(|| schedule::run(&self.crash, seed, body).ok_or(NOTHING_RAN.into()));
            self.report.met.note(self.crash.take_meetings());
            ran
        } else {
            Ok(body())
        };
        Run::of(history, crashes, ran)
    }

    /// Records a run of a history of several threads in which each is held back whenever it leaves this line of source.
    pub(crate) fn record_behind(
        &mut self,
        history: &History<S::Op>,
        site: Site,
    ) -> Result<Run<S>, Box<Failure>> {
        let body = self.body(history, Start::Empty);
        let seed = self.settings.seed ^ history.seed.rotate_left(23);
        let ran = caught(|| schedule::behind(&self.crash, seed, site, body).ok_or(NOTHING_RAN.into()));
        self.report.met.note(self.crash.take_meetings());
        Run::of(history, 0, ran)
    }

    /// Returns a closure that runs a history and returns its outcome and log.
    fn body(
        &self,
        history: &History<S::Op>,
        start: Start,
    ) -> impl Fn() -> Ran<S::Answer> + Send + Sync + use<S> {
        let (crash, subject) = (self.crash.clone(), Arc::clone(&self.subject));
        let (history, steps) = (Arc::new(history.clone()), self.settings.steps);
        let memory = self.memory.clone();
        move || {
            crash.begin(steps);
            crash.record();
            let ran = caught(|| carry_out(&crash, &memory, &subject, &history, start));
            let log = crash.recorded();
            (crash.end().outcome(ran), log)
        }
    }
}
