//! Exploration: a history runs once, and every image that a crash amid it may leave is judged.
//!
//! 1. *Record.* The history runs to its end; the log is kept.
//! 2. *Walk.* The log is followed event by event. Before an event that makes something durable, and after each
//!    acknowledgement, the images that a crash may leave are those that the tracker describes.
//! 3. *Probe.* Each image is opened, recovered and judged, and everything is put back.
//! 4. *Again.* A share of the images is opened, recovered and used a little with a log of its own, which is walked in
//!    the same way: a second crash, and a third. So is what a killed process leaves, while the power stays on.
//!
//! What fails is made as small as possible: `shrink`.
//!
//! I1 An image that has none of the stores since the last crash point of the same acknowledgement was judged there,
//!    and is not judged again.
//! I2 The same seed explores the same images in the same order.

use crate::choose::{Chooser, Contents, Fresh, LineSet, Picked, Plan, Random};
use crate::dirty::DirtyReads;
use crate::expect::{Expectation, hash_of_states};
use crate::history::History;
use crate::log::{Event, Log, Site, What};
use crate::media::Ended;
use crate::model::{Model, Tracker, Volatile};
use crate::mutate::Mutant;
use crate::report::{Failure, Missing, Report};
use crate::{Crash, Depth, Subject, Verdict, schedule};
use pmem::{Memory, Pool, PoolOptions};
use std::cell::Cell;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

mod shrink;

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
    /// All of a mutant, most of them interrupted again.
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
    /// Events left out by the walk's mutant.
    lacking: u64,
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

/// A crash point.
struct At<'k, S: Subject> {
    known: &'k Known<S>,
    created: bool,
    place: usize,
    crashes: u32,
}

