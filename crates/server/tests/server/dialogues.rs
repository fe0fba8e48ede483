//! Dialogues, byte for byte: the same requests get the answers that memcached gives.
//!
//! `dialogue/same.txt` and `meta.txt` contain the answers of memcached 1.6.18 (`clients/dialogue.py` queries any
//! server, and prints where its answers differ), `dialogue/ours.txt` the answers in which this server differs on
//! purpose. Each block is a connection; `> ` lines are sent, `< ` lines are the answer, each followed by `\r\n`; `<end`
//! means that the server closes the connection. `\xNN` and the like are bytes, and `{x*9}` is nine times `x`. A line
//! that ends in `\c` is followed by nothing.

use crate::support::{Running, config};
use heap::Heap;
use index::Index;
use index::model::ModelIndex;
use pmem::{Hardware, Pool, PoolOptions};
use roart::Roart;
use std::path::Path;
use std::sync::Arc;

#[derive(Default)]
struct Block {
    line: usize,
    requests: Vec<u8>,
    answers: Vec<u8>,
    ends: bool,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut block = Block::default();
    for (number, line) in text.lines().chain([""]).enumerate() {
        if let Some(request) = line.strip_prefix("> ") {
            block.requests.extend(bytes(request));
        } else if let Some(answer) = line.strip_prefix("< ") {
            block.answers.extend(bytes(answer));
        } else if line == "<end" {
            block.ends = true;
        } else if line.is_empty() && !block.requests.is_empty() {
            blocks.push(std::mem::replace(
                &mut block,
                Block {
                    line: number + 2,
                    ..Block::default()
                },
            ));
        } else {
            assert!(
                line.is_empty() || line.starts_with('#'),
                "line {}: {line}",
                number + 1
            );
        }
    }
    blocks
}

fn bytes(line: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        rest = &rest[first.len_utf8()..];
        match first {
            '{' => {
                let (repeated, behind) = rest.split_once('}').expect("a closing brace");
                let (what, times) = repeated.rsplit_once('*').expect("a count");
                out.extend(what.repeat(times.parse().expect("a count")).into_bytes());
                rest = behind;
            }
            '\\' => {
                let (code, behind) = rest.split_at(1);
                rest = behind;
                match code {
                    "r" => out.push(b'\r'),
                    "n" => out.push(b'\n'),
                    "c" => return out,
                    "x" => {
                        out.push(u8::from_str_radix(&rest[..2], 16).expect("two digits"));
                        rest = &rest[2..];
                    }
                    other => panic!("\\{other}"),
                }
            }
            other => out.extend(other.to_string().into_bytes()),
        }
    }
    out.extend(b"\r\n");
    out
}

fn hold(file: &str, index: Arc<dyn Index>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/server/dialogue")
        .join(file);
    let text = std::fs::read_to_string(&path).expect("the dialogues");
    let server = Running::over(config(), index);
    for block in blocks(&text) {
        println!("{file}, line {}", block.line);
        let mut client = server.connect();
        client.send(&block.requests);
        client.expect(&block.answers);
        if !block.ends {
            // No more bytes arrive: the next answer is the next request's.
            client.ask("verbosity 1\r\n", "OK\r\n");
            client.send(b"quit\r\n");
        }
        client.expect_end();
    }
    let report = server.stop();
    assert_eq!((report.failures, report.abandoned), (0, 0));
}

/// memcached's answers.
#[test]
fn answers_are_memcacheds() {
    hold("same.txt", Arc::new(ModelIndex::new()));
    hold("meta.txt", Arc::new(ModelIndex::new()));
}

/// Intended differences from memcached's answers.
#[test]
fn differences_are_these() {
    hold("ours.txt", Arc::new(ModelIndex::new()));
}

/// memcached's answers over the real index.
#[test]
fn answers_are_memcacheds_over_roart() {
    let pool = Pool::anonymous(&PoolOptions::default(), Hardware::detect()).expect("a pool");
    let heap = Heap::new(pool).expect("a heap");
    let index = Arc::new(Roart::<Hardware>::create(&heap, b"memcached").expect("an index"));
    hold("same.txt", index.clone());
    let faults = index.check().expect("no failure");
    assert!(faults.found.is_empty(), "{:?}", faults.found);
}
