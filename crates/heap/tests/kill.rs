//! Real crashes: a child process that writes while it recovers is killed at random, again and again.

mod toy;

use pmem::{Hardware, Pool, PoolOptions};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use toy::{Random, Toy, seed, tracers};
use wollemi_heap::RecoveryStage;

const POOL: &str = "WOLLEMI_TEST_POOL";
const SEED: &str = "WOLLEMI_TEST_SEED";
const KEYS: u64 = 500;

fn open(path: &Path) -> Toy<Hardware> {
    let options = PoolOptions {
        page_size: 64 << 10,
        max_size: 1 << 30,
        ..PoolOptions::default()
    };
    Toy::open(Pool::open_or_create(path, &options, Hardware::detect()).unwrap()).unwrap()
}

/// The `n`th write: its key, and its new length; `None` removes it.
fn nth_write(seed: u64, n: u64) -> (u64, Option<usize>) {
    let mut random = Random((seed ^ (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1);
    random.next();
    let key = random.below(KEYS);
    (key, (random.below(3) > 0).then(|| random.len()))
}

/// Not a test of its own: the child process of the test below. Without the pool's path it does nothing.
#[test]
fn child() {
    let Some(path) = std::env::var_os(POOL) else {
        return;
    };
    let seed = std::env::var(SEED).unwrap().parse().unwrap();
    let toy = open(Path::new(&path));
    toy.heap.recover(tracers(), 2).unwrap();
    let mut out = std::io::stdout();
    for n in 0.. {
        let (key, len) = nth_write(seed, n);
        match len {
            Some(len) => toy.put(key, len).unwrap(),
            None => drop(toy.remove(key)),
        }
        if n % 7 == 0 {
            toy.copy_node(key).unwrap();
        }
        // Acknowledged.
        writeln!(out, "did {n}").unwrap();
        out.flush().unwrap();
    }
}

/// After each kill, every acknowledged write is there, the one in flight is there or not, and after recovery exactly
/// the reachable objects are in use.
#[test]
fn kills_lose_and_leak_nothing() {
    let seed = seed();
    let mut random = Random(seed);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    drop(open(&path));
    let mut model = BTreeMap::new();
    let mut acknowledged = 0;
    for round in 0..15 {
        let why = format!("seed {seed}, round {round}");
        let writes = random.next();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture"])
            .env(POOL, &path)
            .env(SEED, writes.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let wanted = random.below(600);
        let pause = Duration::from_micros(random.below(500));
        let mut lines = out.lines();
        let mut done = 0;
        for line in lines.by_ref() {
            done += u64::from(line.unwrap().contains("did "));
            if done > wanted {
                break;
            }
        }
        std::thread::sleep(pause);
        child.kill().unwrap();
        child.wait().unwrap();
        done += lines
            .map_while(Result::ok)
            .filter(|line| line.contains("did "))
            .count() as u64;
        acknowledged += done;
        for n in 0..done {
            let (key, len) = nth_write(writes, n);
            match len {
                Some(len) => drop(model.insert(key, len)),
                None => drop(model.remove(&key)),
            }
        }
        let toy = open(&path);
        let found = toy.all();
        let (key, len) = nth_write(writes, done);
        if found.get(&key) != model.get(&key) {
            // The write in flight took effect.
            assert_eq!(found.get(&key).copied(), len, "{why}: key {key}");
            model = found.clone();
            model.extend(len.map(|len| (key, len)));
        }
        assert_eq!(found, model, "{why}");
        if round % 3 == 0 {
            toy.heap.recover(tracers(), round % 4 + 1).unwrap();
            assert_eq!(toy.heap.wait_recovered(), RecoveryStage::Done, "{why}");
            toy.assert_exact(&why);
            assert_eq!(toy.all(), model, "{why}");
        }
    }
    assert!(acknowledged > 500, "the child did {acknowledged} writes in all");
    assert!(std::fs::metadata(&path).unwrap().len() < 200 << 20);
}
