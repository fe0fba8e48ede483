//! The count of the items, which begins with the server and runs beside the clients.

use crate::support::{PATIENCE, Running, with_redis};
use index::model::ModelIndex;
use index::{Direction, Error, Guard, Index, Visit};
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use wollemi_server::Config;

/// An index whose second scan blocks until the test releases it.
struct Held {
    index: ModelIndex,
    scans: AtomicUsize,
    waits: Sender<()>,
    released: Mutex<Receiver<()>>,
}

impl Index for Held {
    index::delegate!(index: get, write, check);

    fn scan<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Error> {
        if self.scans.fetch_add(1, Ordering::SeqCst) == 1 {
            // After a failure of the test the other side no longer listens or answers.
            let _ = self.waits.send(());
            let _ = self.released.lock().expect("no panic").recv_timeout(PATIENCE);
        }
        self.index.scan(lower, upper, direction, guard, visit)
    }
}

/// Until the count is complete, numbers of items are too small and not reported as exact, and no command waits for the
/// count. Afterwards they are exact.
#[test]
fn numbers_are_exact_once_they_are_said_to_be() {
    let index = ModelIndex::new();
    let server = Running::over(with_redis(), Arc::new(index.clone()));
    let mut client = server.connect_redis();
    client.ask("mset a 1 b 2 c 3\r\n", "+OK\r\n");
    server.stop();

    let ((waits, waiting), (go_on, released)) = (channel(), channel());
    let held = Held {
        index,
        // The first scan is made when the server starts, and counts one item.
        scans: AtomicUsize::new(0),
        waits,
        released: Mutex::new(released),
    };
    let config = Config {
        sweep_pause: None,
        ..with_redis()
    };
    let server = Running::over(config, Arc::new(held));
    waiting.recv_timeout(PATIENCE).expect("the items are counted");
    let mut client = server.connect_redis();
    // Returns INFO's `keyspace_exact` and DBSIZE's reply.
    let mut reported = || {
        client.send(b"info stats\r\n");
        let info = String::from_utf8(client.until(b"\r\n\r\n")).expect("text");
        let mut lines = info.lines();
        let exact = lines.find_map(|line| line.strip_prefix("keyspace_exact:"));
        let exact = exact.expect("INFO has the field").to_owned();
        client.send(b"dbsize\r\n");
        (exact, client.line())
    };
    assert_eq!(reported(), ("0".to_owned(), ":1".to_owned()));
    go_on.send(()).expect("the count waits");
    let begin = Instant::now();
    loop {
        let (exact, size) = reported();
        if exact == "1" {
            assert_eq!(size, ":3");
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "the count does not end");
    }
    server.stop();
}
