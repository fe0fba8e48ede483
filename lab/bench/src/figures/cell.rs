//! One run of `wollemi-lab bench` among those that the figures need, as a process of its own; what has been run is kept
//! in a file, so that an interrupted series goes on where it was.

use super::build::Build;
use crate::Error;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The arguments of a run, after `bench`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cell(pub String);

/// What a run printed, or why it did not.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// An object a line.
    Printed(Vec<Value>),
    /// What it said on its standard error stream.
    Failed(String),
}

impl Cell {
    /// Runs it. `{pool}` among its arguments is a file in the directory.
    pub fn run(&self, directory: &Path) -> Result<Outcome, Error> {
        let pool = directory.join("figures.pool");
        // What an interrupted run has left.
        let _ = std::fs::remove_file(&pool);
        let arguments = self.0.split_whitespace().map(|argument| match argument {
            "{pool}" => pool.clone().into_os_string(),
            argument => argument.into(),
        });
        // The same program, mounted the same way: what comes before `figures` on our own command line.
        let before = std::env::args_os()
            .skip(1)
            .take_while(|argument| argument != "figures");
        let output = Command::new(std::env::current_exe().map_err(Error::Filler)?)
            .args(before)
            .args(arguments)
            .arg("--json")
            .output()
            .map_err(Error::Filler)?;
        if !output.status.success() {
            return Ok(Outcome::Failed(
                String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            ));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let objects: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
        Ok(objects.map_or_else(|error| Outcome::Failed(error.to_string()), Outcome::Printed))
    }
}

/// A line of the file. Lines without a build are of no known commit: what they hold is run again.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    cell: Cell,
    round: usize,
    build: Build,
    outcome: Outcome,
}

/// The file of what has been run.
#[derive(Debug)]
pub struct Kept {
    path: PathBuf,
    file: File,
    outcomes: HashMap<(Cell, usize), (Build, Outcome)>,
}

impl Kept {
    /// Opens it, or begins it. A last line that was cut off is run again.
    pub fn open(path: &Path) -> Result<Kept, Error> {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .map_err(|why| unusable(path, why))?;
        let (mut kept, whole) = Kept::of(path, file)?;
        if !whole {
            kept.line("")?;
        }
        Ok(kept)
    }

    /// Opens one that is there, to be read only.
    pub fn read(path: &Path) -> Result<Kept, Error> {
        let file = File::open(path).map_err(|why| unusable(path, why))?;
        Ok(Kept::of(path, file)?.0)
    }

    /// What the file holds, but for lines that cannot be read, and whether its last line is whole.
    fn of(path: &Path, mut file: File) -> Result<(Kept, bool), Error> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|why| unusable(path, why))?;
        let lines = bytes.split(|&byte| byte == b'\n');
        let outcomes = lines
            .filter_map(|line| serde_json::from_slice::<Entry>(line).ok())
            .map(|entry| ((entry.cell, entry.round), (entry.build, entry.outcome)))
            .collect();
        let whole = bytes.last().is_none_or(|&byte| byte == b'\n');
        let path = path.to_owned();
        Ok((Kept { path, file, outcomes }, whole))
    }

    fn line(&mut self, line: &str) -> Result<(), Error> {
        writeln!(self.file, "{line}")
            .and_then(|()| self.file.flush())
            .map_err(|why| unusable(&self.path, why))
    }

    /// Whether it has been run. What failed is tried again.
    pub fn has(&self, cell: &Cell, round: usize) -> bool {
        let kept = self.outcomes.get(&(cell.clone(), round));
        kept.is_some_and(|(_, outcome)| matches!(outcome, Outcome::Printed(_)))
    }

    /// Keeps what came of a run.
    pub fn keep(&mut self, cell: Cell, round: usize, build: Build, outcome: Outcome) -> Result<(), Error> {
        let entry = Entry {
            cell,
            round,
            build,
            outcome,
        };
        self.line(&serde_json::to_string(&entry)?)?;
        self.outcomes
            .insert((entry.cell, round), (entry.build, entry.outcome));
        Ok(())
    }

    /// What came of it in each round that has been run.
    pub fn outcomes<'k>(&'k self, cell: &Cell) -> impl Iterator<Item = &'k Outcome> + use<'k> {
        self.rounds(cell).map(|(_, outcome)| outcome)
    }

    /// What it was run with in each round.
    pub fn builds<'k>(&'k self, cell: &Cell) -> impl Iterator<Item = &'k Build> + use<'k> {
        self.rounds(cell).map(|(build, _)| build)
    }

    /// Both, from the first round on.
    pub fn rounds<'k>(&'k self, cell: &Cell) -> impl Iterator<Item = &'k (Build, Outcome)> + use<'k> {
        let cell = cell.clone();
        (1..).map_while(move |round| self.outcomes.get(&(cell.clone(), round)))
    }
}

fn unusable(path: &Path, why: std::io::Error) -> Error {
    Error::Cells {
        path: path.to_owned(),
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was kept is there after an interruption, but for a line that was cut off.
    #[test]
    fn outcomes_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cells");
        let cell = |name: &str| Cell(name.to_owned());
        let build = |commit: &str| Build {
            date: "2026-11-22".into(),
            commit: commit.into(),
        };
        let mut kept = Kept::open(&path).unwrap();
        kept.keep(cell("a"), 1, build("x"), Outcome::Printed(vec![1.into()]))
            .unwrap();
        kept.keep(cell("a"), 2, build("y"), Outcome::Failed("no".into()))
            .unwrap();
        // As it was when builds were not kept.
        kept.line(r#"{"cell":"c","round":1,"outcome":{"printed":[]}}"#)
            .unwrap();
        kept.keep(cell("b"), 1, build("y"), Outcome::Printed(vec![]))
            .unwrap();
        drop(kept);
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 9]).unwrap();
        let mut kept = Kept::open(&path).unwrap();
        assert_eq!(kept.outcomes(&cell("a")).count(), 2);
        assert!(kept.builds(&cell("a")).eq([&build("x"), &build("y")]));
        assert!(!kept.has(&cell("b"), 1) && !kept.has(&cell("c"), 1));
        kept.keep(cell("b"), 1, build("y"), Outcome::Printed(vec![]))
            .unwrap();
        assert!(Kept::open(&path).unwrap().has(&cell("b"), 1));
    }

    /// Opening what is whole leaves it as it is, also where lines cannot be read; a line that was cut off within a
    /// character is ended once.
    #[test]
    fn opening_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cells");
        for (before, after) in [
            ("".as_bytes(), "".as_bytes()),
            (b"not an entry\n\n", b"not an entry\n\n"),
            (b"{\"cell\":\"\xc3", b"{\"cell\":\"\xc3\n"),
        ] {
            std::fs::write(&path, before).unwrap();
            for _ in 0..2 {
                Kept::open(&path).unwrap();
                assert_eq!(std::fs::read(&path).unwrap(), after);
            }
        }
    }
}