/// A probe's outcome.
struct Probed {
    result: Result<usize, String>,
    picked: Vec<Picked>,
    ended: Ended,
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
        })
    }

    /// What has been explored so far.
    pub fn report(&self) -> &Report {
        &self.report
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
            self.report.note_history(&run.log, run.ops.len());
            let expectation = Expectation::from([S::State::default()]);
            self.walk(&run, self.beginning(), expectation, false)
        });
        self.report.elapsed += started.elapsed();
        explored.map_err(|mut failure| {
            failure.of(history);
            self.report.failures.push(Failure::clone(&failure));
            failure
        })
    }

    /// Judges images of a history that has run, without adding to the report; also says how many events were left out.
    pub(crate) fn walk_as(
        &mut self,
        history: &History<S::Op>,
        run: &Run<S>,
        walk: Walk,
    ) -> (Result<(), Box<Failure>>, u64) {
        let report = self.report.clone();
        self.walk = walk;
        self.lacking = 0;
        self.random = Random(self.settings.seed ^ history.seed.rotate_left(32));
        let walked = self.walk(
            run,
            self.beginning(),
            Expectation::from([S::State::default()]),
            false,
        );
        self.walk = Walk::Whole;
        self.report = report;
        let walked = walked.map_err(|mut failure| {
            failure.of(history);
            failure
        });
        (walked, self.lacking)
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
        })
    }

    /// Follows the log of a run and judges what crashes amid it may leave.
    fn walk(
        &mut self,
        run: &Run<S>,
        (start, tracker): (usize, Tracker),
        mut expectation: Expectation<S>,
        mut created: bool,
    ) -> Result<(), Box<Failure>> {
        let mark = self.crash.mark_base();
        let outer = self.crash.swap_tracker(tracker);
        let walked = self.walk_on(run, start, &mut expectation, &mut created);
        self.crash.swap_tracker(outer);
        self.crash.reset_base(mark);
        walked
    }

    /// Where a walk starts that knows nothing yet.
    fn beginning(&self) -> (usize, Tracker) {
        (0, Tracker::new(self.settings.model))
    }

    fn walk_on(
        &mut self,
        run: &Run<S>,
        start: usize,
        expectation: &mut Expectation<S>,
        created: &mut bool,
    ) -> Result<(), Box<Failure>> {
        let mut course = Course {
            news: News::default(),
            known: None,
            dirty: DirtyReads::default(),
            whole: match self.walk {
                Walk::Differing(_) => Some(Tracker::new(self.settings.model)),
                _ => None,
            },
        };
        for (place, event) in run.log.events.iter().enumerate().skip(start) {
            let left_out = self
                .walk
                .mutant()
                .is_some_and(|mutant| mutant.leaves_out(&run.log, event));
            self.lacking += u64::from(left_out);
            let tells = match event.what {
                What::Invoke(_) => true,
                _ => !left_out && self.crash.slow().tracker.raises(event),
            };
            if tells {
                self.point(run, place, expectation, *created, &mut course)?;
            }
            course
                .dirty
                .step(&self.crash.slow().tracker, &run.log, place, event)
                .map_err(Failure::outright)?;
            if let Some(whole) = &mut course.whole {
                whole.step(place as u32, event, &mut ());
            }
            if left_out {
                continue;
            }
            match event.what {
                What::Invoke(CREATION) => {}
                What::Ack(CREATION) => *created = true,
                What::Invoke(op) => expectation.invoke(op, run.ops[op as usize].clone()),
                What::Ack(op) => {
                    let (op, answer) = (op, &run.answers[op as usize]);
                    if !expectation.acknowledge(&self.subject, op, answer) {
                        let op = &run.ops[op as usize];
                        let message = format!("no order of operations lets {op:?} answer {answer:?}");
                        return Err(Failure::outright(message));
                    }
                }
                What::Store { word, kind, .. } if kind.matters() => {
                    course.news.lines.insert(word / 8);
                }
                _ => {}
            }
            self.crash.step(place as u32, event);
            match event.what {
                What::Invoke(_) => course.known = None,
                What::Ack(_) => {
                    // Everything is judged anew, more strictly.
                    course.known = None;
                    course.news.read = false;
                    self.point(run, place + 1, expectation, *created, &mut course)?;
                }
                _ => {}
            }
        }
        self.point(run, run.log.events.len(), expectation, *created, &mut course)
    }

    /// Judges what a crash before the event at `place` may leave.
    fn point(
        &mut self,
        run: &Run<S>,
        place: usize,
        expectation: &Expectation<S>,
        created: bool,
        course: &mut Course<S>,
    ) -> Result<(), Box<Failure>> {
        let differs = |whole: &Tracker| self.crash.slow().tracker.lags_behind(whole);
        if place < run.from || !course.whole.as_ref().is_none_or(differs) {
            return Ok(());
        }
        self.report.crash_points += 1;
        let Course { news, known, .. } = course;
        let known = known.get_or_insert_with(|| Known::of(expectation, &self.subject));
        let mut fresh = Fresh::any();
        if news.read {
            fresh = Fresh {
                since: news.since,
                lines: news
                    .lines
                    .iter()
                    .copied()
                    .filter(|&line| self.crash.was_read(line))
                    .collect(),
                met: false,
            };
            if fresh.lines.is_empty() {
                // Whatever recovery and judge would read, they have read.
                return Ok(());
            }
        } else {
            self.crash.new_epoch();
        }
        let at = At {
            known,
            created,
            place,
            crashes: run.crashes + 1,
        };
        let again = self.report.again;
        self.images(run, &at, &fresh)?;
        let kills = match self.walk {
            Walk::Whole => self.settings.kill_share,
            Walk::Again(_) => 4,
            Walk::Differing(_) => 0,
        };
        if kills > 0 && at.crashes < self.settings.crashes && self.random.next().is_multiple_of(kills) {
            self.after_kill(run, &at)?;
        }
        *news = News {
            since: place as u32,
            lines: LineSet::default(),
            // Histories in between had epochs of their own.
            read: self.report.again == again,
        };
        Ok(())
    }

    fn images(&mut self, run: &Run<S>, at: &At<'_, S>, fresh: &Fresh) -> Result<(), Box<Failure>> {
        // The same for all, so that the same decisions lead to the same next question.
        let chance = self.random.next();
        let mut path = Vec::new();
        for _ in 0..self.settings.exhaustive {
            let probed = self.image(run, at, Plan::Path(path), chance, fresh.clone())?;
            let mut numbers: Vec<(usize, usize)> =
                probed.iter().map(|picked| (picked.number, picked.of)).collect();
            while let Some((number, of)) = numbers.pop() {
                if number + 1 < of {
                    numbers.push((number + 1, of));
                    break;
                }
            }
            if numbers.is_empty() {
                return Ok(());
            }
            path = numbers.into_iter().map(|(number, _)| number).collect();
        }
        self.report.sampled_points += 1;
        for plan in strategies(&mut self.random, self.settings.samples) {
            let chance = self.random.next();
            self.image(run, at, plan, chance, Fresh::any())?;
        }
        Ok(())
    }

    /// Judges one image; what was picked for it.
    fn image(
        &mut self,
        run: &Run<S>,
        at: &At<'_, S>,
        plan: Plan,
        chance: u64,
        fresh: Fresh,
    ) -> Result<Vec<Picked>, Box<Failure>> {
        let dice = self.random.next();
        let share = |share: u64, part: u64| share > 0 && part.is_multiple_of(share);
        let again_share = match self.walk {
            Walk::Whole => self.settings.again_share,
            Walk::Again(_) if at.crashes == 1 => 2,
            Walk::Differing(_) | Walk::Again(_) => 0,
        };
        let depth = if share(self.settings.deep_share, dice & 0xffff) {
            Depth::Deep
        } else {
            Depth::Shallow
        };
        let chooser = Chooser::new(plan, Volatile::of(chance), Random(chance), fresh);
        let random = Random(!chance);
        let mut probed = self.probe(at, chooser, depth, random);
        self.report.images += 1;
        if self.seen.insert(probed.ended.signature ^ at.known.hash) {
            self.report.states += 1;
        }
        let state = match &probed.result {
            Ok(which) => Rc::clone(&at.known.allowed[*which]),
            Err(_) => {
                probed = self.least(probed, |explorer, plan| {
                    let chooser = Chooser::new(plan, Volatile::of(chance), Random(chance), Fresh::any());
                    explorer.probe(at, chooser, depth, random)
                });
                let message = probed.result.err().unwrap_or_default();
                return Err(self.failure(run, at, &probed.picked, message));
            }
        };
        if at.crashes < self.settings.crashes && share(again_share, dice >> 16 & 0xffff) {
            self.again(run, at, &probed.picked, &state)?;
        }
        Ok(probed.picked)
    }

    /// Opens and judges an image.
    fn probe(&self, at: &At<'_, S>, chooser: Chooser, depth: Depth, random: Random) -> Probed {
        let crash = &self.crash;
        crash.slow().chooser = chooser;
        crash.begin(self.settings.steps);
        let result = caught(|| {
            let live = open(&*self.subject, crash, at.created)?;
            self.subject.recover(&live)?;
            let allowed: Vec<&S::State> = at.known.allowed.iter().map(|state| &**state).collect();
            let in_flight: Vec<&S::Op> = at.known.in_flight.iter().collect();
            self.subject.judge(
                &live,
                Verdict {
                    allowed: &allowed,
                    in_flight: &in_flight,
                    depth,
                    random,
                },
            )
        });
        let picked = std::mem::take(&mut crash.slow().chooser.picked);
        let ended = crash.end();
        Probed {
            result: if ended.hung {
                Err("it hangs".into())
            } else {
                result
            },
            picked,
            ended,
        }
    }

    /// A history that starts with the recovery of an image, and is interrupted in its turn.
    fn again(
        &mut self,
        run: &Run<S>,
        at: &At<'_, S>,
        picked: &[Picked],
        state: &S::State,
    ) -> Result<(), Box<Failure>> {
        let contents = picked.iter().map(|picked| (picked.line, picked.content));
        let after = self.go_on(run, at, contents.collect(), state)?;
        let mark = self.crash.mark_base();
        for picked in picked {
            self.crash.guarantee_line(picked.line, &picked.content);
        }
        let walked = self.walk(&after, self.beginning(), at.known.left(), at.created);
        self.crash.reset_base(mark);
        walked.map_err(|mut failure| {
            let earlier = self.failure(run, at, picked, "the power was lost".into());
            failure.earlier.insert(0, *earlier);
            failure
        })
    }

    /// A history that starts after the process was killed: nothing is lost by that, and nothing becomes durable either.
    fn after_kill(&mut self, run: &Run<S>, at: &At<'_, S>) -> Result<(), Box<Failure>> {
        let tracker = self.crash.slow().tracker.clone();
        let visible = |number| Some((number, tracker.line(number)?.visible(self.crash.content(number))));
        let contents = tracker.unsettled().filter_map(visible).collect();
        let after = self.go_on(run, at, contents, &at.known.allowed[0])?;
        // The log goes on where the killed process has left it.
        let Log {
            mut events,
            mut joins,
        } = run.log.clone();
        events.truncate(at.place);
        events.push(Event {
            what: What::Killed,
            thread: 0,
            site: std::panic::Location::caller(),
        });
        let (known_ops, known_joins) = (run.ops.len() as u32, joins.len() as u32);
        joins.extend(after.log.joins.into_iter().skip(1));
        events.extend(after.log.events.into_iter().map(|mut event| {
            match &mut event.what {
                What::WriteBack { joins, .. } if *joins > 0 => *joins += known_joins - 1,
                What::Invoke(op) | What::Ack(op) if *op != CREATION => *op += known_ops,
                _ => {}
            }
            event
        }));
        let whole = Run {
            log: Log { events, joins },
            ops: run.ops.iter().cloned().chain(after.ops).collect(),
            answers: run.answers.iter().cloned().chain(after.answers).collect(),
            from: at.place,
            crashes: at.crashes,
            threads: run.threads,
        };
        let walked = self.walk(&whole, (at.place, tracker), at.known.left(), at.created);
        walked.map_err(|mut failure| {
            let earlier = self.failure(run, at, &[], "the process was killed".into());
            failure.earlier.insert(0, *earlier);
            failure
        })
    }

    /// Recovers what these contents are the image of, and uses it a little.
    fn go_on(
        &mut self,
        run: &Run<S>,
        at: &At<'_, S>,
        contents: Contents,
        state: &S::State,
    ) -> Result<Run<S>, Box<Failure>> {
        let in_flight: Vec<&S::Op> = at.known.in_flight.iter().collect();
        let history = History {
            ops: self.subject.follow_up(state, &in_flight, &mut self.random),
            seed: self.random.next(),
            prepared: 0,
            threads: run.threads,
        };
        let plan = Plan::Fixed(contents);
        self.crash.slow().chooser = Chooser::new(plan, Volatile::Last, Random(0), Fresh::any());
        let again = self.record(&history, Start::Again { created: at.created }, at.crashes);
        let again = again.map_err(|mut failure| {
            failure.message = format!("after {} crashes: {}", at.crashes, failure.message);
            failure
        })?;
        self.report.again += 1;
        self.report.note_sites(&again.log);
        Ok(again)
    }

    fn failure(&self, run: &Run<S>, at: &At<'_, S>, picked: &[Picked], message: String) -> Box<Failure> {
        let slow = self.crash.slow();
        let mut missing = Vec::new();
        for picked in picked {
            let Some(line) = slow.tracker.line(picked.line) else {
                continue;
            };
            let pending: Vec<_> = line.pending().collect();
            for (i, &(word, value, event, matters)) in pending.iter().enumerate() {
                let there = picked.content[word as usize];
                // What a later store has replaced is not missed.
                let replaced = || {
                    pending[i + 1..]
                        .iter()
                        .any(|later| later.0 == word && later.1 == there)
                };
                if matters && there != value && !replaced() {
                    missing.push(Missing {
                        site: run.log.events[event as usize].site,
                        word: picked.line * 8 + word,
                        value,
                        there,
                    });
                }
            }
        }
        let site: Option<Site> = run.log.events.get(at.place).map(|event: &Event| event.site);
        Box::new(Failure {
            message,
            crashes: at.crashes,
            place: at.place,
            site,
            event: run.log.events.get(at.place).map(|event| event.what),
            in_flight: at.known.in_flight.iter().map(|op| format!("{op:?}")).collect(),
            missing,
            ..Failure::default()
        })
    }
}

