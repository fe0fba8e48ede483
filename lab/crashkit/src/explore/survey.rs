//! The structure modifications that a history reaches: one thread runs it once more to find them.

use super::Explorer;
use super::carry::create;
use super::panics::caught;
use crate::Subject;
use crate::history::History;

impl<S: Subject> Explorer<S> {
    /// Records the operations of a history during which crashes are judged, and the changes that they make. (It does
    /// not judge whether the history succeeds.)
    pub(super) fn survey(&mut self, history: &History<S::Op>) {
        let (crash, subject) = (self.crash.clone(), self.subject.clone());
        let coverage = &mut self.report.coverage;
        crash.begin(self.settings.steps);
        let _ = caught(|| {
            let (_, live) = create(&crash, &self.memory, &*subject)?;
            let (prepared, watched) = history.ops.split_at(history.prepared as usize);
            for op in prepared {
                subject.apply(&live, op)?;
            }
            let mut before = subject.shape(&live)?;
            for op in watched {
                coverage.note_operation(&format!("{op:?}"));
                subject.apply(&live, op)?;
                let after = subject.shape(&live)?;
                coverage.note_change(&before, &after);
                before = after;
            }
            Ok(())
        });
        crash.end();
    }
}
