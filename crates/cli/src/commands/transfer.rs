//! `import` and `export`: whole maps as text.

use super::{in_words, output};
use crate::context::{Context, NewMap};
use crate::exit::{Failure, Outcome};
use crate::format::{Entry, Format, tsv};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;
use wollemi::{IndexError, MAX_KEY, MAX_VALUE, Pair, Pairs, Parts};

/// How many entries pass between two looks at the progress bar.
const STRIDE: u64 = 1024;

/// The arguments of `import`.
#[derive(Debug, clap::Args)]
pub struct Import {
    /// The file to read, `-` for the standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// The file's format; if not given, by its name: .jsonl, .ndjson and .json are jsonl, all others and `-` are tsv
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Take backslashes in tab-separated values as they are
    #[arg(long)]
    no_escapes: bool,
    #[command(flatten)]
    new: NewMap,
}

/// The arguments of `export`.
#[derive(Debug, clap::Args)]
pub struct Export {
    /// The file to write, `-` for the standard output
    #[arg(default_value = "-")]
    file: PathBuf,
    /// The file's format; if not given, by its name: .jsonl, .ndjson and .json are jsonl, all others and `-` are tsv
    #[arg(long, value_enum)]
    format: Option<Format>,
}

#[derive(Serialize)]
struct Summary {
    entries: u64,
    seconds: f64,
}

impl Import {
    /// Puts each line's entry. Stops at the first line that is not an entry; what came before it is kept.
    ///
    /// A map that is not there is built of the lines up to the first whose key is not above the one before: of all, if
    /// they are sorted. Entries that a build cannot take are put one by one.
    pub fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let name = name_of(&self.file, "standard input");
        let format = self.format.unwrap_or_else(|| Format::of(&self.file));
        if self.no_escapes && format != Format::Tsv {
            return Err(Failure::Usage("--no-escapes is for tab-separated values".into()));
        }
        let fail = |error| Failure::input(name.clone(), error);
        let (input, len): (Box<dyn BufRead>, u64) = if is_std(&self.file) {
            (Box::new(io::stdin().lock()), 0)
        } else {
            let file = File::open(&self.file).map_err(fail)?;
            let len = file.metadata().map_err(fail)?.len();
            (Box::new(BufReader::with_capacity(1 << 16, file)), len)
        };
        let db = context.open_to_write(true)?;
        let started = Instant::now();
        let mut lines = Lines {
            input,
            name,
            format,
            no_escapes: self.no_escapes,
            progress: bar(len, "{wide_bar} {bytes}/{total_bytes} {msg}"),
            line: Vec::new(),
            bytes: 0,
            entries: 0,
            entry: Entry::default(),
            is_left: false,
            failed: None,
        };
        let map_name = context.map_or("default");
        let map = match db.find_map(map_name)? {
            Some(_) => context.map(&db, self.new)?,
            None => {
                let built = db.build_map_with(
                    map_name,
                    self.new.index.unwrap_or_default(),
                    Parts::new(&mut lines),
                );
                built.map_err(|error| lines.at(error))?
            }
        };
        if let Some(failure) = lines.failed.take() {
            return Err(failure);
        }
        while std::mem::take(&mut lines.is_left) || lines.read()? {
            let (key, value) = &lines.entry;
            map.upsert(key, value).map_err(|error| lines.at(error))?;
        }
        lines.progress.finish_and_clear();
        summarize("imported", lines.entries, started, context.json, &mut output())
    }
}

/// The lines of a file.
struct Lines {
    input: Box<dyn BufRead>,
    name: String,
    format: Format,
    no_escapes: bool,
    progress: ProgressBar,
    line: Vec<u8>,
    bytes: u64,
    /// Entries read.
    entries: u64,
    /// The last of them.
    entry: Entry,
    /// It is none that a build takes: it is still to be put.
    is_left: bool,
    failed: Option<Failure>,
}

impl Lines {
    /// Reads the next entry; `false` at the end.
    fn read(&mut self) -> Result<bool, Failure> {
        self.line.clear();
        let read = self.input.read_until(b'\n', &mut self.line);
        let read = read.map_err(|error| Failure::input(self.name.clone(), error))?;
        if read == 0 {
            return Ok(false);
        }
        self.entries += 1;
        self.bytes += read as u64;
        let text = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        self.entry =
            parse(self.format, self.no_escapes, text).map_err(|why| Failure::input(self.place(), why))?;
        if self.entries.is_multiple_of(STRIDE) {
            self.progress.set_position(self.bytes);
            self.progress.set_message(in_words(self.entries));
        }
        Ok(true)
    }

