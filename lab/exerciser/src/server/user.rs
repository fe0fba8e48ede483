//! A user: two connections, one of each protocol, and the expected content of its keys.

use super::reply::{Expected, Reply, Sent, shown};
use super::step::{Draw, Step};
use super::truth::{End, Keys, OWN, SHARED, Truth, now};
use super::wire::{Connection, Protocol};
use super::{PATIENCE, memcached, redis};
use crate::calls::Calls;
use crate::random::Random;
use std::collections::VecDeque;
use std::io;
use std::time::Duration;

/// Maximum length in bytes of unanswered requests, if they are more than one. The kernel buffers that many even if the
/// server reads none, so user and server never wait for each other.
const MAX_UNANSWERED_BYTES: usize = 32 << 10;

/// Maximum number of requests that a failure shows.
const MAX_RECENT: usize = 12;

/// The state of a user between rounds.
pub(super) struct User {
    pub number: usize,
    pub keys: Keys,
    pub truth: Truth,
    pub stamp: u64,
    /// The requests without an answer when the server ended.
    pub in_flight: Vec<Step>,
    /// Maximum number of requests in a row.
    pub pipeline: u64,
    /// The requests answered last, and their answers.
    recent: VecDeque<String>,
    pub calls: Calls,
    pub refused: u64,
}

/// Why a user stops.
#[derive(Debug)]
pub(super) enum Stop {
    /// The connection has failed.
    Ended(String),
    /// An answer is wrong.
    Wrong(String),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        match error.kind() {
            io::ErrorKind::InvalidData => Stop::Wrong(error.to_string()),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                Stop::Wrong(format!("the server does not answer within {PATIENCE:?}"))
            }
            _ => Stop::Ended(error.to_string()),
        }
    }
}

/// A user at work, in one round.
pub(super) struct Session<'u> {
    user: &'u mut User,
    random: Random,
    memcached: Connection,
    redis: Connection,
    /// The database that the Redis connection has selected.
    database: usize,
}

impl User {
    pub fn new(number: usize, seed: u64, pipeline: u64, ordered: bool) -> User {
        let keys = Keys::new(number, ordered, &mut Random::new(seed, 6 << 32 | number as u64));
        User {
            number,
            truth: Truth::new(&keys),
            keys,
            stamp: 0,
            in_flight: Vec::new(),
            pipeline,
            recent: VecDeque::new(),
            calls: Calls::default(),
            refused: 0,
        }
    }

    /// Returns the requests answered last, for the report of a failure.
    pub fn recent(&self) -> String {
        let lines = self.recent.iter().map(|line| format!("\n    {line}"));
        lines.collect()
    }
}

