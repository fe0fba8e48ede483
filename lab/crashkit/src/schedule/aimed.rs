//! Aimed preemption: a thread is stopped just before or just after it touches a word that another thread touches too,
//! and others go on to that same word, several steps deep.
//!
//! 1. *Scout.* The history runs once with its operations one after the other, in an order that the seed chooses: no
//!    thread is stopped during one. This run shows which words two threads touch, and where ([`Scouted`]).
//! 2. *Aim.* A source line that touches such words is drawn, each equally likely however often it does so, and then one
//!    of its accesses. Up to there the next run is the same.
//! 3. *Legs.* The thread is stopped there. Another continues until it has stored into the same word, until it comes to
//!    the n-th access of such a source line, or for some operations. Then it is stopped in its turn, and the first
//!    thread or a third one continues in the same way: at most three legs. Or, in a *relay*, the first thread is
//!    stopped after each of its stores into such words, and each time the other carries out one operation.
//! 4. *Settle.* All threads that were stopped end their operations. The rest of the history runs as in the scout's run.
//!
//! I1 Threads switch only at these moments, between operations, and where one waits for another.

use crate::Random;
use crate::log::Site;
use crate::point::{Access, AccessKind, Point};
use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of operations of a leg.
const MAX_OPERATIONS: u32 = 16;

/// How often the first thread continues in a relay, at most.
const RELAYS: usize = 12;

/// An access in the scout's run.
#[derive(Clone, Copy)]
struct Step {
    /// How many points came before it.
    point: u64,
    thread: u32,
    access: Access,
}

/// The accesses that the scout's run recorded.
#[derive(Default)]
pub(crate) struct Scouted {
    /// By source line: the accesses of words that another thread touches later, if some thread stores into the word.
    by_site: BTreeMap<(Site, AccessKind), Vec<Step>>,
    /// For each of these words, the last access by each thread.
    last: HashMap<usize, BTreeMap<u32, u64>>,
}

impl Scouted {
    fn of(trace: &[Step]) -> Scouted {
        let mut last: HashMap<usize, BTreeMap<u32, u64>> = HashMap::new();
        let mut stored = BTreeSet::new();
        for step in trace {
            let threads = last.entry(step.access.at).or_default();
            threads.insert(step.thread, step.point);
            if step.access.kind == AccessKind::Store {
                stored.insert(step.access.at);
            }
        }
        last.retain(|word, threads| threads.len() > 1 && stored.contains(word));
        let mut scouted = Scouted {
            last,
            ..Scouted::default()
        };
        for &step in trace {
            if scouted.others(&step).next().is_some() {
                let key = (step.access.site, step.access.kind);
                scouted.by_site.entry(key).or_default().push(step);
            }
        }
        scouted
    }

    /// Returns the threads that touch the word of this access later.
    fn others(&self, step: &Step) -> impl Iterator<Item = u32> + '_ {
        let Step { thread, point, .. } = *step;
        let threads = self.last.get(&step.access.at).into_iter().flatten();
        threads
            .filter(move |&(&other, &last)| other != thread && last > point)
            .map(|(&other, _)| other)
    }

    /// Draws a preemption of this many legs; `None` if threads share no words.
    pub(crate) fn aim(&self, legs: u32, random: &mut Random) -> Option<Plan> {
        let sites: Vec<&Vec<Step>> = self.by_site.values().collect();
        if sites.is_empty() {
            return None;
        }
        let of_site = *random.pick(&sites);
        let step = *random.pick(of_site);
        let others: Vec<u32> = self.others(&step).collect();
        let after = random.below(2);
        Some(Plan {
            stop: step.point + after,
            legs: (0..legs).map(|leg| Leg::any(leg, &others, random)).collect(),
            ..self.blank(&step)
        })
    }

    /// Draws a relay: a thread is stopped after each of its stores into shared words from a drawn one on, and another
    /// carries out an operation there; `None` if no thread stores into a word that another touches later.
    pub(crate) fn relay(&self, random: &mut Random) -> Option<Plan> {
        let stores = self
            .by_site
            .iter()
            .filter(|((_, kind), _)| *kind == AccessKind::Store);
        let sites: Vec<&Vec<Step>> = stores.map(|(_, steps)| steps).collect();
        if sites.is_empty() {
            return None;
        }
        let of_site = *random.pick(&sites);
        let step = *random.pick(of_site);
        let others: Vec<u32> = self.others(&step).collect();
        let other = Leg {
            thread: Some(*random.pick(&others)),
            until: Until::Operations(1),
        };
        let first = Leg {
            thread: None,
            until: Until::StoredShared,
        };
        Some(Plan {
            stop: step.point + 1,
            legs: [other, first].into_iter().cycle().take(2 * RELAYS).collect(),
            ..self.blank(&step)
        })
    }

    fn blank(&self, step: &Step) -> Plan {
        Plan {
            stop: step.point,
            thread: step.thread,
            word: step.access.at,
            legs: VecDeque::new(),
            sites: self.by_site.keys().map(|(site, _)| *site).collect(),
            words: Arc::new(self.last.keys().copied().collect()),
        }
    }
}

