//! Requests of HTTP that arrive where memcached's or Redis's protocol is spoken.
//!
//! A web page can make a browser send requests to servers that only the browser's machine reaches. Such a request
//! begins with `POST / HTTP/1.1`, and its body holds whatever the page wants. Read as lines of memcached's or Redis's
//! protocol, the headers would be errors, one a line, and the body would be carried out. So the connection ends at the
//! first line that is HTTP's, as with both servers: nothing behind it is read, and the client gets no answer to it.

use crate::clock::now;
use crate::counters::Counter;
use crate::net::clients::Client;
use crate::ops::rate_limit::RateLimit;
use crate::ops::shared::Worker;

/// Whether a request that is no command of ours is one of HTTP: a request line, whose last word names HTTP's version,
/// or what Redis takes for one: `POST`, or the header `Host:`.
pub fn is_http<'w>(words: impl Iterator<Item = &'w [u8]>) -> bool {
    let (mut first, mut last) = (None, None);
    for word in words {
        first.get_or_insert(word);
        last = Some(word);
    }
    let named = |name: &[u8]| first.is_some_and(|word: &[u8]| word.eq_ignore_ascii_case(name));
    named(b"post") || named(b"host:") || last.is_some_and(|word| word.starts_with(b"HTTP/"))
}

/// Counts and logs that this client's connection ends because it has sent an HTTP request.
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

#[cfg(test)]
mod tests {
    use super::is_http;

    fn is(line: &str) -> bool {
        is_http(line.split_ascii_whitespace().map(str::as_bytes))
    }

    /// HTTP's request lines are recognized among others.
    #[test]
    fn lines_of_http_are_known() {
        for line in [
            "POST / HTTP/1.1",
            "GET /a?b HTTP/1.0",
            "OPTIONS * HTTP/2",
            "post",
            "Host: x",
        ] {
            assert!(is(line), "{line}");
        }
        for line in ["", "GET /", "posts", "Host:x", "HTTP /", "x http/1.1"] {
            assert!(!is(line), "{line}");
        }
    }
}
