//! Exploration: a history runs once, and every image that a crash amid it may leave is judged.
//!
//! 1. *Record.* The history runs to its end; the log is kept.
//! 2. *Walk.* The log is followed event by event. Before an event that makes something durable, and after each
//!    acknowledgement, the images that a crash may leave are those that the tracker describes.
//! 3. *Probe.* Each image is opened, recovered and judged, and everything is put back.
//! 4. *Again.* A share of the images is opened, recovered and used a little with a log of its own, which is walked in
//!    the same way: a second crash, and a third.
//!
//! I1 An image that has none of the stores since the last crash point of the same acknowledgement was judged there,
//!    and is not judged again.
//! I2 The same seed explores the same images in the same order.

use crate::dirty::DirtyReads;
use crate::choose::{Chooser, Contents, Fresh, LineSet, Picked, Plan, Random};
use crate::expect::{Expectation, hash_of_states};
use crate::history::History;
use crate::log::{Event, Log, Site, What};
use crate::media::Ended;
use crate::model::{Model, Tracker, Volatile};
use crate::mutate::Mutant;
use crate::report::{Failure, Missing, Report};
use crate::{Crash, Depth, Subject, Verdict, schedule};
use pmem::{Memory, Pool, PoolOptions};
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
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
    /// How many crashes may follow on each other.
    pub crashes: u32,
    /// What is left out, to see whether it is missed.
    pub mutant: Option<Mutant>,
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
            crashes: 3,
            mutant: None,
        }
    }
}

/// Explores histories of a subject, one after the other.
pub struct Explorer<S: Subject> {
    subject: Arc<S>,
    settings: Settings,
    crash: Crash,
    random: Random,
    seen: HashSet<u64>,
    report: Report,
}

/// A history that has run.
struct Run<S: Subject> {
    log: Log,
    ops: Vec<S::Op>,
    answers: Vec<S::Answer>,
    /// Where in the log crash points begin.
    from: usize,
    /// The crashes before it.
    crashes: u32,
}

/// What is known at a crash point.
struct At<S: Subject> {
    allowed: Vec<Rc<S::State>>,
    in_flight: Vec<S::Op>,
    created: bool,
    /// Of the expectation.
    hash: u64,
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

    /// Says from now on what is left out.
    pub fn set_mutant(&mut self, mutant: Option<Mutant>) {
        self.settings.mutant = mutant;
    }

    /// Explores one history. The first failure ends it, and is returned as well as added to the report.
    pub fn explore(&mut self, history: &History<S::Op>) -> Result<(), Box<Failure>> {
        let started = Instant::now();
        self.random = Random(self.settings.seed ^ history.seed.rotate_left(32));
        // What was judged in one history cannot be told from what is judged in another.
        self.seen.clear();
        let explored = self.record(history).and_then(|run| {
            self.report.note_history(&run.log, run.ops.len());
            let expectation = Expectation::from([S::State::default()]);
            self.walk(&run, expectation, false)
        });
        self.report.elapsed += started.elapsed();
        explored.map_err(|mut failure| {
            failure.seed = history.seed;
            failure.operations = history.ops.iter().map(|op| format!("{op:?}")).collect();
            self.report.failures.push(Failure::clone(&failure));
            failure
        })
    }

    /// Runs a history in an empty memory.
    fn record(&self, history: &History<S::Op>) -> Result<Run<S>, Box<Failure>> {
        let (crash, subject) = (self.crash.clone(), Arc::clone(&self.subject));
        let (shared, steps) = (Arc::new(history.clone()), self.settings.steps);
        let body = move || {
            crash.begin(steps);
            crash.record();
            let mut answers: Vec<Option<S::Answer>> = vec![None; shared.ops.len()];
            let mut from = 0;
            let ran = caught(|| run(&crash, &subject, &shared, &mut answers, &mut from));
            let log = crash.recorded();
            let ran = if crash.end().hung { Err("it hangs".into()) } else { ran };
            (ran, log, answers, from)
        };
        let (ran, log, answers, from) = if history.threads > 1 {
            let seed = self.settings.seed ^ history.seed.rotate_left(17);
            let ran = caught(|| schedule::run(&self.crash, seed, body).ok_or("the scheduler ran nothing".into()));
            ran.map_err(|message| Failure::outright(format!("without any crash: {message}")))?
        } else {
            body()
        };
        ran.map_err(|message| Failure::outright(format!("without any crash: {message}")))?;
        Ok(Run {
            log,
            ops: history.ops.clone(),
            // Every operation has answered, or the run has failed.
            answers: answers.into_iter().flatten().collect(),
            from,
            crashes: 0,
        })
    }

