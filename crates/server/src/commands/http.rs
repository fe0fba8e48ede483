//! Connections that end because an HTTP request arrived (`proto::http` says why they do).

use crate::clock::now;
use crate::counters::Counter;
use crate::net::clients::Client;
use crate::ops::rate_limit::RateLimit;
use crate::ops::shared::Worker;

/// Counts and logs that a client's connection ends because the client sent an HTTP request.
pub fn note_hangup(worker: &Worker, client: &Client) {
    static REFUSED: RateLimit = RateLimit::new();
    worker.add(Counter::HttpHangups, 1);
    if let Some(left_out) = REFUSED.may_log(now() / 1000) {
        let protocol = client.protocol.name;
        tracing::warn!(
            protocol,
            client = client.peer,
            left_out,
            "an HTTP request came, connection closed"
        );
    }
}
