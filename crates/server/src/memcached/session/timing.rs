//! How long requests took.

use super::super::parse::{Body, MetaVerb, Request, Verb};
use super::Session;
use crate::config::Protocol;
use crate::latency::Command;
use std::time::Duration;

/// The commands whose time is taken, in the order of their numbers.
pub const NAMES: &[&str] = &[
    "get",
    "mg",
    "gat",
    "set",
    "add",
    "replace",
    "append",
    "prepend",
    "cas",
    "delete",
    "incr",
    "decr",
    "touch",
    "flush_all",
    "mn",
    "ms",
    "md",
    "ma",
    "me",
    "stats",
    "version",
    "verbosity",
];

impl Session {
    /// Notes what a request that is answered has taken. What is no request is not timed.
    pub(in super::super) fn timed(&self, request: &Request<'_>, now: u64) {
        let name = match request {
            Request::Get { .. } => "get",
            Request::GetAndTouch { .. } => "gat",
            Request::Store { body, .. } | Request::TooLarge(body) => match body {
                Body::Classic { verb, .. } => match verb {
                    Verb::Set => "set",
                    Verb::Add => "add",
                    Verb::Replace => "replace",
                    Verb::Append => "append",
                    Verb::Prepend => "prepend",
                    Verb::Cas(_) => "cas",
                },
                Body::Meta(_) => "ms",
            },
            Request::Delete { .. } => "delete",
            Request::Count { up: true, .. } => "incr",
            Request::Count { up: false, .. } => "decr",
            Request::Touch { .. } => "touch",
            Request::FlushAll { .. } => "flush_all",
            Request::MetaNothing => "mn",
            Request::Meta(meta) => match meta.verb {
                MetaVerb::Get => "mg",
                MetaVerb::Set => "ms",
                MetaVerb::Delete => "md",
                MetaVerb::Count => "ma",
            },
            Request::MetaDebug { .. } => "me",
            Request::Stats { .. } => "stats",
            Request::Version => "version",
            Request::Verbosity => "verbosity",
            Request::Quit | Request::Wrong(_) | Request::LineTooLong => return,
        };
        self.timed_as(name, self.worker.lap(), 1, now, || {
            request.key().into_iter().collect()
        });
    }

    /// Notes what commands of one name that came together have taken; `keys` are those that the slow log shows.
    pub(super) fn timed_as<'k>(
        &self,
        name: &'static str,
        took: Duration,
        times: u64,
        now: u64,
        keys: impl FnOnce() -> Vec<&'k [u8]>,
    ) {
        let Some(number) = NAMES.iter().position(|known| *known == name) else {
            return;
        };
        let protocol = Protocol::Memcached;
        let command = Command { protocol, number };
        if times > 0 && self.worker.took(command, took, times) {
            let mut words = keys();
            words.insert(0, name.as_bytes());
            let slow = &self.shared().slow;
            slow.note(command, took, now, &self.client, words.into_iter());
        }
    }
}