    /// Follows the log of a run and judges what crashes amid it may leave.
    fn walk(
        &mut self,
        run: &Run<S>,
        mut expectation: Expectation<S>,
        mut created: bool,
    ) -> Result<(), Box<Failure>> {
        let mark = self.crash.mark_base();
        let outer = self.crash.swap_tracker(Tracker::new(self.settings.model));
        let walked = self.walk_on(run, &mut expectation, &mut created);
        self.crash.swap_tracker(outer);
        self.crash.reset_base(mark);
        walked
    }

    fn walk_on(
        &mut self,
        run: &Run<S>,
        expectation: &mut Expectation<S>,
        created: &mut bool,
    ) -> Result<(), Box<Failure>> {
        let mut news = News::default();
        let mut dirty = DirtyReads::default();
        for (place, event) in run.log.events.iter().enumerate() {
            if self
                .settings
                .mutant
                .is_some_and(|mutant| mutant.leaves_out(&run.log, event))
            {
                continue;
            }
            dirty
                .step(&self.crash.slow().tracker, &run.log, place, event)
                .map_err(Failure::outright)?;
            let explored = place >= run.from;
            let before = match event.what {
                What::Invoke(_) => true,
                _ => self.crash.slow().tracker.raises(event),
            };
            if explored && before {
                self.point(run, place, expectation, *created, &mut news)?;
            }
            match event.what {
                What::Invoke(CREATION) => {}
                What::Ack(CREATION) => *created = true,
                What::Invoke(op) => expectation.invoke(op, run.ops[op as usize].clone()),
                What::Ack(op) => {
                    if !expectation.acknowledge(&self.subject, op, &run.answers[op as usize]) {
                        let (op, answer) = (&run.ops[op as usize], &run.answers[op as usize]);
                        let message = format!("no order of operations lets {op:?} answer {answer:?}");
                        return Err(Failure::outright(message));
                    }
                }
                What::Store { word, kind, .. } if kind.matters() => {
                    news.lines.insert(word / 8);
                }
                _ => {}
            }
            self.crash.step(place as u32, event);
            if matches!(event.what, What::Ack(_)) {
                // Everything is judged anew, more strictly.
                news.read = None;
                if explored {
                    self.point(run, place + 1, expectation, *created, &mut news)?;
                }
            }
        }
        self.point(run, run.log.events.len(), expectation, *created, &mut news)
    }

    /// Judges what a crash before the event at `place` may leave.
    fn point(
        &mut self,
        run: &Run<S>,
        place: usize,
        expectation: &Expectation<S>,
        created: bool,
        news: &mut News,
    ) -> Result<(), Box<Failure>> {
        self.report.crash_points += 1;
        let mut fresh = Fresh::any();
        if let Some(read) = &news.read {
            fresh = Fresh {
                since: news.since,
                lines: news.lines.intersection(read).copied().collect(),
                met: false,
            };
            if fresh.lines.is_empty() {
                // Whatever recovery and judge would read, they have read.
                return Ok(());
            }
        }
        let allowed = expectation.allowed(&self.subject);
        let at = At {
            hash: hash_of_states(&allowed),
            allowed,
            in_flight: expectation.in_flight().into_iter().cloned().collect(),
            created,
            place,
            crashes: run.crashes + 1,
        };
        let mut read = news.read.take().unwrap_or_default();
        self.images(run, &at, &fresh, &mut read)?;
        *news = News {
            since: place as u32,
            lines: LineSet::default(),
            read: Some(read),
        };
        Ok(())
    }

