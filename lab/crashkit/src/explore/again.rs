//! The continuation after a crash: recovery and a few operations, a run of its own up to the next crash.

use super::image::{At, strategies};
use super::walk::Place;
use super::{CREATION, Explorer, Run, Start, Walk};
use crate::Subject;
use crate::choose::{Chooser, Contents, Fresh, Picked, Plan, Random};
use crate::history::History;
use crate::log::{EventKind, EventLog, LogEvent};
use crate::model::{Tracker, Volatile};
use crate::report::{Failure, shown};

/// In each history of a hunt, `aim` draws this many places, at which a mutant's walk continues after a kill. It also
/// continues after a crash or a kill at about half as many other places, drawn at random.
pub(super) const PLACES: u64 = 9;

impl<S: Subject> Explorer<S> {
    /// Continues from one image of a crash point, or from what a kill there leaves, up to the next crash.
    pub(super) fn crash_again(
        &mut self,
        run: &Run<S>,
        at: &At<'_, S>,
        whole: Option<&Tracker>,
    ) -> Result<(), Box<Failure>> {
        let chance = self.random.next();
        if chance.is_multiple_of(2) || self.aims.contains(&at.place) {
            return self.after_kill(run, at, whole);
        }
        let plans = strategies(&mut self.random, 8);
        let plan = self.random.pick(&plans).clone();
        self.image(run, at, plan, chance, Fresh::any()).map(drop)
    }

    /// Walks along the run after a crash. In a walk for second crashes others will follow, so this one may not use up
    /// all the images that are left.
    fn walk_after(&mut self, run: &Run<S>, from: Place, at: &At<'_, S>) -> Result<(), Box<Failure>> {
        let max = match self.walk {
            Walk::Again(_) if at.crashes == 1 => self.left.min(self.left / PLACES + 1),
            _ => self.left,
        };
        let kept = self.left - max;
        self.left = max;
        // Spread, so that late events of the run are judged as well as early ones.
        let spread = (run.crash_points() / (max / 4).max(1)).max(1);
        let outer = std::mem::replace(&mut self.spread, spread);
        let walked = self.walk(run, from, at.expected.left(), at.created);
        self.left = self.left.saturating_add(kept);
        self.spread = outer;
        walked
    }

    /// Runs a history that starts with the recovery of an image, and walks along it: a second crash interrupts it.
    pub(super) fn again(
        &mut self,
        run: &Run<S>,
        at: &At<'_, S>,
        picked: &[Picked],
        state: &S::State,
    ) -> Result<(), Box<Failure>> {
        let contents = picked.iter().map(|picked| (picked.line, picked.content));
        let after = self.go_on(run, at, picked, contents.collect(), state)?;
        let mark = self.crash.mark_base();
        for picked in picked {
            self.crash.guarantee_line(picked.line, &picked.content);
        }
        let walked = self.walk_after(&after, self.beginning(), at);
        self.crash.reset_base(mark);
        walked.map_err(|mut failure| {
            let mut earlier = self.failure(run, at, picked, "the power was lost".into());
            earlier.afterwards = after.ops.iter().map(shown).collect();
            failure.earlier.insert(0, *earlier);
            failure
        })
    }

    /// Continues after a kill of the process, which loses nothing and makes nothing durable.
    pub(super) fn after_kill(
        &mut self,
        run: &Run<S>,
        at: &At<'_, S>,
        whole: Option<&Tracker>,
    ) -> Result<(), Box<Failure>> {
        let tracker = self.crash.slow().tracker.clone();
        let visible = |number| Some((number, tracker.line(number)?.visible(self.crash.content(number))));
        let contents = tracker.unsettled().filter_map(visible).collect();
        let after = self.go_on(run, at, &[], contents, &at.expected.allowed[0])?;
        // The log continues where the killed process has left it.
        let EventLog {
            mut events,
            mut joins,
            ..
        } = run.log.clone();
        events.truncate(at.place);
        events.push(LogEvent {
            kind: EventKind::Killed,
            thread: 0,
            site: std::panic::Location::caller(),
        });
        let (known_ops, known_joins) = (run.ops.len() as u32, joins.len() as u32);
        joins.extend(after.log.joins.into_iter().skip(1));
        events.extend(after.log.events.into_iter().map(|mut event| {
            match &mut event.kind {
                EventKind::WriteBack { joins, .. } if *joins > 0 => *joins += known_joins - 1,
                EventKind::Invoke(op) | EventKind::Ack(op) if *op != CREATION => *op += known_ops,
                _ => {}
            }
            event
        }));
        // A swapped range is in the program's order again only at its end, which a kill within it never reaches.
        let amid = run.swapped.iter().any(|swapped| swapped.contains(&at.place));
        let swapped = after.swapped.iter();
        let swapped = swapped.map(|one| one.start + at.place + 1..one.end + at.place + 1);
        let all = amid.then_some(at.place..events.len());
        let from = Place {
            start: at.place,
            whole: whole.unwrap_or(&tracker).clone(),
            tracker,
        };
        let run_on = Run {
            swapped: all.into_iter().chain(swapped).collect(),
            log: EventLog {
                events,
                joins,
                ..EventLog::default()
            },
            ops: run.ops.iter().cloned().chain(after.ops).collect(),
            answers: run.answers.iter().cloned().chain(after.answers).collect(),
            from: at.place,
            until: usize::MAX,
            crashes: at.crashes,
            threads: run.threads,
            room: run.room,
        };
        let walked = self.walk_after(&run_on, from, at);
        walked.map_err(|mut failure| {
            let mut earlier = self.failure(run, at, &[], "the process was killed".into());
            earlier.afterwards = run_on.ops[run.ops.len()..].iter().map(shown).collect();
            failure.earlier.insert(0, *earlier);
            failure
        })
    }

    /// Recovers the image with these contents, of which `picked` tells what a loss of power took, and runs a few
    /// operations on it.
    fn go_on(
        &mut self,
        run: &Run<S>,
        at: &At<'_, S>,
        picked: &[Picked],
        contents: Contents,
        state: &S::State,
    ) -> Result<Run<S>, Box<Failure>> {
        let in_flight: Vec<&S::Op> = at.expected.in_flight.iter().collect();
        let history = History {
            ops: self.subject.follow_up(state, &in_flight, &mut self.random),
            seed: self.random.next(),
            prepared: 0,
            threads: run.threads,
            room: run.room,
            ..History::default()
        };
        let plan = Plan::Fixed(contents);
        self.crash.slow().chooser = Chooser::new(plan, Volatile::Last, Random(0), Fresh::any());
        let again = self.record(&history, Start::Again { created: at.created }, at.crashes);
        let again = again.map_err(|failure| Failure {
            schedule: failure.schedule,
            preemptions: failure.preemptions,
            afterwards: history.ops.iter().map(shown).collect(),
            ..*self.failure(
                run,
                at,
                picked,
                format!("in the run after crash {}: {}", at.crashes, failure.message),
            )
        })?;
        self.report.again += 1;
        self.report.note_sites(&again.log, true);
        self.note_persisted(&again.log);
        self.report.coverage.note_steps(&again.log, 0);
        Ok(
            match self.walk.mutant().and_then(|mutant| mutant.swapped(&again.log)) {
                Some((log, swapped)) => Run {
                    log,
                    swapped,
                    ..again
                },
                None => again,
            },
        )
    }
}
