//! Puts of several keys at once.

use super::{Answer, LiveIndex, Op};
use index::{Action, Edit, Edits, Error, Upsert};
use std::ops::ControlFlow;

/// Carries out puts by one [`write_many`](index::Index::write_many).
pub(super) fn put_all(live: &LiveIndex, ops: &[&Op]) -> Result<Vec<Answer>, String> {
    let mut keys: Vec<&[u8]> = Vec::new();
    let mut upserts = Upserts {
        edits: Vec::new(),
        answers: Vec::new(),
    };
    for op in ops {
        let Op::Put(key, value) = op else {
            return Err(format!("{op:?} is no put"));
        };
        keys.push(key);
        upserts.edits.push(Upsert(value));
    }
    live.index.write_many(&keys, &mut upserts);
    if upserts.answers.len() != ops.len() {
        return Err(format!(
            "of {} operations {} answer",
            ops.len(),
            upserts.answers.len()
        ));
    }
    upserts.answers.into_iter().collect()
}

struct Upserts<'v> {
    edits: Vec<Upsert<'v>>,
    answers: Vec<Result<Answer, String>>,
}

impl Edits for Upserts<'_> {
    fn edit(&mut self, i: usize) -> &mut dyn Edit {
        &mut self.edits[i]
    }

    fn done(&mut self, _: usize, done: Result<Action, Error>) -> ControlFlow<()> {
        let answer = done.map(|action| Answer::Changed(action == Action::Put));
        self.answers.push(answer.map_err(|error| error.to_string()));
        ControlFlow::Continue(())
    }
}
