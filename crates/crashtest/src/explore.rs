//! Exploration: a history runs once, and every image that a crash amid it may leave is judged.
//!
//! 1. *Record.* The history runs to its end; the log is kept.
//! 2. *Walk.* The log is followed event by event. Before an event that makes something durable, and after each
//!    acknowledgement, the images that a crash may leave are those that the tracker describes.
//! 3. *Probe.* Each image is opened, recovered and judged, and everything is put back.
//! 4. *Again.* A share of the images is opened, recovered and used a little with a log of its own, which is walked in
//!    the same way: a second crash, and a third. So is what a killed process leaves, while the power stays on.
//!
//! | file | idea |
//! |---|---|
//! | `walk` | along a log, from crash point to crash point |
//! | `aim` | where a hunt kills the process |
//! | `image` | the images of one crash point |
//! | `again` | what comes after a crash, up to the next one |
//! | `carry` | histories carried out |
//! | `panics` | panics of what is tested |
//! | `survey` | what a history reaches |
//! | `shrink` | of what fails, as little as still fails |
//!
//! I1 An image that has none of the stores since the last crash point of the same acknowledgement was judged there,
//!    and is not judged again.
//! I2 The same seed explores the same images in the same order.

mod again;
mod aim;
mod carry;
mod image;
mod panics;
mod shrink;
mod survey;
mod walk;

pub(crate) use carry::Start;
pub use panics::silence_findings;

use crate::choose::Random;
use crate::expect::{Expectation, hash_of_states};
use crate::history::History;
use crate::log::{Log, What};
use crate::model::Model;
use crate::mutate::Mutant;
use crate::report::{Failure, Report};
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

/// What the log calls the creation of the structure.
const CREATION: u32 = u32::MAX;

/// How to explore.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The memory model.
    pub model: Model,
    /// What everything left to chance depends on.
    pub seed: u64,
    /// Bytes of memory.
    pub memory: u64,
    /// Accesses of one run, at most; more are a hang.
    pub steps: u64,
    /// Images of one crash point that are judged exhaustively; if there are more, the strategies' images and a sample
    /// are judged.
    pub exhaustive: usize,
    /// Images sampled at a crash point that has too many.
    pub samples: usize,
    /// Of so many images one is judged deeply (0: none).
    pub deep_share: u64,
    /// Of so many images one is the start of a history of its own, up to the next crash (0: none).
    pub again_share: u64,
    /// At one of so many crash points the process is also killed, and what comes after it is a history of its own, up
    /// to the next crash (0: none). What the killed process had not made durable may still be lost then.
    pub kill_share: u64,
    /// How many crashes may follow on each other.
    pub crashes: u32,
}

/// Which images of a history to judge.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Walk {
    /// All.
    Whole,
    /// Those of a mutant, at crash points at which the whole program cannot leave all of them.
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

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            model: Model::default(),
            seed: 1,
            memory: 16 << 20,
            steps: 2_000_000,
            exhaustive: 64,
            samples: 16,
            deep_share: 200,
            again_share: 200,
            kill_share: 100,
            crashes: 3,
        }
    }
}

/// Explores histories of a subject, one after the other.
pub struct Explorer<S: Subject> {
    subject: Arc<S>,
    settings: Settings,
    walk: Walk,
    /// Events that the walk's mutant has left out or put off.
    lacking: u64,
    /// Images that the walk may still judge.
    left: u64,
    /// At one of so many crash points a walk that looks for second crashes goes on...
    one_in: u64,
    /// ...and judges one of so many of those that follow...
    spread: u64,
    /// ...and after a kill at each of these.
    aims: BTreeSet<usize>,
    /// What the persists of the history make durable, in a hunt.
    persisted: Option<Persisted>,
    crash: Crash,
    random: Random,
    seen: HashSet<u64>,
    report: Report,
}

/// A history that has run.
pub(crate) struct Run<S: Subject> {
    pub(crate) log: Log,
    ops: Vec<S::Op>,
    answers: Vec<S::Answer>,
    /// Where in the log crash points begin.
    from: usize,
    /// The crashes before it.
    crashes: u32,
    /// How many logical threads carried it out.
    threads: u32,
    /// Where the log is not the whole program's, in ascending order: what a mutant has swapped.
    swapped: Vec<Range<usize>>,
}

