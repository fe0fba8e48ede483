//! `import` and `export`: whole maps as text.

use super::place::{is_replaced, is_std, write_file};
use super::{in_words, output, write_json};
use crate::context::{Context, NewMap};
use crate::exit::{Failure, Outcome};
use crate::format::{Entry, Format, tsv};
use crate::stop::{self, Stoppable};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;
use wollemi::{Db, IndexError, MAX_KEY, MAX_VALUE, Pair, Pairs, Parts};

/// Entries between two updates of the progress bar.
const STRIDE: u64 = 1024;

/// Returns the maximum length of a line: that of the longest key and value with every byte escaped, and of the syntax
/// around them.
fn max_line(format: Format, no_escapes: bool) -> u64 {
    let of_a_byte = match format {
        Format::Tsv if no_escapes => 1,
        Format::Tsv => r"\xNN".len(),
        Format::Jsonl => r"\u0000".len(),
    };
    (of_a_byte * (MAX_KEY + MAX_VALUE) + 4096) as u64
}

/// The arguments of `import`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Stops at the first line that is not an entry, and at a signal; earlier entries stay in the map. A new \
                  map is built from the first lines, as long as their keys ascend: if the pool has no room for these, \
                  none of them stays, except at level disk. A last line of tab-separated values without a newline is \
                  put, with a warning: it may be truncated."
)]
pub struct Import {
    /// The file to read, `-` for the standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// The file's format; if not given, by its name: .jsonl, .ndjson and .json are jsonl, all others and `-` are tsv
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Do not interpret backslashes in tab-separated values
    #[arg(long)]
    no_escapes: bool,
    #[command(flatten)]
    new: NewMap,
}

/// The arguments of `export`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A file appears, and replaces an older one, once it is complete and on the medium. A new file gets the \
                  pool's permissions; a replacement keeps those of the file it replaces. Pipes and devices are written \
                  to directly."
)]
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
    /// Puts each line's entry. Stops at the first line that is not an entry; earlier entries stay.
    ///
    /// A new map is built from the lines up to the first whose key is not above its predecessor, or is too long, or has
    /// too long a value: from all lines, if they are sorted and fit. The remaining entries are put one by one.
    pub fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let name = name_of(&self.file, "standard input");
        let format = self.format.unwrap_or_else(|| Format::of(&self.file));
        if self.no_escapes && format != Format::Tsv {
            return Err(Failure::Usage(
                "--no-escapes applies only to tab-separated values".into(),
            ));
        }
        let fail = |error| Failure::input(name.clone(), error);
        let (input, len) = if is_std(&self.file) {
            (Stoppable::stdin().map_err(fail)?, 0)
        } else {
            let file = File::open(&self.file).map_err(fail)?;
            let len = file.metadata().map_err(fail)?.len();
            (Stoppable::file(file), len)
        };
        let input = BufReader::with_capacity(1 << 16, input);
        let db = context.open_to_write(true)?;
        let started = Instant::now();
        let mut lines = Lines {
            input,
            name,
            format,
            no_escapes: self.no_escapes,
            progress: bar(len, "{wide_bar} {bytes}/{total_bytes} {msg}"),
            line: Vec::new(),
            max_line: max_line(format, self.no_escapes),
            bytes: 0,
            entries: 0,
            entry: Entry::default(),
            is_left: false,
            failed: None,
        };
        let put = self.put_all(context, &db, &mut lines);
        // Entries before a bad line stay. A build that fails for another reason leaves nothing of a new map, except at level disk.
        let closed = db.close();
        put?;
        closed?;
        lines.progress.finish_and_clear();
        summarize("imported", lines.entries, started, context.json, &mut output())
    }

    fn put_all(&self, context: &Context, db: &Db, lines: &mut Lines) -> Result<(), Failure> {
        let map_name = context.map_or("default");
        let map = match db.find_map(map_name)? {
            Some(_) => context.map(db, self.new)?,
            None => {
                let built =
                    db.build_map_with(map_name, self.new.index.unwrap_or_default(), Parts::new(lines));
                built.map_err(|error| lines.at(error))?
            }
        };
        if let Some(failure) = lines.failed.take() {
            return Err(failure);
        }
        // At level `disk` the lines of a turn wait for one sync.
        let mut turn = db.turn();
        while std::mem::take(&mut lines.is_left) || lines.read()? {
            let (key, value) = &lines.entry;
            map.upsert(key, value).map_err(|error| lines.at(error))?;
            if lines.entries.is_multiple_of(LINES_PER_TURN) {
                turn.end()?;
                turn = db.turn();
            }
        }
        Ok(turn.end()?)
    }
}

