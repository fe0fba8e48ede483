//! The process that is killed.

use crate::Tested;
use crate::aim::{Aim, Trigger};
use crate::common::Random;
use crate::workload::{self, Action, KEYS, MAP, Record, WRITERS};
use pmem::Watched;
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::thread;
use wollemi::{Map, Options};

/// Works until it is killed. Any failure ends the process, which the parent notices.
pub fn work(pool: &Path, tested: Tested, (seed, round): (u64, u64), aim: Option<Aim>) -> ! {
    let db = Options::new()
        .level(tested.level)
        .recovery_threads(2)
        .open_on(pool, Watched::machine(Trigger::new(aim)))
        .expect("the pool opens");
    let map = db.map_with(MAP, tested.kind).expect("the map opens");
    // One unbuffered write per record: it is in the pipe when the call returns, whatever happens then.
    let pipe = File::from(std::io::stdout().as_fd().try_clone_to_owned().expect("a pipe"));
    thread::scope(|scope| {
        let (map, pipe) = (&map, &pipe);
        let mut threads = Vec::new();
        for writer in 0..WRITERS {
            threads.push(scope.spawn(move || write(map, pipe, seed, round, writer)));
        }
        threads.push(scope.spawn(move || read(map, pipe, seed ^ round)));
        while threads.iter().all(|thread| !thread.is_finished()) {
            thread::sleep(std::time::Duration::from_millis(5));
        }
        std::process::exit(1);
    })
}

fn tell(mut pipe: &File, record: Record) {
    pipe.write_all(&record.encode()).expect("the parent listens");
}

fn write(map: &Map, pipe: &File, seed: u64, round: u64, writer: u8) {
    for n in 0.. {
        let op = workload::op(seed, round, writer, n);
        let (key, value) = (workload::key(writer, op.key), workload::value(op.version));
        let answer = match op.action {
            Action::Insert => map.insert(key, value),
            Action::Upsert => map.upsert(key, value).map(|()| true),
            Action::Update => map.update(key, value),
            Action::Remove => map.remove(key),
        };
        tell(
            pipe,
            Record::Wrote {
                writer,
                answer: answer.expect("written"),
            },
        );
    }
}

fn read(map: &Map, pipe: &File, seed: u64) {
    let mut names = HashMap::new();
    for writer in 0..WRITERS {
        names.extend((0..KEYS).map(|key| (workload::key(writer, key), (writer, key))));
    }
    let mut random = Random::from_seed(seed);
    loop {
        let (writer, key) = (
            random.below(WRITERS.into()) as u8,
            random.below(KEYS.into()) as u32,
        );
        let bytes = workload::key(writer, key);
        let reader = map.reader();
        let seen = reader.get(&bytes).expect("read");
        let version = seen.map(|value| workload::version(&value));
        tell(pipe, Record::Saw { writer, key, version });
        if random.below(8) != 0 {
            continue;
        }
        let mut last = None;
        for entry in reader.range(&bytes..).take(30) {
            let (bytes, value) = entry.expect("scanned");
            assert!(last < Some(bytes), "a scan continues in order");
            last = Some(bytes);
            let (writer, key) = names[bytes];
            tell(
                pipe,
                Record::Saw {
                    writer,
                    key,
                    version: Some(workload::version(&value)),
                },
            );
        }
    }
}
