//! Commands that walk keys, beside other clients of the same worker: each of their turns visits a bounded number of
//! keys.

use crate::support::{Client, PATIENCE, Running, with_redis};
use index::model::ModelIndex;
use index::{Direction, Error, Guard, Index, Value, Visit};
use std::io::Write;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use wollemi_server::Config;

/// Keys that are flushed before the walks begin: enough for several turns.
const FLUSHED: usize = 40_000;
/// More keys than one turn may visit, with a margin that the test can detect.
const MORE_THAN_A_TURN: usize = FLUSHED - 1000;

/// An index that counts the keys that scans visit, and stops a scan at its first key once the test says so.
struct Watched {
    items: ModelIndex,
    stops: AtomicBool,
    stopped: Sender<()>,
    goes_on: Mutex<Receiver<()>>,
    visited: AtomicUsize,
    /// Number of keys visited when the key `probe` was last read.
    at_probe: AtomicUsize,
}

impl Index for Watched {
    index::delegate!(items: write, check);

    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<Value<'g>>, Error> {
        if key == b"probe" {
            self.at_probe
                .store(self.visited.load(Ordering::SeqCst), Ordering::SeqCst);
        }
        self.items.get(key, guard)
    }
    fn scan<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Error> {
        self.items
            .scan(lower, upper, direction, guard, &mut |key, value| {
                self.visited.fetch_add(1, Ordering::SeqCst);
                if self.stops.swap(false, Ordering::SeqCst) {
                    self.stopped.send(()).expect("the test waits");
                    let goes_on = self.goes_on.lock().expect("one scan at a time");
                    goes_on.recv_timeout(PATIENCE).expect("the test goes on");
                }
                visit(key, value)
            })
    }
}

/// A server with one worker over a watched index, almost all of whose keys have just been flushed.
struct Scene {
    index: Arc<Watched>,
    stopped: Receiver<()>,
    goes_on: Sender<()>,
    server: Running,
}

impl Scene {
    fn new() -> Scene {
        let ((stopped_at, stopped), (goes_on, go_on)) = (channel(), channel());
        let index = Arc::new(Watched {
            items: ModelIndex::new(),
            stops: AtomicBool::new(false),
            stopped: stopped_at,
            goes_on: Mutex::new(go_on),
            visited: AtomicUsize::new(0),
            at_probe: AtomicUsize::new(0),
        });
        let config = Config {
            threads: 1,
            sweep_pause: None,
            ..with_redis()
        };
        let server = Running::over(config, index.clone());
        let mut client = server.connect_redis();
        let sets: String = (0..FLUSHED).map(|i| format!("SET key:{i} x\r\n")).collect();
        let mut socket = client.socket.try_clone().expect("a socket");
        let sent = std::thread::spawn(move || socket.write_all(sets.as_bytes()));
        client.expect("+OK\r\n".repeat(FLUSHED).as_bytes());
        sent.join().expect("no panic").expect("the server reads");
        client.ask("FLUSHDB\r\nSET key:9999 alive\r\n", "+OK\r\n+OK\r\n");
        Scene {
            index,
            stopped,
            goes_on,
            server,
        }
    }

    /// Makes one client send a command, which stops at the first key that it visits, and another one send something
    /// meanwhile.
    fn amid(&self, walking: &mut Client, command: &str, other: &mut Client, sends: &str) {
        self.index.visited.store(0, Ordering::SeqCst);
        self.index.stops.store(true, Ordering::SeqCst);
        walking.send(command.as_bytes());
        self.stopped.recv_timeout(PATIENCE).expect("the walk begins");
        other.send(sends.as_bytes());
        self.goes_on.send(()).expect("the walk waits");
    }

    fn visited(&self) -> usize {
        self.index.visited.load(Ordering::SeqCst)
    }
}