    fn images(
        &mut self,
        run: &Run<S>,
        at: &At<S>,
        fresh: &Fresh,
        read: &mut LineSet,
    ) -> Result<(), Box<Failure>> {
        // The same for all, so that the same decisions lead to the same next question.
        let chance = self.random.next();
        let mut path = Vec::new();
        for _ in 0..self.settings.exhaustive {
            let probed = self.image(run, at, Plan::Path(path), chance, fresh.clone(), read)?;
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
            self.image(run, at, plan, chance, Fresh::any(), read)?;
        }
        Ok(())
    }

    /// Judges one image; what was picked for it.
    fn image(
        &mut self,
        run: &Run<S>,
        at: &At<S>,
        plan: Plan,
        chance: u64,
        fresh: Fresh,
        read: &mut LineSet,
    ) -> Result<Vec<Picked>, Box<Failure>> {
        let dice = self.random.next();
        let share = |share: u64, part: u64| share > 0 && part.is_multiple_of(share);
        let depth = if share(self.settings.deep_share, dice & 0xffff) {
            Depth::Deep
        } else {
            Depth::Shallow
        };
        let chooser = Chooser::new(plan, Volatile::of(chance), Random(chance), fresh);
        let probed = self.probe(at, chooser, depth, Random(!chance), read);
        self.report.images += 1;
        if self.seen.insert(probed.ended.signature ^ at.hash) {
            self.report.states += 1;
        }
        let state = match probed.result {
            Ok(which) => Rc::clone(&at.allowed[which]),
            Err(message) => return Err(self.failure(run, at, &probed.picked, message)),
        };
        if at.crashes < self.settings.crashes && share(self.settings.again_share, dice >> 16 & 0xffff) {
            self.again(at, &probed.picked, &state)?;
        }
        Ok(probed.picked)
    }

