//! Commands that were read before their turn came, to prefetch what they will look at. They need not be read again.

use super::parse::{Args, Parser, Step};
use std::ops::Range;

/// Commands read ahead. An inline command is none of them: its arguments do not stand in the input.
#[derive(Debug, Default)]
pub struct Ahead {
    /// The arguments of all of them, each counted from its command's first byte.
    ranges: Vec<Range<usize>>,
    /// How many bytes each has, and which of the ranges.
    commands: Vec<(usize, Range<usize>)>,
    /// How many have been taken.
    taken: usize,
}

impl Ahead {
    /// Forgets them.
    pub fn clear(&mut self) {
        self.ranges.clear();
        // Space for a command of many arguments is not kept.
        self.ranges.shrink_to(1024);
        self.commands.clear();
        self.taken = 0;
    }

    /// Reads the first commands of `input`, up to `max`, and tells the second argument of each that has one.
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

    /// Takes the next command, and says how many bytes it has.
    pub fn take(&mut self) -> Option<usize> {
        let (used, _) = self.commands.get(self.taken)?;
        self.taken += 1;
        Some(*used)
    }

    /// The arguments of the command taken last, in the input that begins with it.
    pub fn args<'a>(&'a self, input: &'a [u8]) -> Args<'a> {
        Args::new(input, self.taken_ranges())
    }

    /// One of these.
    pub fn arg<'b>(&self, i: usize, input: &'b [u8]) -> Option<&'b [u8]> {
        input.get(self.taken_ranges().get(i)?.clone())
    }

    fn taken_ranges(&self) -> &[Range<usize>] {
        let taken = self.taken.checked_sub(1).and_then(|last| self.commands.get(last));
        taken
            .and_then(|(_, ranges)| self.ranges.get(ranges.clone()))
            .unwrap_or_default()
    }
}
