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

/// How many entries pass between two looks at the progress bar.
const STRIDE: u64 = 1024;

/// The arguments of `import`.
#[derive(Debug, clap::Args)]
pub struct Import {
    /// The file to read, `-` for the standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// The file's format; if not given, its name tells: .jsonl, .ndjson and .json are jsonl, all others and `-` are tsv
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
    /// The file's format; if not given, its name tells: .jsonl, .ndjson and .json are jsonl, all others and `-` are tsv
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
    pub fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let name = name_of(&self.file, "standard input");
        let format = self.format.unwrap_or_else(|| Format::of(&self.file));
        if self.no_escapes && format != Format::Tsv {
            return Err(Failure::Usage("--no-escapes is for tab-separated values".into()));
        }
        let fail = |error| Failure::input(name.clone(), error);
        let (mut input, len): (Box<dyn BufRead>, u64) = if is_std(&self.file) {
            (Box::new(io::stdin().lock()), 0)
        } else {
            let file = File::open(&self.file).map_err(fail)?;
            let len = file.metadata().map_err(fail)?.len();
            (Box::new(BufReader::with_capacity(1 << 16, file)), len)
        };

        let map = context.map(&context.open_to_write(true)?, self.new)?;
        let started = Instant::now();
        let progress = bar(len, "{wide_bar} {bytes}/{total_bytes} {msg}");
        let (mut line, mut bytes, mut entries) = (Vec::new(), 0, 0);
        loop {
            line.clear();
            let read = input.read_until(b'\n', &mut line).map_err(fail)?;
            if read == 0 {
                break;
            }
            bytes += read as u64;
            let text = line.strip_suffix(b"\n").unwrap_or(&line);
            let place = || format!("{name}, line {}", entries + 1);
            let (key, value) =
                parse(format, self.no_escapes, text).map_err(|why| Failure::input(place(), why))?;
            map.upsert(key, value).map_err(|error| Failure::At {
                place: place(),
                error,
            })?;
            entries += 1;
            if entries % STRIDE == 0 {
                progress.set_position(bytes);
                progress.set_message(in_words(entries));
            }
        }
        progress.finish_and_clear();
        summarize("imported", entries, started, context.json, &mut output())
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
