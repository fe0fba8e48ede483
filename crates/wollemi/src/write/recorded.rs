//! Edits whose decisions are recorded before an index carries them out.

use crate::write::before_images::KeyImages;
use crate::write::journal::Logged;
use index::{Action, Edit, Error};

/// An edit whose decisions are appended to the log, if there is one, and that records the value it replaces, if there
/// are snapshots.
///
/// One wrapper does both, so that edits are not nested twice.
pub(crate) struct RecordedEdit<'e> {
    pub edit: &'e mut dyn Edit,
    pub logged: Option<Logged<'e>>,
    pub images: Option<KeyImages<'e>>,
}

impl RecordedEdit<'_> {
    /// Returns the outcome of the index's write, or the log's error if the log refused it.
    pub fn ended(&mut self, done: Result<Action, Error>) -> Result<Action, Error> {
        match &mut self.logged {
            Some(logged) => logged.ended(done),
            None => done,
        }
    }
}

impl Edit for RecordedEdit<'_> {
    fn decide(&mut self, current: Option<&[u8]>) -> Action {
        let mut action = self.edit.decide(current);
        if let Some(logged) = &mut self.logged {
            action = logged.decided(action, self.edit, current);
        }
        if action != Action::Keep
            && let Some(images) = &self.images
        {
            images.record(current);
        }
        action
    }

    fn value(&self) -> &[u8] {
        self.edit.value()
    }
}
