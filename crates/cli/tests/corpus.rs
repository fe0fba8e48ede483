//! The paths and sizes of all files below /usr, which every machine has: many keys with long common prefixes.

mod common;
#[path = "../../server/tests/server/python.rs"]
mod python;

use common::Pool;
use python::{python, run};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Adds the files below `directory`; skips what cannot be read.
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

/// Writes a path as tab-separated values escape it, by code independent of the program.
fn escaped(path: &[u8]) -> String {
    match std::str::from_utf8(path) {
        Ok(text) if !text.chars().any(char::is_control) => text.replace('\\', "\\\\"),
        _ => path.iter().map(|byte| format!("\\x{byte:02x}")).collect(),
    }
}

/// Every imported entry is exported again: each path once, in byte order, with its size.
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

/// Returns a running server and its port.
fn serve(pool: &Pool) -> (Child, String) {
    let mut server = pool
        .command(["serve", "--no-redis", "--memcached", "127.0.0.1:0", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let mut line = String::new();
    BufReader::new(server.stdout.take().expect("piped"))
        .read_line(&mut line)
        .expect("a first line");
    let ready: serde_json::Value = serde_json::from_str(&line).expect("one JSON object");
    let address = ready["memcached"][0].as_str().expect("an address");
    let port = address.rsplit(':').next().expect("a port").to_owned();
    (server, port)
}

/// A common client stores the corpus, and the server is killed several times meanwhile: every acknowledged entry is
/// present afterwards.
#[test]
fn acknowledged_files_survive_kills_of_the_server() {
    let pool = Pool::new();
    let log = pool.file("acknowledged.tsv");
    let client = |action: &[&str], port: String| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/corpus.py");
        let mut command = Command::new(python());
        command
            .arg(script)
            .args(action)
            .arg(&log)
            .env("WOLLEMI_PORT", port);
        command
    };
    for bytes_acknowledged in [1_000, 20_000, 100_000] {
        let (mut server, port) = serve(&pool);
        let mut storing = client(&["store", "/usr"], port).spawn().expect("python runs");
        // Or everything was stored before: then that must be present.
        while fs::metadata(&log).map_or(0, |log| log.len()) < bytes_acknowledged
            && storing.try_wait().expect("a child").is_none()
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        server.kill().expect("SIGKILL");
        server.wait().expect("ends");
        assert!(storing.wait().expect("ends").success());

        let (mut server, port) = serve(&pool);
        run(&mut client(&["verify"], port));
        server.kill().expect("SIGKILL");
        server.wait().expect("ends");
        pool.check();
        fs::remove_file(&log).expect("removed");
    }
}