/// What is known on the way along a log.
struct Course<S: Subject> {
    news: News,
    /// What is expected, since that changed last.
    known: Option<Known<S>>,
    dirty: DirtyReads,
    /// What the whole program guarantees, where only what a mutant does not is of interest.
    whole: Option<Tracker>,
}

/// What a history starts from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Start {
    /// An empty memory.
    Empty,
    /// What a crash has left, where the structure's creation had been acknowledged or not.
    Again { created: bool },
}

/// Carries a history out, by as many logical threads as it wants: its answers, and where in the log crash points begin.
///
/// What a crash has left is recovered before the operations, after them, or by another thread beside them: a heap and
/// its indexes are in use at once.
fn carry_out<S: Subject>(
    crash: &Crash,
    subject: &Arc<S>,
    history: &Arc<History<S::Op>>,
    start: Start,
) -> Result<(Vec<S::Answer>, usize), String> {
    let mut from = 0;
    let live = match start {
        Start::Empty => {
            let options = PoolOptions {
                page_size: 64 << 10,
                ..PoolOptions::default()
            };
            let pool = Pool::create_in(crash.memory(), &options, crash.clone()).map_err(|e| e.to_string())?;
            from = crash.recorded_so_far();
            crash.invoke(CREATION);
            let live = subject.create(pool)?;
            crash.acknowledge(CREATION);
            live
        }
        Start::Again { created: true } => open(&**subject, crash, true)?,
        Start::Again { created: false } => {
            crash.invoke(CREATION);
            let live = open(&**subject, crash, false)?;
            crash.acknowledge(CREATION);
            live
        }
    };
    let to_recover = matches!(start, Start::Again { .. });
    let at_once = history.threads <= 1 && history.seed.is_multiple_of(2);
    if to_recover && at_once {
        subject.recover(&live)?;
    }
    let one = |number: u32, live: &S::Live| {
        crash.invoke(number);
        let answer = subject.apply(live, &history.ops[number as usize])?;
        crash.acknowledge(number);
        Ok::<_, String>(answer)
    };
    let count = history.ops.len() as u32;
    let alone = if history.threads > 1 {
        history.prepared
    } else {
        count
    };
    let mut answers = Vec::with_capacity(history.ops.len());
    for number in 0..alone {
        if number == history.prepared && number > 0 {
            from = crash.recorded_so_far();
        }
        answers.push(one(number, &live)?);
    }
    if history.threads > 1 {
        if alone > 0 {
            from = crash.recorded_so_far();
        }
        answers.extend(by_threads(crash, subject, history, live, to_recover)?);
    } else if to_recover && !at_once {
        subject.recover(&live)?;
    }
    Ok((answers, from))
}

