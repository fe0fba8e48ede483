//! HTTP requests, as a web page makes a browser send them: the connection ends, and nothing after them is executed. The
//! log and the counters record it.

use crate::logged;
use crate::support::{Client, Running, memory, shown, with_redis};
use std::net::{Ipv4Addr, SocketAddr};
use wollemi_server::Config;

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

/// Fails unless the log has exactly one line about this client.
#[track_caller]
fn expect_logged(client: &Client, protocol: &str) {
    let name = client.socket.local_addr().expect("a socket").to_string();
    let lines = logged::lines();
    let logged: Vec<_> = lines
        .iter()
        .filter(|line| line.client == name)
        .map(|line| (line.protocol.as_str(), line.message.as_str()))
        .collect();
    assert_eq!(logged, [(protocol, "an HTTP request came, connection closed")]);
}

/// Fails unless the metrics, `stats` and `INFO` each count this many connections that the server has ended.
#[track_caller]
fn expect_counted(server: &Running, hangups: usize) {
    let mut client = Client::connect(server.metrics.expect("the server serves metrics"));
    client.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let metrics = String::from_utf8(client.rest()).expect("text");
    let line = format!("\nwollemi_http_hangups_total {hangups}\n");
    assert!(metrics.contains(&line), "{hangups}: {metrics}");
    let mut client = server.connect();
    client.send(b"stats\r\n");
    let stats = String::from_utf8(client.until(b"END\r\n")).expect("text");
    let line = format!("STAT http_hangups {hangups}\r\n");
    assert!(stats.contains(&line), "{hangups}: {stats}");
    let mut client = server.connect_redis();
    client.send(b"INFO stats\r\nECHO the-end\r\n");
    let info = String::from_utf8(client.until(b"the-end\r\n")).expect("text");
    let line = format!("http_hangups:{hangups}\r\n");
    assert!(info.contains(&line), "{hangups}: {info}");
}

/// The server answers the requests before an HTTP request. It executes neither the HTTP request nor anything after it,
/// however the bytes are cut into pieces. It counts each HTTP request. The test looks for the first of each protocol in
/// the log, which takes at most ten per second.
#[test]
fn http_requests_end_the_connection() {
    logged::collect();
    let config = Config {
        metrics: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
        ..with_redis()
    };
    let server = Running::over_db(config, &memory());
    let mut hangups = 0;
    let attack = |client: &mut Client, request: &str, behind: &str| {
        // The server may close before it has read the rest.
        client.send(request.as_bytes());
        let _ = std::io::Write::write_all(&mut client.socket, behind.as_bytes());
    };
    for whole in [true, false] {
        let before = hangups;
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
            hangups += 1;
            if hangups == 1 {
                expect_logged(&client, "memcached");
            }
        }
        expect_counted(&server, before + MEMCACHED.len());
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
            hangups += 1;
            if hangups == MEMCACHED.len() + 1 {
                expect_logged(&client, "redis");
            }
        }
        expect_counted(&server, hangups);
    }
    server.connect().ask("get pwned\r\n", "END\r\n");
}

/// Returns everything until the connection ends. Bytes that the server has not read when it closes turn the close into
/// a reset.
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

/// Arguments of known commands, keys and values among them, may look like HTTP's words: the connection continues.
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
