//! Several edits in one call.

use super::{Random, done};
use crate::{Action, Edit, Edits, Error, Index};
use std::ops::ControlFlow;

/// An edit that changes nothing.
struct Keep;

impl Edit for Keep {
    fn decide(&mut self, _: Option<&[u8]>) -> Action {
        Action::Keep
    }
    fn value(&self) -> &[u8] {
        unreachable!("nothing is put")
    }
}

/// One edit among others that change nothing.
struct Among<'e> {
    edit: &'e mut dyn Edit,
    at: usize,
    keep: Keep,
    done: Option<Result<Action, Error>>,
}

impl Edits for Among<'_> {
    fn edit(&mut self, i: usize) -> &mut dyn Edit {
        if i == self.at { self.edit } else { &mut self.keep }
    }

    fn done(&mut self, i: usize, action: Result<Action, Error>) -> ControlFlow<()> {
        if i == self.at {
            assert!(self.done.is_none(), "a write of several does one twice");
            self.done = Some(action);
        } else {
            assert_eq!(done(action, "write_many"), Action::Keep);
        }
        ControlFlow::Continue(())
    }
}

/// Writes a key, alone or among others of `keys`.
pub(super) fn write_somehow(
    index: &dyn Index,
    keys: &[Vec<u8>],
    key: &[u8],
    edit: &mut dyn Edit,
    random: &mut Random,
) -> Result<Action, Error> {
    if random.one_in(2) {
        return index.write(key, edit);
    }
    let mut all: Vec<&[u8]> = (0..random.below(6)).map(|_| &random.pick(keys)[..]).collect();
    let at = random.below(all.len() + 1);
    all.insert(at, key);
    let mut among = Among {
        edit,
        at,
        keep: Keep,
        done: None,
    };
    index.write_many(&all, &mut among);
    among.done.expect("a write of several leaves none out")
}