/// A preemption: where, and which threads run meanwhile.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    /// The point at which the thread is stopped.
    stop: u64,
    thread: u32,
    /// The address of the word that it is about to touch or has just touched.
    word: usize,
    legs: VecDeque<Leg>,
    /// Source lines that touch shared words.
    sites: BTreeSet<Site>,
    /// The shared words.
    words: Arc<HashSet<usize>>,
}

/// One thread continues while others are stopped.
#[derive(Clone, Copy, Debug)]
struct Leg {
    /// The preferred thread; `None`: the one that was stopped first.
    thread: Option<u32>,
    until: Until,
}

/// When a leg ends: as given here, when its thread waits for another, or after [`MAX_OPERATIONS`].
#[derive(Clone, Copy, Debug)]
enum Until {
    /// This many operations have ended.
    Operations(u32),
    /// It has stored into the word.
    Stored,
    /// It has stored into any word that two threads share.
    StoredShared,
    /// It has come to the n-th access by source lines that touch shared words.
    Shared(u32),
}

impl Leg {
    fn any(number: u32, others: &[u32], random: &mut Random) -> Leg {
        let until = match random.below(6) {
            0..3 => Until::Stored,
            3 => Until::Shared(1 + random.below(12) as u32),
            _ => Until::Operations(*random.pick(&[1, 1, 1, 2, 3, 6, MAX_OPERATIONS])),
        };
        let first = number > 0 && random.below(2) == 0;
        Leg {
            thread: (!first).then(|| *random.pick(others)),
            until,
        }
    }
}

/// The phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Operations come one after the other.
    InTurn,
    /// A leg is under way.
    OnLeg,
    /// The threads that were stopped end their operations.
    Settling,
}

/// A leg under way.
#[derive(Clone, Copy, Debug)]
struct Flight {
    until: Until,
    /// Operations that it has ended.
    operations: u32,
    /// Whether it is in the middle of an operation.
    amid: bool,
    /// Whether it has reached the store that ends it.
    stored: bool,
}

/// Steers one run.
struct Pilot {
    random: Random,
    plan: Plan,
    phase: Phase,
    /// The number of points so far.
    points: u64,
    trace: Vec<Step>,
    leg: Option<Flight>,
    /// The length of the log.
    place: usize,
    /// Threads stopped in the middle of an operation, in the order of their stops.
    stopped: Vec<u32>,
    /// The place in the log at which the first thread was stopped, and at which all had settled.
    window: Option<Range<usize>>,
}

impl Pilot {
    /// Records that a thread has come to a point. Returns whether another may continue.
    fn comes_to(&mut self, point: &Point, thread: u32, place: usize) -> bool {
        let number = self.points;
        self.points += 1;
        self.place = place;
        match self.phase {
            Phase::InTurn => {
                // Thread 0 only prepares, and waits for the others.
                if let Point::Access(access) = point
                    && access.kind != AccessKind::Other
                    && thread != 0
                {
                    self.trace.push(Step {
                        point: number,
                        thread,
                        access: *access,
                    });
                }
                let aimed =
                    !self.plan.legs.is_empty() && number == self.plan.stop && thread == self.plan.thread;
                if aimed && !matches!(point, Point::Invoke) {
                    self.stopped.push(thread);
                    self.window = Some(place..usize::MAX);
                    self.next_leg();
                    return true;
                }
                !matches!(point, Point::Access(_))
            }
            Phase::OnLeg => {
                let ends = self.ends_leg(point);
                if ends {
                    if !matches!(point, Point::Invoke) {
                        self.stopped.push(thread);
                    }
                    self.next_leg();
                }
                ends
            }
            Phase::Settling => match point {
                Point::Access(_) => false,
                Point::Wait => true,
                Point::Invoke => {
                    self.stopped.retain(|stopped| *stopped != thread);
                    self.settled();
                    true
                }
            },
        }
    }

    /// Returns whether the leg ends with its thread at this point.
    fn ends_leg(&mut self, point: &Point) -> bool {
        let Some(flight) = &mut self.leg else {
            return true;
        };
        match point {
            Point::Wait => return true,
            Point::Invoke => flight.operations += u32::from(std::mem::take(&mut flight.amid)),
            Point::Access(_) => flight.amid = true,
        }
        if flight.stored || flight.operations >= MAX_OPERATIONS {
            return true;
        }
        match (&mut flight.until, point) {
            (Until::Operations(max), _) => flight.operations >= *max,
            (Until::Stored, Point::Access(access)) => {
                flight.stored = access.at == self.plan.word && access.kind == AccessKind::Store;
                false
            }
            (Until::StoredShared, Point::Access(access)) => {
                flight.stored = access.kind == AccessKind::Store && self.plan.words.contains(&access.at);
                false
            }
            (Until::Shared(left), Point::Access(access)) => {
                *left -= u32::from(self.plan.sites.contains(&access.site));
                *left == 0
            }
            _ => false,
        }
    }

