//! The walk along a log, from crash point to crash point.

use super::image::At;
use super::{CREATION, Expected, Explorer, Run, Walk};
use crate::Subject;
use crate::choose::{Fresh, LineSet};
use crate::dirty::DirtyReads;
use crate::expect::Expectation;
use crate::log::EventKind;
use crate::model::Tracker;
use crate::report::{Failure, diagram, preemptions, shown};

/// What has changed since the last crash point whose images were judged.
#[derive(Default)]
struct News {
    since: u32,
    /// Lines stored to since then.
    lines: LineSet,
    /// Whether the media's epoch holds the lines read there, and at the points before it with the same expectation.
    read: bool,
}

/// The state of a walk along a log.
pub(super) struct Course<S: Subject> {
    news: News,
    /// The expectation since its last change.
    expected: Option<Expected<S>>,
    dirty: DirtyReads,
    /// What the unmutated program guarantees, in the walk of a mutant.
    pub(super) whole: Option<Tracker>,
    /// Whether the walk follows a crash that only the mutant may have left.
    is_beyond: bool,
}

/// Where a walk starts.
pub(super) struct Place {
    /// The first event that the walk follows.
    pub(super) start: usize,
    /// What a crash there may leave...
    pub(super) tracker: Tracker,
    /// ...and what it may leave of the unmutated program.
    pub(super) whole: Tracker,
}

impl<S: Subject> Explorer<S> {
    /// Follows the log of a run, and judges what crashes during it may leave.
    pub(super) fn walk(
        &mut self,
        run: &Run<S>,
        Place {
            start,
            tracker,
            whole,
        }: Place,
        mut expectation: Expectation<S>,
        mut created: bool,
    ) -> Result<(), Box<Failure>> {
        let mark = self.crash.mark_base();
        let outer = self.crash.swap_tracker(tracker);
        let mut course = Course {
            news: News::default(),
            expected: None,
            dirty: DirtyReads::default(),
            whole: self.walk.mutant().map(|_| whole),
            is_beyond: self.is_beyond,
        };
        let walked = self.walk_on(run, start, &mut expectation, &mut created, &mut course);
        self.crash.swap_tracker(outer);
        self.crash.reset_base(mark);
        match walked {
            Ok(()) => {
                self.is_beyond = course.is_beyond;
                Ok(())
            }
            Err(mut failure) => {
                self.add_threads(run, &mut failure);
                Err(failure)
            }
        }
    }

    /// Adds to a failure what the threads of the run did up to it.
    fn add_threads(&self, run: &Run<S>, failure: &mut Failure) {
        // A failure after a later crash has its threads already.
        if run.threads < 2 || !failure.answers.is_empty() {
            return;
        }
        failure.answers = vec![None; run.ops.len()];
        for event in run.log.events.iter().take(failure.place + 1) {
            // After a crash, answers belong to other operations than those of the history.
            if let EventKind::Ack(op) = event.kind
                && op != CREATION
                && run.crashes == 0
            {
                failure.answers[op as usize] = Some(shown(&run.answers[op as usize]));
            }
        }
        failure.schedule = diagram(&run.log, failure.place, &run.ops, &run.answers);
        failure.preemptions = preemptions(&run.log, failure.place);
    }

    /// Returns the start of a walk from the beginning of a log.
    pub(super) fn beginning(&self) -> Place {
        let tracker = Tracker::new(self.settings.model);
        Place {
            start: 0,
            whole: tracker.clone(),
            tracker,
        }
    }

