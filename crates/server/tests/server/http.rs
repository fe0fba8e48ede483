//! HTTP requests, as a web page makes a browser send them: the connection ends, and nothing behind them is carried out.

use crate::support::{Client, Running, shown};

const MEMCACHED: &[&str] = &[
    "POST / HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET / HTTP/1.1\r\n",
    "OPTIONS /a HTTP/1.0\r\nOrigin: y\r\n\r\n",
    "PUT http://x/ HTTP/1.1\n",
    "POST\r\n",
    "Host: x\r\n",
];

const REDIS: &[&str] = &[
    "POST / HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET / HTTP/1.1\r\n",
    "HEAD /a HTTP/1.0\r\n",
    "post x\r\n",
    "host: x\r\n",
    "*3\r\n$4\r\nPOST\r\n$1\r\n/\r\n$8\r\nHTTP/1.1\r\n",
    "*2\r\n$5\r\nHost:\r\n$1\r\nx\r\n",
    "*3\r\n$3\r\nGET\r\n$1\r\n/\r\n$8\r\nHTTP/1.1\r\n",
    "MULTI\r\nSET pwned 1\r\nHost: x\r\n",
];

/// The requests before it are answered; it is not, and what follows it is not carried out, however it is cut into
/// pieces.
#[test]
fn http_requests_end_the_connection() {
    let server = Running::with_redis();
    let attack = |client: &mut Client, request: &str, behind: &str| {
        // The server may close before it has read what is behind.
        client.send(request.as_bytes());
        let _ = std::io::Write::write_all(&mut client.socket, behind.as_bytes());
    };
    for whole in [true, false] {
        for request in MEMCACHED {
            let behind = "set pwned 0 0 2\r\nhi\r\n";
            let mut client = server.connect();
            match whole {
                true => client.send(format!("version\r\n{request}{behind}").as_bytes()),
                false => attack(&mut client, &format!("version\r\n{request}"), behind),
            }
            client.expect(b"VERSION ");
            client.line();
            assert_eq!(rest(&mut client), "", "{request:?}");
        }
        for request in REDIS {
            let behind = "*3\r\n$3\r\nSET\r\n$5\r\npwned\r\n$2\r\nhi\r\nEXEC\r\n";
            let mut client = server.connect_redis();
            match whole {
                true => client.send(format!("PING\r\n{request}{behind}").as_bytes()),
                false => attack(&mut client, &format!("PING\r\n{request}"), behind),
            }
            client.expect(b"+PONG\r\n");
            let expected = if request.starts_with("MULTI") {
                "+OK\\r\\n+QUEUED\\r\\n"
            } else {
                ""
            };
            assert_eq!(rest(&mut client), expected, "{request:?}");
        }
    }
    let mut client = server.connect();
    client.ask("get pwned\r\n", "END\r\n");
    let hangups = 2 * (MEMCACHED.len() + REDIS.len());
    client.send(b"stats\r\n");
    let stats = String::from_utf8(client.until(b"END\r\n")).expect("text");
    let line = format!("STAT http_hangups {hangups}\r\n");
    assert!(stats.contains(&line), "{stats}");
    let mut client = server.connect_redis();
    client.send(b"INFO stats\r\nECHO the-end\r\n");
    let info = String::from_utf8(client.until(b"the-end\r\n")).expect("text");
    assert!(info.contains(&format!("http_hangups:{hangups}\r\n")), "{info}");
}

/// All that comes until the connection ends. Bytes that the server has not read when it closes turn the close into a
/// reset.
fn rest(client: &mut Client) -> String {
    let mut bytes = Vec::new();
    let ended = std::io::Read::read_to_end(&mut client.socket, &mut bytes);
    let kind = ended.err().map(|error| error.kind());
    assert!(
        matches!(kind, None | Some(std::io::ErrorKind::ConnectionReset)),
        "{kind:?}"
    );
    shown(&bytes)
}

/// Keys, values and commands that look like HTTP's words are as good as others.
#[test]
fn words_of_http_may_be_data() {
    let server = Running::with_redis();
    let mut client = server.connect();
    client.ask("set HTTP/1.1 0 0 17\r\nPOST / HTTP/1.1\r\n\r\n", "STORED\r\n");
    client.ask(
        "get HTTP/1.1\r\n",
        "VALUE HTTP/1.1 0 17\r\nPOST / HTTP/1.1\r\n\r\nEND\r\n",
    );
    client.ask(
        "incr a HTTP/1.1\r\n",
        "CLIENT_ERROR invalid numeric delta argument\r\n",
    );
    let mut client = server.connect_redis();
    client.ask("SET post HTTP/1.1\r\n", "+OK\r\n");
    client.ask(
        "MGET post HTTP/1.1\r\n",
        "*2\r\n$8\r\nHTTP/1.1\r\n$17\r\nPOST / HTTP/1.1\r\n\r\n",
    );
}
