//! Requests of HTTP that arrive where memcached's or Redis's protocol is spoken.
//!
//! A web page can make a browser send requests to servers that only the browser's machine reaches. Such a request
//! begins with `POST / HTTP/1.1`, and the page chooses its body. Read as memcached's or Redis's protocol, each header
//! line would be an error, and the body would be carried out. So the connection ends at the first HTTP line, as with
//! both servers: the server reads nothing behind it, and does not answer it.

/// Returns whether a line that is no known command is HTTP: a request line, whose last word names HTTP's version, or
/// what Redis takes for HTTP: `POST`, or the header `Host:`.
pub fn is_http<'w>(words: impl Iterator<Item = &'w [u8]>) -> bool {
    let (mut first, mut last) = (None, None);
    for word in words {
        first.get_or_insert(word);
        last = Some(word);
    }
    let named = |name: &[u8]| first.is_some_and(|word: &[u8]| word.eq_ignore_ascii_case(name));
    named(b"post") || named(b"host:") || last.is_some_and(|word| word.starts_with(b"HTTP/"))
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
