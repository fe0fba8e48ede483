//! Commands that were parsed before their turn, so that the index nodes for their keys could be prefetched. They need
//! not be parsed again.

use crate::proto::redis::args::Args;
use crate::proto::redis::parse::{Parser, Step};
use std::ops::Range;

/// Commands parsed ahead. An inline command is never one of them, since its arguments are not in the input.
#[derive(Debug, Default)]
pub struct Ahead {
    /// The arguments of all commands, each counted from its command's first byte.
    ranges: Vec<Range<usize>>,
    /// The length of each command in bytes, and the places of its arguments in `ranges`.
    commands: Vec<(usize, Range<usize>)>,
    /// The number of commands that have been taken.
    taken: usize,
}

impl Ahead {
    /// Removes all commands.
    pub fn clear(&mut self) {
        self.ranges.clear();
        // The space for a command of many arguments is freed.
        self.ranges.shrink_to(1024);
        self.commands.clear();
        self.taken = 0;
    }

    /// Parses the first commands of `input`, up to `max`, and calls `second` with the second argument of each that has
    /// one.
    pub fn read<'b>(
        &mut self,
        mut scout: Parser,
        mut input: &'b [u8],
        max: usize,
        mut second: impl FnMut(&'b [u8]),
    ) {
        self.clear();
        while self.commands.len() < max
            && let Step::Command(used) = scout.next(input, false)
            && let Some(ranges) = scout.ranges()
        {
            if let Some(range) = ranges.get(1) {
                second(&input[range.clone()]);
            }
            let begin = self.ranges.len();
            self.ranges.extend_from_slice(ranges);
            self.commands.push((used, begin..self.ranges.len()));
            input = &input[used..];
        }
    }

    /// Takes the next command. Returns its length in bytes.
    pub fn take(&mut self) -> Option<usize> {
        let (used, _) = self.commands.get(self.taken)?;
        self.taken += 1;
        Some(*used)
    }

    /// Returns the arguments of the command that was taken last, which `input` begins with.
    pub fn args<'a>(&'a self, input: &'a [u8]) -> Args<'a> {
        Args::new(input, self.ranges())
    }

    /// Returns the places of these arguments in the input.
    pub fn ranges(&self) -> &[Range<usize>] {
        let taken = self.taken.checked_sub(1).and_then(|last| self.commands.get(last));
        taken
            .and_then(|(_, ranges)| self.ranges.get(ranges.clone()))
            .unwrap_or_default()
    }
}