impl<S: Subject> Run<S> {
    /// How many crash points there are, roughly.
    fn crash_points(&self) -> u64 {
        let after = self.log.events[self.from..].iter();
        after
            .filter(|event| matches!(event.what, What::Fence | What::Invoke(_) | What::Ack(_)))
            .count() as u64
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

/// What is expected.
struct Known<S: Subject> {
    allowed: Vec<Rc<S::State>>,
    in_flight: Vec<S::Op>,
    hash: u64,
}

impl<S: Subject> Known<S> {
    fn of(expectation: &Expectation<S>, subject: &S) -> Known<S> {
        let allowed = expectation.allowed(subject);
        Known {
            hash: hash_of_states(&allowed),
            allowed,
            in_flight: expectation.in_flight().into_iter().cloned().collect(),
        }
    }
}

impl<S: Subject> Known<S> {
    /// What is expected after the crash.
    fn left(&self) -> Expectation<S> {
        Expectation::from(self.allowed.iter().map(|state| S::State::clone(state)))
    }
}

impl<S: Subject> Explorer<S> {
    /// An explorer with a memory of its own.
    pub fn new(subject: impl Into<Arc<S>>, settings: Settings) -> Result<Explorer<S>, String> {
        let subject = subject.into();
        let memory = Memory::new(settings.memory).map_err(|error| error.to_string())?;
        Ok(Explorer {
            report: Report::new(subject.name(), settings.model, settings.seed),
            subject,
            crash: Crash::new(memory),
            random: Random(settings.seed),
            seen: HashSet::new(),
            settings,
            walk: Walk::Whole,
            lacking: 0,
            left: u64::MAX,
            one_in: 1,
            spread: 1,
            aims: BTreeSet::new(),
            persisted: None,
        })
    }

    /// What has been explored so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Begins a hunt: takes away what locked instructions complete on x86-64.
    pub(crate) fn only_fences_complete(&mut self) {
        self.settings.model.locked_completes = false;
    }

    /// Begins to hunt with another history: what its persists make durable is not known yet.
    pub(crate) fn know_nothing_of_persists(&mut self) {
        self.persisted = Some(Persisted::default());
    }

    /// Notes, in a hunt, what the persists of a run have made durable.
    pub(crate) fn note_persisted(&mut self, log: &Log) {
        if let Some(persisted) = &mut self.persisted {
            persisted.note(log);
        }
    }

    pub(crate) fn report_mut(&mut self) -> &mut Report {
        &mut self.report
    }

    /// The same, at the end.
    pub fn into_report(self) -> Report {
        self.report
    }

    /// Explores one history. The first failure ends it, and is returned as well as added to the report.
    pub fn explore(&mut self, history: &History<S::Op>) -> Result<(), Box<Failure>> {
        let started = Instant::now();
        self.random = Random(self.settings.seed ^ history.seed.rotate_left(32));
        // What was judged in one history cannot be told from what is judged in another.
        self.seen.clear();
        let explored = self.record(history, Start::Empty, 0).and_then(|run| {
            self.report.note_history(&run.log, run.from, run.ops.len());
            self.survey(history);
            self.walk(&run, self.beginning(), self.nothing(), false)
        });
        self.report.elapsed += started.elapsed();
        explored.map_err(|mut failure| {
            failure.of(history);
            self.report.failures.push(Failure::clone(&failure));
            failure
        })
    }

    /// Judges at most so many images of a mutant of a history that has run; also says how many events that left out or
    /// put off. The report is told of nothing but how many states that were.
    pub(crate) fn walk_as(
        &mut self,
        history: &History<S::Op>,
        run: &Run<S>,
        walk: Walk,
        images: u64,
    ) -> (Result<(), Box<Failure>>, u64) {
        let report = self.report.clone();
        self.seen.clear();
        self.walk = walk;
        self.lacking = 0;
        self.left = images;
        self.one_in = (run.crash_points() / (again::PLACES / 2)).max(1);
        self.random = Random(self.settings.seed ^ history.seed.rotate_left(32));
        let walked = match walk.mutant().and_then(|mutant| mutant.swapped(&run.log)) {
            Some((log, swapped)) => {
                self.lacking += swapped.len() as u64;
                let run = Run {
                    log,
                    swapped,
                    ..run.clone()
                };
                self.walk_aiming(&run)
            }
            None => self.walk_aiming(run),
        };
        self.walk = Walk::Whole;
        self.left = u64::MAX;
        let judged = self.report.states - report.states;
        self.report = report;
        self.report.mutant_states += judged;
        let walked = walked.map_err(|mut failure| {
            failure.of(history);
            failure
        });
        (walked, self.lacking)
    }

    /// Walks along a run from its beginning; where it looks for what comes after a kill, some places are chosen.
    fn walk_aiming(&mut self, run: &Run<S>) -> Result<(), Box<Failure>> {
        self.aims = match self.walk {
            Walk::Again(mutant) => {
                let persisted = self.persisted.as_ref();
                let lines = persisted.and_then(|persisted| persisted.lines(mutant.site, mutant.lacks));
                let file = mutant.site.file();
                aim::places(&run.log, run.from, file, lines, again::PLACES, &mut self.random)
            }
            _ => BTreeSet::new(),
        };
        self.walk(run, self.beginning(), self.nothing(), false)
    }

    /// What is expected before anything was done.
    fn nothing(&self) -> Expectation<S> {
        Expectation::from([S::State::default()])
    }

    /// Runs a history, after so many crashes.
    pub(crate) fn record(
        &self,
        history: &History<S::Op>,
        start: Start,
        crashes: u32,
    ) -> Result<Run<S>, Box<Failure>> {
        let (crash, subject) = (self.crash.clone(), Arc::clone(&self.subject));
        let (shared, steps) = (Arc::new(history.clone()), self.settings.steps);
        let body = move || {
            crash.begin(steps);
            crash.record();
            let ran = caught(|| carry_out(&crash, &subject, &shared, start));
            let log = crash.recorded();
            let ran = if crash.end().hung {
                Err("it hangs".into())
            } else {
                ran
            };
            (ran, log)
        };
        let ran = if history.threads > 1 {
            let seed = self.settings.seed ^ history.seed.rotate_left(17);
            caught(|| schedule::run(&self.crash, seed, body).ok_or("the scheduler ran nothing".into()))
        } else {
            Ok(body())
        };
        let outright = |message| Failure::outright(format!("without any crash: {message}"));
        let (ran, log) = ran.map_err(outright)?;
        let (answers, from) = ran.map_err(outright)?;
        Ok(Run {
            log,
            ops: history.ops.clone(),
            answers,
            from,
            crashes,
            threads: history.threads,
            swapped: Vec::new(),
        })
    }
}
