//! Writes of several keys in one call.

use super::{Answer, Bytes, LiveIndex, Op};
use index::{Action, Edit, Edits, Error, Insert, Remove, Update, Upsert};
use std::ops::ControlFlow;

/// Executes writes by one [`write_many`](index::Index::write_many).
pub(super) fn write_all(live: &LiveIndex, ops: &[&Op]) -> Result<Vec<Answer>, String> {
    let mut keys: Vec<&[u8]> = Vec::new();
    let mut writes = Writes {
        live,
        edits: Vec::new(),
        answers: Vec::new(),
    };
    for op in ops {
        let (key, edit) = edit(op)?;
        keys.push(key);
        writes.edits.push(edit);
    }
    live.index.write_many(&keys, &mut writes);
    if writes.answers.len() != ops.len() {
        return Err(format!(
            "{} operations got {} answers",
            ops.len(),
            writes.answers.len()
        ));
    }
    writes.answers.into_iter().collect()
}

/// Returns the key and the edit of a write.
fn edit(op: &Op) -> Result<(&Bytes, Box<dyn Edit + '_>), String> {
    let found: (&Bytes, Box<dyn Edit + '_>) = match op {
        Op::Together(op) => return edit(op),
        Op::Insert(key, value) => (key, Box::new(Insert(value))),
        Op::Upsert(key, value) => (key, Box::new(Upsert(value))),
        Op::Update(key, value) => (key, Box::new(Update(value))),
        Op::Remove(key) => (key, Box::new(Remove)),
        Op::Get(_) | Op::Scan(_) => return Err(format!("{op:?} is not a write")),
    };
    Ok(found)
}

struct Writes<'v> {
    live: &'v LiveIndex,
    edits: Vec<Box<dyn Edit + 'v>>,
    answers: Vec<Result<Answer, String>>,
}

impl Edits for Writes<'_> {
    fn edit(&mut self, i: usize) -> &mut dyn Edit {
        &mut *self.edits[i]
    }

    fn done(&mut self, _: usize, done: Result<Action, Error>) -> ControlFlow<()> {
        let changed = done.map(|action| Answer::Changed(action != Action::Keep));
        self.answers.push(self.live.answer(changed));
        ControlFlow::Continue(())
    }
}