/// Deals the operations after the preparation out to logical threads; their answers, in the history's order.
fn by_threads<S: Subject>(
    crash: &Crash,
    subject: &Arc<S>,
    history: &Arc<History<S::Op>>,
    live: S::Live,
    to_recover: bool,
) -> Result<Vec<S::Answer>, String> {
    let live = Arc::new(live);
    let (first, end) = (history.prepared, history.ops.len() as u32);
    let step = history.threads as usize;
    let mut threads: Vec<_> = (0..history.threads)
        .map(|thread| {
            let (crash, subject) = (crash.clone(), Arc::clone(subject));
            let (history, live) = (Arc::clone(history), Arc::clone(&live));
            shuttle::thread::spawn(move || {
                caught(|| {
                    let one = |number: u32| {
                        crash.invoke(number);
                        let answer = subject.apply(&live, &history.ops[number as usize])?;
                        crash.acknowledge(number);
                        Ok((number, answer))
                    };
                    (first + thread..end)
                        .step_by(step)
                        .map(one)
                        .collect::<Result<Vec<_>, String>>()
                })
            })
        })
        .collect();
    if to_recover {
        let (subject, live) = (Arc::clone(subject), Arc::clone(&live));
        threads.push(shuttle::thread::spawn(move || {
            caught(|| subject.recover(&live)).map(|()| Vec::new())
        }));
    }
    // All of them end, whatever becomes of the others.
    let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
    crash.rejoin();
    let mut answers = Vec::new();
    for thread in ended {
        answers.extend(thread.map_err(|_| "a thread panics")??);
    }
    answers.sort_by_key(|(number, _)| *number);
    Ok(answers.into_iter().map(|(_, answer)| answer).collect())
}

