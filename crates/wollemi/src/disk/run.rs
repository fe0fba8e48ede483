//! Runs: files of sorted entries of one map.

use crate::disk::manifest::Run;
use crate::files_error::FilesError;
use crate::stream::{Item, StreamReader, Totals, Writer};
use log::{Disk, DiskError, DiskFile};
use std::io::{self, Read, Write};

/// Bytes per read.
const READ: usize = 1 << 20;

/// Writes a run.
pub(crate) struct RunWriter<F: DiskFile> {
    run: Run,
    stream: Writer<Appending<F>>,
}

impl<F: DiskFile> RunWriter<F> {
    /// Creates the file of a run, which must not exist yet; pool, number and level are set. Each write to the file but
    /// the last has `full` bytes or more.
    pub fn create<D: Disk<File = F>>(
        disk: &D,
        run: Run,
        (map, index): (&str, &str),
        full: usize,
    ) -> Result<RunWriter<F>, FilesError> {
        let file = run.file();
        let appending = Appending {
            file: disk.create(&file)?,
            at: 0,
            synced: 0,
            buffer: Vec::with_capacity(full),
            full,
        };
        let begin = || {
            let mut stream = Writer::new(run.first_record(), appending)?;
            stream.map(map, index)?;
            Ok(stream)
        };
        let stream = begin().map_err(|error| FilesError::of_stream(&file, error))?;
        Ok(RunWriter { run, stream })
    }

    /// Adds an entry, whose key is above all earlier ones; `None`: the key was removed.
    pub fn entry(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), FilesError> {
        let added = self.stream.entry(key, value);
        added.map_err(|error| FilesError::of_stream(&self.run.file(), error))
    }

    /// Returns the bytes so far, roughly.
    pub fn bytes(&self) -> u64 {
        self.stream.totals().bytes + self.stream.unwritten() as u64
    }

    /// Syncs the file if `bytes` or more were written since the last sync.
    pub fn sync_each(&mut self, bytes: u64) -> Result<(), FilesError> {
        let appending = self.stream.out();
        if appending.at - appending.synced >= bytes {
            appending.file.sync()?;
            appending.synced = appending.at;
        }
        Ok(())
    }

    /// Ends the run and makes its contents durable, but not its name.
    pub fn finish(self) -> Result<Run, FilesError> {
        let file = self.run.file();
        let ended = self.stream.finish();
        let (appending, Totals { entries, bytes }) =
            ended.map_err(|error| FilesError::of_stream(&file, error))?;
        appending.file.sync()?;
        Ok(Run {
            entries,
            bytes,
            ..self.run
        })
    }
}

/// A file that is written sequentially.
struct Appending<F> {
    file: F,
    /// Bytes written.
    at: u64,
    /// Bytes synced.
    synced: u64,
    buffer: Vec<u8>,
    /// The buffer is written once it has this many bytes.
    full: usize,
}

impl<F: DiskFile> Appending<F> {
    fn write_buffer(&mut self) -> Result<(), DiskError> {
        self.file.write_at(self.at, &self.buffer)?;
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

impl<F: DiskFile> Write for Appending<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= self.full {
            self.write_buffer().map_err(io::Error::other)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_buffer().map_err(io::Error::other)
    }
}

/// A key and its value; `None`: the key was removed.
pub(crate) type RunEntry<'r> = (&'r [u8], Option<&'r [u8]>);

/// Reads a run.
pub(crate) struct RunReader<F: DiskFile> {
    file: String,
    stream: StreamReader<io::BufReader<Reading<F>>>,
}

impl<F: DiskFile> RunReader<F> {
    /// Opens the run of a map.
    ///
    /// # Errors
    ///
    /// [`FilesError::Missing`], or the damage found in the file.
    pub fn open<D: Disk<File = F>>(disk: &D, run: &Run, map: &str) -> Result<RunReader<F>, FilesError> {
        let file = run.file();
        let reading = match disk.open(&file) {
            Err(error) if error.is_missing() => return Err(FilesError::Missing { file }),
            open => Reading { file: open?, at: 0 },
        };
        let len = reading.file.len()?;
        if len != run.bytes {
            let why = format!("{len} bytes, but the manifest says {}", run.bytes);
            return Err(FilesError::damaged(file, why));
        }
        let wrong = |error| FilesError::of_stream(&file, error);
        let stream = StreamReader::new(io::BufReader::with_capacity(READ, reading)).map_err(wrong)?;
        let mut stream = stream.counting_from(run.first_record());
        match stream.next().map_err(wrong)? {
            Some(Item::Map { name, .. }) if name == map => {}
            _ => {
                return Err(FilesError::damaged(
                    file,
                    "it belongs to a different map than the manifest says",
                ));
            }
        }
        Ok(RunReader { file, stream })
    }

    /// Returns the next entry; `None` at the end.
    pub fn next(&mut self) -> Result<Option<RunEntry<'_>>, FilesError> {
        let file = &self.file;
        match self.stream.next() {
            Ok(Some(Item::Entry { key, value })) => Ok(Some((key, value))),
            Ok(None) => Ok(None),
            Ok(Some(Item::Map { .. })) => Err(FilesError::damaged(file, "a second map in one run")),
            Err(error) => Err(FilesError::of_stream(file, error)),
        }
    }
}

/// A file that is read sequentially.
struct Reading<F> {
    file: F,
    at: u64,
}

impl<F: DiskFile> Read for Reading<F> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.file.len().map_err(io::Error::other)?.saturating_sub(self.at);
        let len = into.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.file
            .read_at(self.at, &mut into[..len])
            .map_err(io::Error::other)?;
        self.at += len as u64;
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use log::Directory;

    /// A run is not mistaken for another run of the same map and the same length: neither for an earlier one of the
    /// pool, nor for one of another pool.
    #[test]
    fn a_run_is_not_taken_for_another() {
        let run = |pool, number| Run {
            pool,
            number,
            ..Run::default()
        };
        for (asked, found) in [(run(1, 1), run(1, 2)), (run(1, 1), run(2, 1))] {
            let (here, elsewhere) = (
                tempfile::tempdir().expect("a directory"),
                tempfile::tempdir().expect("a directory"),
            );
            let write = |folder: &tempfile::TempDir, run: Run, value: &[u8]| {
                let disk = Directory::open(folder.path()).expect("a directory");
                let mut writer = RunWriter::create(&disk, run, ("map", "roart"), 1).expect("a run");
                writer.entry(b"key", Some(value)).expect("room");
                (disk, writer.finish().expect("room"))
            };
            let (disk, asked) = write(&here, asked, b"asked for");
            let (_, found) = write(&elsewhere, found, b"of others");
            assert_eq!(asked.bytes, found.bytes);
            let read = || {
                let mut reader = RunReader::open(&disk, &asked, "map")?;
                let (key, value) = reader.next()?.expect("an entry");
                Ok::<_, FilesError>((key.to_vec(), value.map(<[u8]>::to_vec)))
            };
            assert_eq!(
                read().expect("sound"),
                (b"key".to_vec(), Some(b"asked for".to_vec()))
            );
            let put = std::fs::copy(
                elsewhere.path().join(found.file()),
                here.path().join(asked.file()),
            );
            put.expect("copied");
            let refused = read().expect_err("another run");
            assert!(matches!(refused, FilesError::Damaged { .. }), "{refused}");
        }
    }
}