/// Another client is served before a long walk has ended, and the walk's answer is complete.
#[test]
fn others_are_served_amid_a_walk() {
    let scene = Scene::new();
    let (mut walking, mut other) = (scene.server.connect_redis(), scene.server.connect_redis());
    other.ask("PING\r\n", "+PONG\r\n");
    let found = "*1\r\n$8\r\nkey:9999\r\n";
    for (command, answer) in [
        ("KPREFIX key:\r\n", found),
        ("KEYS *\r\n", found),
        ("KRANGE + - REV\r\n", found),
        ("KRANGE [key [key:0\r\n*1\r\n$4\r\nPING\r\n", "*0\r\n+PONG\r\n"),
        (
            "KPREFIX key: WITHVALUES\r\nPING\r\n",
            "*2\r\n$8\r\nkey:9999\r\n$5\r\nalive\r\n+PONG\r\n",
        ),
    ] {
        scene.amid(&mut walking, command, &mut other, "GET probe\r\n");
        walking.expect(answer.as_bytes());
        other.expect(b"$-1\r\n");
        let (all, before) = (scene.visited(), scene.index.at_probe.load(Ordering::SeqCst));
        assert!(
            all < 1000 || before < all,
            "{command}: served after all of {all} keys"
        );
        assert!(
            all < 1000 || before < MORE_THAN_A_TURN,
            "{command}: served after {before} of {all} keys"
        );
    }
    let mut alone = scene.server.connect_redis();
    alone.ask("DEL key:9999\r\n", ":1\r\n");
    scene.amid(&mut walking, "RANDOMKEY\r\n", &mut other, "GET probe\r\n");
    walking.expect(b"$-1\r\n");
    other.expect(b"$-1\r\n");
    let before = scene.index.at_probe.load(Ordering::SeqCst);
    assert!(before < MORE_THAN_A_TURN, "RANDOMKEY: served after {before} keys");
}

/// A walk in several turns shows a transaction that comes between them as a whole or not at all.
#[test]
fn a_walk_sees_transactions_whole() {
    let scene = Scene::new();
    let (mut walking, mut other) = (scene.server.connect_redis(), scene.server.connect_redis());
    for round in 0..5 {
        let both = format!("MSET before:{round} x zz:{round} x\r\n");
        scene.amid(&mut walking, &format!("KEYS *:{round}\r\n"), &mut other, &both);
        let count = walking.line();
        if count != "*0" {
            assert_eq!(count, "*2", "half of a transaction");
            walking.expect(format!("$8\r\nbefore:{round}\r\n$4\r\nzz:{round}\r\n").as_bytes());
        }
        other.expect(b"+OK\r\n");
    }
}

/// A connection that is ended during a walk disturbs neither the server nor other connections.
#[test]
fn a_walk_ends_with_its_connection() {
    let scene = Scene::new();
    let (mut walking, mut other) = (scene.server.connect_redis(), scene.server.connect_redis());
    walking.ask("CLIENT SETNAME walking\r\n", "+OK\r\n");
    walking.send(b"CLIENT ID\r\n");
    let id = walking.line();
    let kill = format!("CLIENT KILL ID {}\r\n", id.trim_start_matches(':'));
    scene.amid(&mut walking, "KEYS *\r\n", &mut other, &kill);
    other.expect(b":1\r\n");
    let _ = std::io::Read::read_to_end(&mut walking.socket, &mut Vec::new());
    other.ask("KEYS *\r\n", "*1\r\n$8\r\nkey:9999\r\n");
}

/// A page of `SCAN` visits a bounded number of keys, whatever it requests; the scan as a whole finds all.
#[test]
fn pages_of_a_scan_are_bounded() {
    let scene = Scene::new();
    let mut client = scene.server.connect_redis();
    for options in [
        "",
        "COUNT 10000000",
        "MATCH *nothing",
        "MATCH key:* COUNT 1000000",
    ] {
        let (mut cursor, mut pages, mut keys) = (0, 0, Vec::new());
        loop {
            scene.index.visited.store(0, Ordering::SeqCst);
            client.send(format!("SCAN {cursor} {options}\r\n").as_bytes());
            assert_eq!(client.line(), "*2");
            client.line();
            cursor = client.line().parse::<u64>().expect("a number");
            let count: usize = client.line()[1..].parse().expect("a number");
            for _ in 0..count {
                client.line();
                keys.push(client.line());
            }
            pages += 1;
            assert!(
                scene.visited() < MORE_THAN_A_TURN,
                "{} keys for a page",
                scene.visited()
            );
            if cursor == 0 {
                break;
            }
        }
        assert!(pages > 1);
        let found = if options.contains("nothing") { 0 } else { 1 };
        assert_eq!(keys.len(), found, "{options}: {keys:?}");
    }
}