    fn place(&self) -> String {
        format!("{}, line {}", self.name, self.entries)
    }

    /// An error that the line read last has met.
    fn at(&self, error: wollemi::Error) -> Failure {
        Failure::At {
            place: self.place(),
            error,
        }
    }
}

/// The entries up to the first that a build would refuse.
impl Pairs for Lines {
    fn next(&mut self) -> Result<Option<Pair<'_>>, IndexError> {
        let before = (self.entries > 0).then(|| std::mem::take(&mut self.entry.0));
        match self.read() {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(failure) => {
                self.failed = Some(failure);
                return Ok(None);
            }
        }
        let (key, value) = &self.entry;
        let ascends = before.is_none_or(|before| before < *key);
        self.is_left = !ascends || key.len() > MAX_KEY || value.len() > MAX_VALUE;
        Ok((!self.is_left).then_some((&key[..], &value[..])))
    }
}

fn parse(format: Format, no_escapes: bool, line: &[u8]) -> Result<Entry, String> {
    if no_escapes {
        let (key, value) = tsv::split(line)?;
        return Ok((key.to_vec(), value.to_vec()));
    }
    format.read(line)
}

impl Export {
    /// Writes each entry on a line, in key order.
    pub fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let format = self.format.unwrap_or_else(|| Format::of(&self.file));
        let db = context.open_to_read()?;
        let map = context.find_map(&db)?;
        let started = Instant::now();
        if is_std(&self.file) {
            let mut out = output();
            write_all(&map, format, &mut out)?;
            return Ok(Outcome::Done);
        }
        let name = name_of(&self.file, "");
        if same_file(&self.file, &context.pool()) {
            return Err(Failure::Usage(format!(
                "{name} is the pool itself: export to another file"
            )));
        }
        let file = File::create(&self.file).map_err(|error| Failure::input(name.clone(), error))?;
        let entries =
            write_all(&map, format, &mut BufWriter::new(file)).map_err(|failure| match failure {
                Failure::Output(error) => Failure::input(name, error),
                other => other,
            })?;
        summarize("exported", entries, started, context.json, &mut output())
    }
}

fn write_all(map: &wollemi::Map, format: Format, out: &mut impl Write) -> Result<u64, Failure> {
    let progress = bar(0, "{spinner} {msg}");
    let mut entries = 0;
    for entry in map {
        let (key, value) = entry?;
        format.write(out, &key, &value)?;
        entries += 1;
        if entries % STRIDE == 0 {
            progress.set_message(in_words(entries));
            progress.tick();
        }
    }
    out.flush()?;
    progress.finish_and_clear();
    Ok(entries)
}

/// What was done: as JSON on `out`, or for a person on the error stream, out of the way of pipes.
fn summarize(
    done: &str,
    entries: u64,
    started: Instant,
    json: bool,
    out: &mut impl Write,
) -> Result<Outcome, Failure> {
    let seconds = started.elapsed().as_secs_f64();
    if json {
        serde_json::to_writer(&mut *out, &Summary { entries, seconds }).map_err(io::Error::from)?;
        writeln!(out)?;
        out.flush()?;
    } else {
        // The work is done whether or not anybody hears of it.
        let _ = writeln!(io::stderr(), "{done} {} in {seconds:.2} s", in_words(entries));
    }
    Ok(Outcome::Done)
}

/// A progress bar on the error stream, which hides itself where that is no terminal; a spinner if the length is
/// not known.
fn bar(len: u64, template: &str) -> ProgressBar {
    let bar = if len == 0 {
        ProgressBar::new_spinner()
    } else {
        ProgressBar::new(len)
    };
    let template = if len == 0 { "{spinner} {msg}" } else { template };
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Whether both paths lead to one file. One that is not there yet is no other's.
fn same_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| std::fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    identity(one).is_some_and(|one| identity(other) == Some(one))
}

fn is_std(path: &Path) -> bool {
    path == Path::new("-")
}

fn name_of(path: &Path, standard: &str) -> String {
    if is_std(path) {
        standard.to_owned()
    } else {
        format!("'{}'", path.display())
    }
}