    fn walk_on(
        &mut self,
        run: &Run<S>,
        start: usize,
        expectation: &mut Expectation<S>,
        created: &mut bool,
        course: &mut Course<S>,
    ) -> Result<(), Box<Failure>> {
        for (place, event) in run.log.events.iter().enumerate().skip(start) {
            let left_out = self
                .walk
                .mutant()
                .is_some_and(|mutant| mutant.leaves_out(&run.log, event));
            self.lacking += u64::from(left_out);
            let is_point = match event.kind {
                EventKind::Invoke(_) => true,
                _ => !left_out && self.crash.slow().tracker.raises(event),
            };
            if is_point {
                self.point(run, place, expectation, *created, course)?;
            }
            let read = course
                .dirty
                .step(&self.crash.slow().tracker, &run.log, place, event);
            read.map_err(|message| self.answered(run, place, course, message))?;
            if let Some(whole) = &mut course.whole {
                whole.step(place as u32, event, &mut ());
            }
            if left_out {
                continue;
            }
            match event.kind {
                EventKind::Invoke(CREATION) => {}
                EventKind::Ack(CREATION) => *created = true,
                EventKind::Invoke(op) => {
                    let answer = run.answers.get(op as usize);
                    let refused = answer.is_some_and(|answer| self.subject.is_refusal(answer));
                    let own = run.ops[op as usize].clone();
                    expectation.invoke(&self.subject, op, (event.thread, refused), own);
                }
                EventKind::Ack(op) => {
                    let answer = &run.answers[op as usize];
                    expectation
                        .acknowledge(&self.subject, op, answer)
                        .map_err(|wrong| self.answered(run, place, course, wrong))?;
                }
                EventKind::Store { word, kind, .. } if kind.matters() => {
                    course.news.lines.insert(word / 8);
                }
                _ => {}
            }
            self.crash.step(place as u32, event);
            match event.kind {
                EventKind::Invoke(_) => course.expected = None,
                EventKind::Ack(_) => {
                    // Everything is judged again, more strictly.
                    course.expected = None;
                    course.news.read = false;
                    self.point(run, place + 1, expectation, *created, course)?;
                }
                _ => {}
            }
        }
        self.point(run, run.log.events.len(), expectation, *created, course)
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
        if !(run.from..=run.until).contains(&place) || self.left == 0 || self.is_late() {
            return Ok(());
        }
        let elsewhere = matches!(self.walk, Walk::Again(_)) && run.crashes == 0;
        if elsewhere {
            let chosen = self.random.next().is_multiple_of(self.one_in);
            if !chosen && !self.aims.contains(&place) {
                return Ok(());
            }
            self.is_beyond = course.is_beyond || self.exceeds(run, place, course);
        } else if !self.differs(run, place, course)
            || (self.spread > 1 && !self.random.next().is_multiple_of(self.spread))
        {
            return Ok(());
        } else {
            // Within this walk the next point says it anew.
            self.is_beyond = true;
        }
        self.report.crash_points += 1;
        let Course {
            news,
            expected,
            whole,
            ..
        } = course;
        let expected = expected.get_or_insert_with(|| Expected::of(expectation, &self.subject));
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
                // Recovery and judge would read nothing that they have not read already.
                return Ok(());
            }
        } else {
            self.crash.new_epoch();
        }
        let at = At {
            expected,
            ops: &run.ops,
            created,
            place,
            crashes: run.crashes + 1,
        };
        if elsewhere {
            return self.crash_again(run, &at, whole.as_ref());
        }
        let again = self.report.again;
        self.images(run, &at, &fresh)?;
        let kills = match self.walk {
            Walk::Whole => self.settings.kill_share,
            Walk::Again(_) => 20,
            Walk::Differing(_) => 0,
        };
        if kills > 0 && at.crashes < self.settings.crashes && self.random.next().is_multiple_of(kills) {
            self.after_kill(run, &at, whole.as_ref())?;
        }
        *news = News {
            since: place as u32,
            lines: LineSet::default(),
            // Histories run since then have begun epochs of their own.
            read: self.report.again == again,
        };
        Ok(())
    }

    /// Returns the failure of an answer, and notes whether the walk's mutant may be its cause.
    fn answered(&mut self, run: &Run<S>, place: usize, course: &Course<S>, message: String) -> Box<Failure> {
        self.is_beyond = course.is_beyond || self.exceeds(run, place, course);
        Failure::answered(message, place)
    }

    /// Returns whether the mutant may be the cause of what is found at `place`. Behind a swap it always may be: there
    /// `whole` has followed the swapped log.
    fn exceeds(&self, run: &Run<S>, place: usize, course: &Course<S>) -> bool {
        self.differs(run, place, course) || run.swapped.first().is_some_and(|first| first.start <= place)
    }

    /// Returns whether a crash before the event at `place` may leave what the unmutated program cannot.
    fn differs(&self, run: &Run<S>, place: usize, course: &Course<S>) -> bool {
        let Some(whole) = &course.whole else {
            return true;
        };
        run.swapped.iter().any(|swapped| swapped.contains(&place))
            || self.crash.slow().tracker.lags_behind(whole)
    }
}