/// How many entries of an import into an existing map become durable together.
const LINES_PER_TURN: u64 = 1000;

/// The lines of a file.
struct Lines {
    input: BufReader<Stoppable>,
    name: String,
    format: Format,
    no_escapes: bool,
    progress: ProgressBar,
    line: Vec<u8>,
    /// Maximum length of a line, in bytes.
    max_line: u64,
    bytes: u64,
    /// Number of entries read.
    entries: u64,
    /// The last entry read.
    entry: Entry,
    /// Whether the last entry was kept from the build, which would have refused it, so that it must still be put.
    is_left: bool,
    failed: Option<Failure>,
}

impl Lines {
    /// Reads the next entry; returns `false` at the end.
    fn read(&mut self) -> Result<bool, Failure> {
        stop::check().map_err(|error| Failure::input(self.name.clone(), error))?;
        self.line.clear();
        let mut input = (&mut self.input).take(self.max_line + 1);
        let read = input.read_until(b'\n', &mut self.line);
        let read = read.map_err(|error| Failure::input(self.name.clone(), error))?;
        if read == 0 {
            return Ok(false);
        }
        self.entries += 1;
        self.bytes += read as u64;
        let text = self.line.strip_suffix(b"\n");
        if text.is_none() && read as u64 > self.max_line {
            let why = format!("line too long: more than {} bytes", self.max_line);
            return Err(Failure::input(self.place(), why));
        }
        let is_cut = text.is_none() && self.format == Format::Tsv;
        let text = text.unwrap_or(&self.line);
        self.entry =
            parse(self.format, self.no_escapes, text).map_err(|why| Failure::input(self.place(), why))?;
        if is_cut {
            self.warn_of_a_cut();
        }
        if self.entries.is_multiple_of(STRIDE) {
            self.progress.set_position(self.bytes);
            self.progress.set_message(in_words(self.entries));
        }
        Ok(true)
    }

    /// Warns that the value of the last line may be truncated.
    fn warn_of_a_cut(&self) {
        let mut key = Vec::new();
        // Writing to memory does not fail.
        let _ = tsv::escape(&mut key, &self.entry.0);
        // The entry is put even if the warning cannot be printed.
        let _ = writeln!(
            io::stderr(),
            "{}: no end of line: the value of key '{}' may be truncated",
            self.place(),
            String::from_utf8_lossy(&key)
        );
    }

    fn place(&self) -> String {
        format!("{}, line {}", self.name, self.entries)
    }

    /// Adds the position of the last line read to an error.
    fn at(&self, error: wollemi::Error) -> Failure {
        Failure::At {
            place: self.place(),
            error,
        }
    }
}

/// Yields the entries up to the first that a build would refuse.
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
        if is_std(&self.file) && context.json {
            return Err(Failure::Usage(
                "--json reports on an export to a file; for entries as JSON: --format jsonl".into(),
            ));
        }
        let db = context.open_to_read()?;
        let map = context.find_map(&db)?;
        let started = Instant::now();
        if is_std(&self.file) {
            write_all(&map, format, &mut output()).map_err(|failure| match failure {
                // A partial output is not a success, even if the reader has closed the pipe.
                Failure::Output(error) => Failure::input("standard output", error),
                other => other,
            })?;
            return Ok(Outcome::Done);
        }
        if is_replaced(&self.file) {
            stop::on_signals();
        }
        let entries = write_file(&self.file, &context.pool(), "an export", &stop::check, |out| {
            write_all(&map, format, out)
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

/// Reports the result: as JSON on `out`, or for the user on the error stream, separate from pipes.
fn summarize(
    done: &str,
    entries: u64,
    started: Instant,
    json: bool,
    out: &mut impl Write,
) -> Result<Outcome, Failure> {
    let seconds = started.elapsed().as_secs_f64();
    if json {
        write_json(out, &Summary { entries, seconds })?;
    } else {
        // The work is done even if the report cannot be printed.
        let _ = writeln!(io::stderr(), "{done} {} in {seconds:.2} s", in_words(entries));
    }
    Ok(Outcome::Done)
}

/// Returns a progress bar on the error stream, hidden unless that is a terminal; a spinner if the length is unknown.
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

fn name_of(path: &Path, standard: &str) -> String {
    if is_std(path) {
        standard.to_owned()
    } else {
        format!("'{}'", path.display())
    }
}
