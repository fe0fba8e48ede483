//! The durations of requests: histograms and the slow log.

use super::dialect::{DIALECT, NAMES, number};
use super::handler::Handler;
use crate::items::store::classic::Verb;
use crate::ops::latency::Command;
use crate::proto::memcached::request::{Body, MetaVerb, Request};
use std::time::Duration;

impl Handler {
    /// Records the duration of an answered request. `quit`, HTTP and malformed lines are not timed.
    pub fn timed(&self, request: &Request<'_>, now: u64) {
        let number = match request {
            Request::Get { .. } => const { number("get") },
            Request::GetAndTouch { .. } => const { number("gat") },
            Request::Store { body, .. } | Request::TooLarge(body) => match body {
                Body::Set { .. } => const { number("set") },
                Body::Classic { verb, .. } => match verb {
                    Verb::Add => const { number("add") },
                    Verb::Replace => const { number("replace") },
                    Verb::Append => const { number("append") },
                    Verb::Prepend => const { number("prepend") },
                    Verb::Cas(_) => const { number("cas") },
                },
                Body::Meta(_) => const { number("ms") },
            },
            Request::Delete { .. } => const { number("delete") },
            Request::Count { up: true, .. } => const { number("incr") },
            Request::Count { up: false, .. } => const { number("decr") },
            Request::Touch { .. } => const { number("touch") },
            Request::FlushAll { .. } => const { number("flush_all") },
            Request::MetaNothing => const { number("mn") },
            Request::Meta(meta) => match meta.verb {
                MetaVerb::Get => const { number("mg") },
                MetaVerb::Set => const { number("ms") },
                MetaVerb::Delete => const { number("md") },
                MetaVerb::Count => const { number("ma") },
            },
            Request::MetaDebug { .. } => const { number("me") },
            Request::Stats { .. } => const { number("stats") },
            Request::Version => const { number("version") },
            Request::Verbosity => const { number("verbosity") },
            Request::MemoryLimit(_) => const { number("cache_memlimit") },
            Request::Quit | Request::Wrong(_) | Request::Http | Request::LineTooLong => return,
        };
        self.timed_as(number, self.worker.lap(), 1, now, || {
            request.key().into_iter().collect()
        });
    }

    /// Records the duration of a group of equal commands; the slow log shows `keys`.
    pub fn timed_as<'k>(
        &self,
        number: usize,
        took: Duration,
        times: u64,
        now: u64,
        keys: impl FnOnce() -> Vec<&'k [u8]>,
    ) {
        let command = Command {
            protocol: &DIALECT,
            number,
        };
        if times > 0 && self.worker.took(command, took, times) {
            let mut words = keys();
            words.insert(0, NAMES[number].as_bytes());
            let slow = &self.shared().slow;
            slow.note(command, took, now, &self.client, words.into_iter());
        }
    }
}
