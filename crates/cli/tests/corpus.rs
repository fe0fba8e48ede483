//! The paths and sizes of all files below /usr, which every machine has: many keys with long shared prefixes.

mod common;

use common::Pool;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Adds the files below `directory`; what cannot be read is passed over.
fn walk(directory: &Path, files: &mut BTreeMap<Vec<u8>, u64>) {
    let mut directories = vec![PathBuf::from(directory)];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => directories.push(entry.path()),
                Ok(kind) if kind.is_file() => {
                    let size = entry.metadata().map_or(0, |metadata| metadata.len());
                    files.insert(entry.path().as_os_str().as_bytes().to_vec(), size);
                }
                _ => {}
            }
        }
    }
}

/// Writes a path as it stands in tab-separated values, by other code than the program's.
fn escaped(path: &[u8]) -> String {
    match std::str::from_utf8(path) {
        Ok(text) if !text.chars().any(char::is_control) => text.replace('\\', "\\\\"),
        _ => path.iter().map(|byte| format!("\\x{byte:02x}")).collect(),
    }
}

/// Everything imported is exported again: each path once, in the order of the bytes, with its size.
#[test]
fn all_files_below_usr() {
    let mut files = BTreeMap::new();
    walk(Path::new("/usr"), &mut files);
    assert!(!files.is_empty());
    let pool = Pool::new();
    let mut input = std::io::BufWriter::new(fs::File::create(pool.file("usr.tsv")).expect("created"));
    for (path, size) in &files {
        writeln!(input, "{}\t{size}", escaped(path)).expect("written");
    }
    input.flush().expect("written");
    pool.ok(["import", "usr.tsv"]);

    let out = pool.ok(["export", "-", "--format", "jsonl"]);
    let mut lines = out.split(|&byte| byte == b'\n');
    for (path, size) in &files {
        let line = lines.next().expect("a line for each file");
        let entry: serde_json::Value = serde_json::from_slice(line).expect("JSON");
        assert_eq!(entry["value"].as_str(), Some(size.to_string().as_str()));
        if let Ok(path) = std::str::from_utf8(path) {
            assert_eq!(entry["key"].as_str(), Some(path));
        }
    }
    assert_eq!(lines.collect::<Vec<_>>(), [b""]);

    pool.ok(["export", "again.tsv"]);
    pool.ok(["import", "again.tsv", "--map", "copy"]);
    assert!(
        pool.ok(["export"]) == pool.ok(["export", "--map", "copy"]),
        "the copy is the same"
    );
    pool.check();
}
