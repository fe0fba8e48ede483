//! The server's read-ahead: it prefetches the items of the following requests, and changes no answer.

use crate::support::{Running, config, shown, with_redis};
use index::model::ModelIndex;
use index::{Edits, Guard, Index};
use std::sync::{Arc, Mutex};

/// An index that records which keys it is asked to prefetch, or to write, together.
#[derive(Default)]
struct Noting {
    index: ModelIndex,
    prefetched: Mutex<Vec<Vec<Vec<u8>>>>,
}

impl Index for Noting {
    index::delegate!(index: get, write, scan, check);

    fn prefetch(&self, keys: &[&[u8]], _guard: &Guard) {
        let keys = keys.iter().map(|key| key.to_vec()).collect();
        self.prefetched.lock().expect("no panic").push(keys);
    }
    fn write_many(&self, keys: &[&[u8]], edits: &mut dyn Edits) {
        self.prefetch(keys, &heap::pin());
        self.index.write_many(keys, edits);
    }
}

/// The keys of writes that arrive together are prefetched together, 64 requests at a time, before the first is
/// executed.
#[test]
fn writes_that_come_together_are_prefetched_together() {
    let keys = |range: std::ops::Range<usize>| range.map(|i| format!("k{i:02}").into_bytes());
    // Each pipeline is one segment, which arrives as a whole.
    let memcached: String = (0..90).map(|i| format!("set k{i:02} 0 0 1\r\nx\r\n")).collect();
    let redis: String = (0..90)
        .map(|i| format!("*3\r\n$3\r\nSET\r\n$3\r\nk{i:02}\r\n$1\r\nx\r\n"))
        .collect();
    let index = Arc::new(Noting::default());
    let server = Running::over(with_redis(), index.clone());
    for (mut client, pipeline, answer) in [
        (server.connect(), memcached, "STORED\r\n"),
        (server.connect_redis(), redis, "+OK\r\n"),
    ] {
        client.ask(&pipeline, &answer.repeat(90));
        let prefetched = std::mem::take(&mut *index.prefetched.lock().expect("no panic"));
        assert_eq!(
            prefetched,
            [keys(0..64).collect::<Vec<_>>(), keys(64..90).collect()]
        );
    }
}

/// Returns the answers to a stream of requests that arrives in pieces of `piece` bytes, the last of which ends the
/// connection.
fn answers(redis: bool, requests: &[u8], piece: usize) -> String {
    let server = Running::over(with_redis(), Arc::new(Noting::default()));
    let mut client = match redis {
        true => server.connect_redis(),
        false => server.connect(),
    };
    client.socket.set_nodelay(true).expect("a socket");
    let mut sender = client.socket.try_clone().expect("a socket");
    let answers = std::thread::scope(|scope| {
        scope.spawn(move || {
            for piece in requests.chunks(piece) {
                // The server may have ended the connection.
                if std::io::Write::write_all(&mut sender, piece).is_err() {
                    break;
                }
            }
        });
        client.rest()
    });
    String::from_utf8_lossy(&answers).into_owned()
}

/// A stream of writes of every kind, with requests that end or change the meaning of later bytes, gets the same answers
/// however it is cut.
#[test]
fn what_is_read_ahead_changes_no_answer() {
    let large = "l".repeat(config().max_value + 1);
    let mut memcached = String::new();
    let mut redis = String::new();
    let resp = |words: &[&str]| {
        let words = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
        let words: Vec<String> = words.collect();
        format!("*{}\r\n{}", words.len(), words.concat())
    };
    for i in 0..200 {
        let key = format!("k{}", i % 40);
        memcached += &match i % 8 {
            0 => format!("set {key} {i} 0 3\r\n{i:03}\r\n"),
            1 => format!("incr {key} 7\r\n"),
            2 => format!("append {key} 0 0 2\r\n--\r\n"),
            3 => format!("ms {key} 2 T0\r\nhi\r\nmg {key} v\r\n"),
            4 => format!("delete {key}\r\nget {key} k1\r\n"),
            5 => format!("gat 0 {key}\r\nset {key}\r\n"),
            6 => format!("add {key} 0 0 1 noreply\r\n1\r\n"),
            _ => format!("touch {key} 0\r\n"),
        };
        redis += &match i % 8 {
            0 => resp(&["SET", &key, &i.to_string()]),
            1 => resp(&["INCR", &key]),
            2 => format!("append {key} 1\r\n"),
            3 => resp(&["MULTI"]) + &resp(&["SET", &key, "9"]) + &resp(&["EXEC"]),
            4 => resp(&["DEL", &key, "k1"]) + &resp(&["GET", &key]),
            5 => resp(&["SELECT", "77"]) + &resp(&["RESET"]),
            6 => resp(&["MSET", &key, "5", "k2", "6"]),
            _ => resp(&["PING"]),
        };
        if i == 100 {
            memcached += &format!("set {key} 0 0 {}\r\n{large}\r\n", large.len());
        }
    }
    memcached += "quit\r\n";
    redis += "*1\r\n$nonsense\r\n";
    for (is_redis, requests) in [(false, memcached), (true, redis)] {
        let whole = answers(is_redis, requests.as_bytes(), usize::MAX);
        for piece in [1 << 16, 4096, 1000, 61] {
            let pieces = answers(is_redis, requests.as_bytes(), piece);
            assert!(
                whole == pieces,
                "{}\n{}",
                shown(whole.as_bytes()),
                shown(pieces.as_bytes())
            );
        }
        assert!(whole.len() > 1000, "{}", shown(whole.as_bytes()));
    }
}
