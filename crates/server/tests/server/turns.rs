//! Clients of one worker that send much at once, and the answers they have got when they are cut off.

use crate::support::{Client, PATIENCE, Running, with_redis};
use index::model::ModelIndex;
use std::cell::Cell;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use wollemi_server::Config;

const CLIENTS: usize = 8;
/// Number of clients that are killed.
const VICTIMS: usize = 4;
/// Turns after which a client ends by itself, whatever other clients do.
const MAX_TURNS: usize = 1 << 16;
/// Commands that each client sends at once.
const COMMANDS: usize = 64;

/// Starts a server with one worker.
fn server(index: &ModelIndex) -> Running {
    let one = Config {
        threads: 1,
        drain_timeout: PATIENCE,
        ..with_redis()
    };
    Running::over(one, Arc::new(index.clone()))
}

/// Increments `key`, many commands at once, until the connection ends, or the test says so after a turn. Returns the
/// number of answers, each of which must be the next number.
fn count(client: &Client, key: usize, after_turn: impl Fn() -> bool) -> usize {
    let mut socket = client.socket.try_clone().expect("a socket");
    let mut answers = BufReader::new(&client.socket);
    let commands = format!("incr {key}\r\n").repeat(COMMANDS);
    let mut come = 0;
    for _ in 0..MAX_TURNS {
        if socket.write_all(commands.as_bytes()).is_err() {
            break; // Bytes not accepted from here on were not executed.
        }
        for _ in 0..COMMANDS {
            let mut answer = String::new();
            match answers.read_line(&mut answer) {
                Ok(1..) => come += 1,
                Ok(0) => return come,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return come,
                Err(error) => panic!("no answer: {error}"),
            }
            assert_eq!(answer, format!(":{come}\r\n"));
        }
        if after_turn() {
            break;
        }
    }
    come
}

/// Fails unless the server has incremented each key as often as it has answered the key's client.
fn expect_counted(server: &Running, answered: &[usize]) {
    let mut client = server.connect_redis();
    for (key, answered) in answered.iter().enumerate() {
        client.ask(&format!("incrby {key} 0\r\n"), &format!(":{answered}\r\n"));
    }
}

/// Counts like [`count`], and signals after the first turn.
fn count_amid(client: &Client, key: usize, begun: &Sender<()>, ended: impl Fn() -> bool) -> usize {
    let first = Cell::new(true);
    count(client, key, || {
        if first.replace(false) {
            begun.send(()).expect("the other thread waits");
        }
        ended()
    })
}

/// When the server stops, clients in the middle of their commands have got an answer for each executed command, in
/// order, and once.
#[test]
fn what_is_carried_out_is_told_when_the_server_stops() {
    let index = ModelIndex::new();
    let running = server(&index);
    let (begun, all_begun) = &channel();
    let clients: Vec<_> = (0..CLIENTS).map(|_| running.connect_redis()).collect();
    let answered: Vec<_> = std::thread::scope(|scope| {
        let counting = clients.iter().enumerate();
        let counting: Vec<_> = counting
            .map(|(key, client)| scope.spawn(move || count_amid(client, key, begun, || false)))
            .collect();
        for _ in 0..CLIENTS {
            all_begun.recv_timeout(PATIENCE).expect("all begin");
        }
        running.tell_to_stop();
        counting
            .into_iter()
            .map(|client| client.join().expect("in order"))
            .collect()
    });
    assert_eq!(running.stop().abandoned, 0);
    expect_counted(&server(&index), &answered);
}

/// A client that is killed during its commands has also got an answer for each executed command; the others continue.
#[test]
fn what_is_carried_out_is_told_to_who_is_killed() {
    let running = server(&ModelIndex::new());
    let (begun, all_begun) = &channel();
    let ended = &AtomicBool::new(false);
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| running.connect_redis()).collect();
    let ids: Vec<_> = clients
        .iter_mut()
        .map(|client| {
            client.send(b"client id\r\n");
            client.line().split_off(1)
        })
        .collect();
    let answered: Vec<_> = std::thread::scope(|scope| {
        let counting = clients.iter().enumerate();
        let mut counting: Vec<_> = counting
            .map(|(key, client)| {
                let ended = || ended.load(Ordering::Relaxed);
                scope.spawn(move || count_amid(client, key, begun, ended))
            })
            .collect();
        for _ in 0..CLIENTS {
            all_begun.recv_timeout(PATIENCE).expect("all begin");
        }
        let others = counting.split_off(VICTIMS);
        let mut killer = running.connect_redis();
        for id in &ids[..VICTIMS] {
            killer.ask(&format!("client kill id {id}\r\n"), ":1\r\n");
        }
        let victims = counting
            .into_iter()
            .map(|client| client.join().expect("in order"));
        let mut answered: Vec<_> = victims.collect();
        ended.store(true, Ordering::Relaxed);
        answered.extend(others.into_iter().map(|client| client.join().expect("in order")));
        answered
    });
    assert!(
        answered[VICTIMS..]
            .iter()
            .all(|answered| answered.is_multiple_of(COMMANDS))
    );
    expect_counted(&running, &answered);
}