impl<'u> Session<'u> {
    pub fn new(
        user: &'u mut User,
        mut random: Random,
        mut connect: impl FnMut(Protocol, &mut Random) -> io::Result<Connection>,
    ) -> Result<Session<'u>, Stop> {
        let memcached = connect(Protocol::Memcached, &mut random)?;
        let mut redis = connect(Protocol::Redis, &mut random)?;
        if random.one_in(2) {
            redis.send(b"HELLO 3\r\n")?;
            redis.receive()?;
        }
        Ok(Session {
            user,
            random,
            memcached,
            redis,
            database: SHARED,
        })
    }

    /// Sends one or more requests, and compares their answers.
    pub fn turn(&mut self) -> Result<(), Stop> {
        match self.random.below(100) {
            0..45 => self.several(Protocol::Memcached),
            45..90 => self.several(Protocol::Redis),
            90..96 => self.watch(),
            96..99 => self.scan(),
            _ => self.expire(),
        }
    }

    /// Draws a request with this function.
    fn draw<S>(&mut self, by: impl FnOnce(&mut Draw<'_>) -> S) -> S {
        let User {
            number,
            keys,
            truth,
            stamp,
            pipeline,
            ..
        } = &mut *self.user;
        let (random, database) = (&mut self.random, &mut self.database);
        by(&mut Draw::new(
            random,
            (*number, keys),
            truth,
            stamp,
            database,
            *pipeline > 1,
        ))
    }

    fn several(&mut self, protocol: Protocol) -> Result<(), Stop> {
        let max = self.random.pick(&[1, 1, 3, 20, 100]).min(self.user.pipeline);
        let count = 1 + self.random.below(max);
        let mut steps: Vec<Step> = (0..count)
            .map(|_| match protocol {
                Protocol::Memcached => self.draw(memcached::draw),
                Protocol::Redis => self.draw(redis::draw),
            })
            .collect();
        if steps.last().is_some_and(|step| step.expected.is_empty()) {
            steps.push(self.draw(memcached::noop));
        }
        self.carry_out(protocol, steps)
    }

    /// Watches a key, changes it or leaves it, and runs a transaction, which must notice a change.
    fn watch(&mut self) -> Result<(), Stop> {
        if self.database != SHARED {
            return self.several(Protocol::Redis);
        }
        let place = self.draw(|draw| draw.text_place());
        // A watched key that does not exist may count as changed because of another key.
        let Some(held) = self.user.truth.item(place).cloned() else {
            return self.several(Protocol::Memcached);
        };
        let key = self.user.keys.all[place.1].clone();
        let watch = self.draw(|draw| {
            let command = redis::Command::new("WATCH", [key.clone()], Expected::Is(Reply::line("OK")));
            draw.step(
                "WATCH",
                Protocol::Redis,
                command.request(),
                vec![command.expected],
            )
        });
        self.carry_out(Protocol::Redis, vec![watch])?;
        match self.random.below(4) {
            0 => {}
            1 => {
                // Another lifetime does not count as a change.
                let mut request = b"touch ".to_vec();
                request.extend(&key);
                request.extend(b" 70000\r\n");
                let touch = self.draw(|draw| {
                    let end = Some(End::after(70_000_000));
                    draw.set(place, Some(super::truth::Item { end, ..held.clone() }));
                    let expected = vec![Expected::Is(Reply::line("TOUCHED"))];
                    draw.step("touch", Protocol::Memcached, request, expected)
                });
                self.carry_out(Protocol::Memcached, vec![touch])?;
            }
            _ => self.several(Protocol::Memcached)?,
        }
        let is_same = self
            .user
            .truth
            .item(place)
            .is_some_and(|item| item.stamp == held.stamp);
        let exec = self.draw(|draw| redis::exec(draw, is_same));
        self.carry_out(Protocol::Redis, vec![exec])
    }

    /// Reads all keys by `SCAN`.
    fn scan(&mut self) -> Result<(), Stop> {
        let (mut cursor, mut found) = (b"0"[..].to_vec(), Vec::new());
        let count = self.random.pick(&["1", "10", "1000"]);
        let before = now();
        loop {
            let words = [&*cursor, b"COUNT", count.as_bytes()];
            let command = redis::Command::new("SCAN", words, Expected::Any);
            self.redis.send(&command.request())?;
            self.user.calls.add("SCAN");
            let reply = self.redis.receive()?;
            let pair = match &reply {
                Reply::Array(pair) => &pair[..],
                _ => &[],
            };
            let [Reply::Bulk(next), Reply::Array(keys)] = pair else {
                return Err(self.wrong(&shown(&command.request()), &reply, &"a cursor and keys"));
            };
            found.extend(keys.iter().cloned());
            cursor = next.to_vec();
            if cursor == b"0" {
                break;
            }
        }
        let items = self
            .user
            .keys
            .all
            .iter()
            .zip(&self.user.truth.items[self.database]);
        let own = items.filter_map(|(key, item)| item.as_ref().map(|_| (key.clone(), None)));
        let expected = Expected::Keys {
            own: own.collect(),
            user: self.user.number,
            ordered: self.user.keys.ordered,
        };
        let found = Reply::Array(found);
        let sent = Sent {
            from: before,
            to: now(),
        };
        match expected.is(&found, sent, &mut Vec::new()) {
            true => Ok(()),
            false => Err(self.wrong("SCAN to its end", &found, &expected)),
        }
    }

    /// Stores an item that expires after a few milliseconds, and waits until it has expired.
    fn expire(&mut self) -> Result<(), Stop> {
        const LIFETIME_MS: u64 = 4;
        let step = self.draw(|draw| {
            let place = draw.place();
            let data = draw.data();
            draw.set(place, None);
            let words = [draw.key(place), b"4", &data];
            let command = redis::Command::new("PSETEX", words, Expected::Is(Reply::line("OK")));
            draw.step(
                "PSETEX",
                Protocol::Redis,
                command.request(),
                vec![command.expected],
            )
        });
        self.carry_out(Protocol::Redis, vec![step])?;
        std::thread::sleep(Duration::from_millis(3 * LIFETIME_MS));
        Ok(())
    }

    fn connection(&mut self, protocol: Protocol) -> &mut Connection {
        match protocol {
            Protocol::Memcached => &mut self.memcached,
            Protocol::Redis => &mut self.redis,
        }
    }

    /// Sends the steps in order and compares their answers. Steps without an answer are then in flight.
    fn carry_out(&mut self, protocol: Protocol, steps: Vec<Step>) -> Result<(), Stop> {
        let from = now();
        let (mut answered, mut sent, mut waiting) = (0, 0, 0);
        let done = loop {
            if sent == steps.len() && answered == steps.len() {
                break Ok(());
            }
            if sent < steps.len()
                && (waiting == 0 || waiting + steps[sent].request.len() <= MAX_UNANSWERED_BYTES)
            {
                waiting += steps[sent].request.len();
                let request = &steps[sent].request;
                sent += 1;
                if let Err(error) = self.connection(protocol).send(request) {
                    break Err(error.into());
                }
                continue;
            }
            if let Err(stop) = self.receive(&steps[answered], from) {
                break Err(stop);
            }
            answered += 1;
            if answered == sent {
                waiting = 0;
            }
        };
        // A step that asks for no answer is certainly carried out only once a later one is answered.
        while answered < steps.len() && answered > 0 && steps[answered - 1].expected.is_empty() {
            answered -= 1;
        }
        self.user.in_flight = steps;
        self.user.in_flight.drain(..answered);
        done
    }

    /// Receives the answers to a step and compares them.
    fn receive(&mut self, step: &Step, from: u64) -> Result<(), Stop> {
        let mut uniques = Vec::new();
        for (i, expected) in step.expected.iter().enumerate() {
            let reply = self.connection(step.protocol).receive()?;
            if i == 0 {
                if self.user.recent.len() == MAX_RECENT {
                    self.user.recent.pop_front();
                }
                let line = format!("{:?}: {} -> {reply:?}", step.protocol, shown(&step.request));
                self.user.recent.push_back(line);
            }
            if reply.is_refusal() && self.user.pipeline == 1 {
                self.refuse(step);
                return Ok(());
            }
            let sent = Sent { from, to: now() };
            if !expected.is(&reply, sent, &mut uniques) {
                return Err(self.wrong(&shown(&step.request), &reply, expected));
            }
        }
        self.user.calls.add(step.name);
        for shown_unique in uniques {
            if !self.user.truth.note(shown_unique) {
                let key = shown(&self.user.keys.all[shown_unique.place.1]);
                return Err(Stop::Wrong(format!(
                    "item {key} has the unique {}, which contradicts an earlier answer",
                    shown_unique.unique
                )));
            }
        }
        Ok(())
    }

    /// Undoes a step that the server refused for lack of room.
    fn refuse(&mut self, step: &Step) {
        self.user.refused += 1;
        for change in step.changes.iter().rev() {
            self.user.truth.set(change.place, change.old.clone());
        }
    }

    fn wrong(&self, request: &str, reply: &Reply, expected: &dyn std::fmt::Debug) -> Stop {
        Stop::Wrong(format!(
            "request: {request}\n  answer: {reply:?}\n  expected: {expected:?}\n  in database {}",
            if self.database == OWN { self.user.number } else { 0 }
        ))
    }
}
