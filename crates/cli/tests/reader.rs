//! `examples/read_pool.py`, which was written from the description of the format alone, reads the same entries from a
//! pool as `export`.

mod common;
#[path = "../../server/tests/server/python.rs"]
mod python;

use base64::prelude::{BASE64_STANDARD, Engine};
use common::server::Server;
use common::{Pool, hostile_keys};
use python::python;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use wollemi::IndexKind;

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// Entries of an inline leaf array of one line.
const ONE_LINE: u64 = 3;

/// Returns the reader's output for a map, and its messages.
fn read(pool: &Pool, map: &str) -> (Vec<u8>, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/read_pool.py");
    let output = Command::new(python())
        .arg(script)
        .arg(pool.path())
        .arg(map)
        .output()
        .expect("python runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{map}: {said}");
    (output.stdout, said)
}

/// Returns the entries in the reader's output format.
fn lines(entries: &Entries) -> Vec<u8> {
    let line = |(key, value): (&Vec<u8>, &Vec<u8>)| [key, &b"\t"[..], value, b"\n"].concat();
    entries.iter().flat_map(line).collect()
}

/// Returns a map's exported entries.
fn exported(pool: &Pool, map: &str) -> Entries {
    let out = pool.ok(["export", "--format", "jsonl", "--map", map]);
    let bytes = |line: &serde_json::Value, name: &str| match line[name].as_str() {
        Some(text) => text.as_bytes().to_vec(),
        None => BASE64_STANDARD
            .decode(line[format!("{name}_base64")].as_str().expect("text"))
            .expect("base64"),
    };
    serde_json::Deserializer::from_slice(&out)
        .into_iter::<serde_json::Value>()
        .map(|line| line.expect("JSON"))
        .map(|line| (bytes(&line, "key"), bytes(&line, "value")))
        .collect()
}

fn import(pool: &Pool, map: &str, entries: &Entries) {
    let mut input = String::new();
    for (key, value) in entries {
        let [key, value] = [key, value].map(|bytes| BASE64_STANDARD.encode(bytes));
        input += &format!("{{\"key_base64\":\"{key}\",\"value_base64\":\"{value}\"}}\n");
    }
    pool.run_with(["import", "--format", "jsonl", "--map", map], input.as_bytes())
        .ok();
}

/// Returns short keys with values of eight bytes: digits, and arbitrary bytes.
fn short() -> Entries {
    let mut entries = Entries::new();
    for i in 0..3000_u32 {
        let value = u64::from(i).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
        entries.insert(format!("{i:04}").into_bytes(), value.to_vec());
        let word = i.wrapping_mul(0x9e37_79b9).to_be_bytes();
        let bytes = &[&b"x"[..], &word, &word[..3]].concat()[..2 + i as usize % 7];
        entries.insert(bytes.to_vec(), value.to_vec());
    }
    entries
}

/// Keys and values of all kinds, including removed ones, in a pool that has other maps and other roots.
#[test]
fn the_reader_finds_what_export_does() {
    let pool = Pool::new();
    for kind in IndexKind::ALL.iter().filter(|kind| !kind.is_ablation()) {
        let map = format!("a map of {kind}");
        pool.ok(["put", "--index", kind.name(), "--map", &map, "k", "v"]);
    }

    let mut entries = short();
    import(&pool, "short", &entries);
    let removed = |key: &[u8]| key[0].is_ascii_digit() && b"0369".contains(&key[3]);
    let gone: Vec<_> = entries.keys().filter(|key| removed(key)).collect();
    let gone = gone.iter().map(|key| std::str::from_utf8(key).expect("digits"));
    pool.ok(["del", "--map", "short"].into_iter().chain(gone));
    entries.retain(|key, _| !removed(key));
    assert_eq!(exported(&pool, "short"), entries);
    let (found, said) = read(&pool, "short");
    assert!(found == lines(&entries));
    assert!(said.contains(r"b'a map of dptree': kind 0x14"), "{said}");

    // There are inline leaf arrays, and not only of one line.
    let check: serde_json::Value = serde_json::from_slice(&pool.ok(["check", "--json"])).expect("JSON");
    let maps = check["maps"].as_array().expect("maps");
    let short = maps.iter().find(|map| map["name"] == "short").expect("a map");
    let number = |name: &str| short[name].as_u64().expect("a number");
    assert!(number("keys") > ONE_LINE * number("objects"), "{short}");

    // Also entries in leaves: long keys and values, the empty key, a value in pages of its own.
    for (i, key) in hostile_keys().into_iter().enumerate() {
        entries.insert(key, vec![i as u8; i % 20]);
    }
    for i in 0..300_usize {
        entries.insert(format!("path/to/many/files/{i}").into_bytes(), vec![0xff; i % 10]);
    }
    entries.insert(b"large".to_vec(), vec![7; 300_000]);
    import(&pool, "default", &entries);
    assert_eq!(exported(&pool, "default"), entries);
    assert!(read(&pool, "default").0 == lines(&entries));
    assert!(read(&pool, "a map of roart").0 == b"k\tv\n");
}

/// The pool of a killed process can be read before another process has opened it.
#[test]
fn the_reader_finds_what_kills_leave() {
    let pool = Pool::new();
    let server = Server::start(&pool);
    let mut client = server.redis_client();
    let mset = client.ask("mset a 1 b 2 longer-than-a-word 3\r\n");
    assert_eq!(mset.as_deref(), Some("+OK"));
    server.kill();
    let (found, said) = read(&pool, "memcached");
    assert!(said.contains("b'': kind 0x1766b77"), "{said}");
    assert!(found == lines(&exported(&pool, "memcached")));

    pool.ok(["put", "0000000", "00000000"]);
    let mut import = pool
        .command(["import"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the import starts");
    // More than pipes and buffers hold, and without an end: the import is still running.
    let mut input = import.stdin.take().expect("piped");
    for i in 0..20_000 {
        writeln!(input, "{i:07}\t{i:08}").expect("the import reads");
    }
    import.kill().expect("the import runs");
    assert!(!import.wait().expect("the import ends").success());
    let (found, _) = read(&pool, "default");
    assert!(found == lines(&exported(&pool, "default")));
    pool.check();
}
