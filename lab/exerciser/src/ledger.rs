//! The ledger of a process that is to be killed: how many of each thread's calls were answered, and which of them were
//! refused. The page cache keeps the files' content, so it outlives the process.

use crate::worker::Outcome;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Length in bytes of the header: the number of answered calls, and of refusals among them.
const HEADER: u64 = 16;

fn path(directory: &Path, thread: usize) -> PathBuf {
    directory.join(format!("ledger.{thread}"))
}

/// The file that a thread of the process writes.
pub(crate) struct Ledger {
    file: File,
    answered: u64,
    refused: u64,
}

impl Ledger {
    pub fn create(directory: &Path, thread: usize) -> io::Result<Ledger> {
        let file = File::create(path(directory, thread))?;
        file.write_all_at(&[0; HEADER as usize], 0)?;
        Ok(Ledger {
            file,
            answered: 0,
            refused: 0,
        })
    }

    /// Records the outcome of the next call.
    pub fn write(&mut self, outcome: Outcome) -> io::Result<()> {
        if let Outcome::Refused(done) = outcome {
            let refusal = [self.answered.to_le_bytes(), (done as u64).to_le_bytes()].concat();
            self.file
                .write_all_at(&refusal, HEADER + self.refused * refusal.len() as u64)?;
            self.refused += 1;
        }
        self.answered += 1;
        let header = [self.answered.to_le_bytes(), self.refused.to_le_bytes()].concat();
        self.file.write_all_at(&header, 0)
    }
}

/// A ledger's content.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub answered: u64,
    /// The numbers of refused calls, and how many changes each made before.
    refused: HashMap<u64, usize>,
}

impl Written {
    /// Reads a thread's ledger; it is empty if the process was killed before it created the file.
    pub fn read(directory: &Path, thread: usize) -> io::Result<Written> {
        let mut bytes = Vec::new();
        match File::open(path(directory, thread)) {
            Ok(mut file) => file.read_to_end(&mut bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Written::default()),
            Err(error) => return Err(error),
        };
        let (words, _) = bytes.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let [answered, refused, refusals @ ..] = &words[..] else {
            return Ok(Written::default());
        };
        let pairs = refusals.chunks_exact(2).take(*refused as usize);
        Ok(Written {
            answered: *answered,
            refused: pairs.map(|pair| (pair[0], pair[1] as usize)).collect(),
        })
    }

    pub fn outcome(&self, call: u64) -> Outcome {
        self.refused
            .get(&call)
            .map_or(Outcome::Done, |&done| Outcome::Refused(done))
    }

    /// Removes the files of these threads.
    pub fn remove(directory: &Path, threads: usize) {
        for thread in 0..threads {
            // It may not exist.
            let _ = std::fs::remove_file(path(directory, thread));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reading returns the number of calls written, and each refusal under its call's number.
    #[test]
    fn a_ledger_is_read_as_it_was_written() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let mut ledger = Ledger::create(directory.path(), 3)?;
        for call in 0..100 {
            ledger.write(if call % 7 == 0 {
                Outcome::Refused(call)
            } else {
                Outcome::Done
            })?;
        }
        let written = Written::read(directory.path(), 3)?;
        assert_eq!(written.answered, 100);
        for call in 0..100 {
            let expected = if call % 7 == 0 {
                Outcome::Refused(call)
            } else {
                Outcome::Done
            };
            assert_eq!(written.outcome(call as u64), expected);
        }
        Ok(())
    }
}