    fn next_leg(&mut self) {
        self.leg = None;
        self.phase = if self.plan.legs.is_empty() {
            Phase::Settling
        } else {
            Phase::OnLeg
        };
    }

    /// Ends the window once no thread is stopped.
    fn settled(&mut self) {
        if self.phase == Phase::Settling && self.stopped.is_empty() {
            self.phase = Phase::InTurn;
            if let Some(window) = &mut self.window {
                window.end = self.place;
            }
        }
    }

    /// Chooses the thread that continues.
    fn choose(&mut self, runnable: &[TaskId], current: Option<TaskId>, waits: bool) -> Option<TaskId> {
        let number = |id: &TaskId| usize::from(*id) as u32;
        let known = |id: &TaskId, threads: &[u32]| threads.contains(&number(id));
        // A thread that has ended is not stopped.
        if let Some(current) = current.filter(|current| !runnable.contains(current)) {
            self.stopped.retain(|stopped| *stopped != number(&current));
            self.settled();
        }
        let others: Vec<TaskId> = match current {
            Some(current) if waits => runnable.iter().copied().filter(|id| *id != current).collect(),
            _ => runnable.to_vec(),
        };
        let from = if others.is_empty() { runnable } else { &others };
        if self.phase == Phase::OnLeg && self.leg.is_none() {
            while let Some(leg) = self.plan.legs.pop_front() {
                let wanted = match leg.thread {
                    Some(thread) => from.iter().find(|id| number(id) == thread),
                    None => from.iter().find(|id| number(id) == self.plan.thread),
                };
                let free = |id: &&TaskId| number(id) != 0 && !known(id, &self.stopped);
                if let Some(&id) = wanted.or_else(|| from.iter().find(free)) {
                    self.stopped.retain(|stopped| *stopped != number(&id));
                    self.leg = Some(Flight {
                        until: leg.until,
                        operations: 0,
                        amid: false,
                        stored: false,
                    });
                    return Some(id);
                }
            }
            self.phase = Phase::Settling;
        }
        if self.phase == Phase::OnLeg {
            // The leg's thread continues, unless it has ended.
            if let Some(current) = current.filter(|current| from.contains(current)) {
                return Some(current);
            }
            self.next_leg();
            return self.choose(runnable, current, waits);
        }
        if self.phase == Phase::Settling {
            let stopped: Vec<TaskId> = from
                .iter()
                .copied()
                .filter(|id| known(id, &self.stopped))
                .collect();
            if !stopped.is_empty() {
                return Some(*self.random.pick(&stopped));
            }
        }
        (!from.is_empty()).then(|| *self.random.pick(from))
    }
}

/// The scheduler of a run with aimed preemptions.
#[derive(Clone)]
pub(super) struct Aimed {
    pilot: Arc<Mutex<Pilot>>,
    begun: bool,
}

impl Aimed {
    /// Creates the scheduler of a plan's run, or of the scout's run if the plan is empty.
    pub(super) fn new(seed: u64, plan: Plan) -> Aimed {
        let pilot = Pilot {
            random: Random(seed),
            plan,
            phase: Phase::InTurn,
            points: 0,
            trace: Vec::new(),
            leg: None,
            place: 0,
            stopped: Vec::new(),
            window: None,
        };
        Aimed {
            pilot: Arc::new(Mutex::new(pilot)),
            begun: false,
        }
    }

    fn pilot(&self) -> MutexGuard<'_, Pilot> {
        self.pilot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a thread has come to a point, at this place of the log. Returns whether another may continue.
    pub(super) fn comes_to(&self, point: &Point, thread: u32, place: usize) -> bool {
        self.pilot().comes_to(point, thread, place)
    }

    /// Returns what the run recorded.
    pub(super) fn scouted(&self) -> Scouted {
        Scouted::of(&self.pilot().trace)
    }

    /// Returns the range of the log in which threads were stopped, if any was.
    pub(super) fn window(&self) -> Option<Range<usize>> {
        self.pilot().window.clone()
    }
}

impl Scheduler for Aimed {
    fn new_execution(&mut self) -> Option<Schedule> {
        (!std::mem::replace(&mut self.begun, true)).then(|| Schedule::new(0))
    }

    fn next_task(&mut self, runnable: &[&Task], current: Option<TaskId>, waits: bool) -> Option<TaskId> {
        let runnable: Vec<TaskId> = runnable.iter().map(|task| task.id()).collect();
        self.pilot().choose(&runnable, current, waits)
    }

    fn next_u64(&mut self) -> u64 {
        self.pilot().random.next()
    }
}