    /// Opens and judges an image.
    fn probe(
        &self,
        at: &At<S>,
        chooser: Chooser,
        depth: Depth,
        random: Random,
        read: &mut LineSet,
    ) -> Probed {
        let crash = &self.crash;
        crash.slow().chooser = chooser;
        crash.begin(self.settings.steps);
        let result = caught(|| {
            let live = open(&*self.subject, crash, at.created)?;
            let allowed: Vec<&S::State> = at.allowed.iter().map(|state| &**state).collect();
            let in_flight: Vec<&S::Op> = at.in_flight.iter().collect();
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
        crash.for_touched(|line| {
            read.insert(line);
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
    fn again(&mut self, at: &At<S>, picked: &[Picked], state: &S::State) -> Result<(), Box<Failure>> {
        let contents: Contents = picked
            .iter()
            .map(|picked| (picked.line, picked.content))
            .collect();
        let ops = self.subject.follow_up(state, &mut self.random);
        let (crash, subject) = (&self.crash, &*self.subject);
        let plan = Plan::Fixed(contents);
        crash.slow().chooser = Chooser::new(plan, Volatile::AsStored, Random(0), Fresh::any());
        crash.begin(self.settings.steps);
        crash.record();
        let mut answers = Vec::new();
        let ran = caught(|| {
            if !at.created {
                crash.invoke(CREATION);
            }
            let live = open(subject, crash, at.created)?;
            if !at.created {
                crash.acknowledge(CREATION);
            }
            for (number, op) in (0..).zip(&ops) {
                crash.invoke(number);
                answers.push(subject.apply(&live, op)?);
                crash.acknowledge(number);
            }
            Ok(())
        });
        let log = crash.recorded();
        let hung = crash.end().hung;
        let ran = if hung { Err("it hangs".into()) } else { ran };
        ran.map_err(|message| Failure::outright(format!("after {} crashes: {message}", at.crashes)))?;
        self.report.again += 1;
        let run = Run {
            log,
            ops,
            answers,
            from: 0,
            crashes: at.crashes,
        };
        let mark = self.crash.mark_base();
        for picked in picked {
            self.crash.guarantee_line(picked.line, &picked.content);
        }
        let expectation = Expectation::from(at.allowed.iter().map(|state| S::State::clone(state)));
        let walked = self.walk(&run, expectation, at.created);
        self.crash.reset_base(mark);
        walked
    }

    fn failure(&self, run: &Run<S>, at: &At<S>, picked: &[Picked], message: String) -> Box<Failure> {
        let slow = self.crash.slow();
        let mut missing = Vec::new();
        for picked in picked {
            let Some(line) = slow.tracker.line(picked.line) else {
                continue;
            };
            for (word, value, event, matters) in line.pending() {
                if matters && picked.content[word as usize] != value {
                    missing.push(Missing {
                        site: run.log.events[event as usize].site,
                        word: picked.line * 8 + word,
                        value,
                        there: picked.content[word as usize],
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
            in_flight: at.in_flight.iter().map(|op| format!("{op:?}")).collect(),
            missing,
            ..Failure::default()
        })
    }
}

/// Carries a history out, by as many logical threads as it wants; `from` is where in the log its preparation ends.
fn run<S: Subject>(
    crash: &Crash,
    subject: &Arc<S>,
    history: &Arc<History<S::Op>>,
    answers: &mut [Option<S::Answer>],
    from: &mut usize,
) -> Result<(), String> {
    let options = PoolOptions {
        page_size: 64 << 10,
        ..PoolOptions::default()
    };
    let pool = Pool::create_in(crash.memory(), &options, crash.clone()).map_err(|e| e.to_string())?;
    *from = crash.recorded_so_far();
    crash.invoke(CREATION);
    let live = Arc::new(subject.create(pool)?);
    crash.acknowledge(CREATION);
    let one = |number: u32, live: &S::Live| {
        crash.invoke(number);
        let answer = subject.apply(live, &history.ops[number as usize])?;
        crash.acknowledge(number);
        Ok::<_, String>(answer)
    };
    let count = history.ops.len() as u32;
    let alone = if history.threads > 1 { history.prepared } else { count };
    for number in 0..alone {
        if number == history.prepared && number > 0 {
            *from = crash.recorded_so_far();
        }
        answers[number as usize] = Some(one(number, &live)?);
    }
    if alone == count {
        return Ok(());
    }
    if alone > 0 {
        *from = crash.recorded_so_far();
    }
    let threads: Vec<_> = (0..history.threads)
        .map(|thread| {
            let (crash, subject) = (crash.clone(), Arc::clone(subject));
            let (history, live) = (Arc::clone(history), Arc::clone(&live));
            shuttle::thread::spawn(move || {
                crash.set_thread(schedule::this_thread());
                let numbers = (alone + thread..count).step_by(history.threads as usize);
                let all = numbers.map(|number| {
                    crash.invoke(number);
                    let answer = subject.apply(&live, &history.ops[number as usize])?;
                    crash.acknowledge(number);
                    Ok((number, answer))
                });
                caught(|| all.collect::<Result<Vec<_>, String>>())
            })
        })
        .collect();
    // All of them end, whatever becomes of the others.
    let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
    crash.set_thread(schedule::this_thread());
    for thread in ended {
        for (number, answer) in thread.map_err(|_| "a thread panics")?? {
            answers[number as usize] = Some(answer);
        }
    }
    Ok(())
}

/// What has changed since the last crash point at which images were judged.
#[derive(Default)]
struct News {
    since: u32,
    /// Lines stored to since.
    lines: LineSet,
    /// Lines that were read there, and at those before it with the same expectation; `None` if there was none.
    read: Option<LineSet>,
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

/// What a run comes to; a panic is an error.
fn caught<R>(run: impl FnOnce() -> Result<R, String>) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
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