/// What has changed since the last crash point at which images were judged.
#[derive(Default)]
struct News {
    since: u32,
    /// Lines stored to since.
    lines: LineSet,
    /// Whether the lines read there, and at those before it with the same expectation, are those of the media's epoch.
    read: bool,
}

/// Opens what a crash has left; what was not created yet may be created now.
fn open<S: Subject>(subject: &S, crash: &Crash, created: bool) -> Result<S::Live, String> {
    let pool = || {
        let pool = Pool::open_in(crash.memory(), crash.clone());
        pool.map_err(|error| format!("the pool does not open: {error}"))
    };
    match subject.open(pool()?)? {
        Some(live) => Ok(live),
        None if created => Err("it is gone".into()),
        None => subject.create(pool()?),
    }
}

/// The order in which images are tried where there are too many.
fn strategies(random: &mut Random, samples: usize) -> Vec<Plan> {
    const NONE: usize = usize::MAX;
    let mut plans = vec![Plan::Lead([NONE; 2]), Plan::Lag([NONE; 2])];
    plans.extend((1..8).map(Plan::PointersFirst));
    plans.extend((0..8).map(|i| Plan::Lag([i, NONE])));
    plans.extend((0..8).map(|i| Plan::Lead([i, NONE])));
    for _ in 0..samples {
        let pair = [random.below(12) as usize, random.below(12) as usize];
        plans.push(match random.below(4) {
            0 => Plan::Lag(pair),
            1 => Plan::Lead(pair),
            _ => Plan::Seeded,
        });
    }
    plans
}

thread_local! {
    /// Whether a panic is a finding.
    static CATCHING: Cell<bool> = const { Cell::new(false) };
}

/// From now on, panics of what is tested are reported as what they are, findings, and not on standard error too.
pub fn silence_findings() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !CATCHING.get() {
            hook(panic);
        }
    }));
}

/// What a run comes to; a panic is an error.
fn caught<R>(run: impl FnOnce() -> Result<R, String>) -> Result<R, String> {
    let outer = CATCHING.replace(true);
    let ran = catch_unwind(AssertUnwindSafe(run));
    CATCHING.set(outer);
    ran.unwrap_or_else(|panic| {
        let said = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|said| (*said).to_string()));
        Err(match said {
            Some(said) => format!("it panics: {said}"),
            None => "it panics".into(),
        })
    })
}
