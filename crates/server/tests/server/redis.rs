//! Redis's protocol, from outside.

use crate::support::{Client, PATIENCE, Running, config, memory, shown, with_redis};
use index::model::ModelIndex;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use wollemi_server::{Address, Config, Server};

/// Both protocols see the same items: data, times, and each other's changes.
#[test]
fn both_protocols_see_the_same_items() {
    let server = Running::with_redis();
    let mut redis = server.connect_redis();
    let mut memcached = server.connect();
    redis.ask("set k 41 ex 10000\r\n", "+OK\r\n");
    memcached.send(b"mg k v f t\r\n");
    let head = memcached.line();
    let seconds = head
        .strip_prefix("VA 2 f0 t")
        .and_then(|seconds| seconds.parse().ok());
    assert!(
        seconds.is_some_and(|seconds: u64| (9000..=10_000).contains(&seconds)),
        "{head}"
    );
    memcached.expect(b"41\r\n");
    memcached.ask("incr k 1\r\nset m 7 0 1\r\nx\r\n", "42\r\nSTORED\r\n");
    redis.ask("incr k\r\nget m\r\ndbsize\r\n", ":43\r\n$1\r\nx\r\n:2\r\n");
    redis.ask("watch m\r\nmulti\r\nset m y\r\n", "+OK\r\n+OK\r\n+QUEUED\r\n");
    memcached.ask("set m 7 0 1\r\nz\r\n", "STORED\r\n");
    redis.ask("exec\r\nget m\r\n", "*-1\r\n$1\r\nz\r\n");
    redis.ask("flushdb\r\ndbsize\r\n", "+OK\r\n:0\r\n");
    memcached.ask("get m k\r\n", "END\r\n");
}

/// The empty key, under which the server keeps its own record, is absent for every client.
#[test]
fn the_empty_key_is_not_shown() {
    let server = Running::with_redis();
    let mut client = server.connect_redis();
    client.ask(
        "get \"\"\r\nmget \"\" a\r\nexists \"\"\r\n",
        "$-1\r\n*2\r\n$-1\r\n$-1\r\n:0\r\n",
    );
    client.ask(
        "set \"\" x\r\n",
        "-ERR the empty key is reserved for the server\r\n",
    );
    client.ask(
        "del a \"\"\r\n",
        "-ERR the empty key is reserved for the server\r\n",
    );
    client.ask(
        "keys *\r\nrandomkey\r\nscan 0\r\n",
        "*0\r\n$-1\r\n*2\r\n$1\r\n0\r\n*0\r\n",
    );
    client.ask("krange - +\r\nkprefix \"\"\r\n", "*0\r\n*0\r\n");
}

/// Reading the empty key leaves the record in place: the next server recognizes the map as its own.
#[test]
fn reads_of_the_empty_key_change_nothing() {
    let index = ModelIndex::new();
    let server = Running::over(with_redis(), Arc::new(index.clone()));
    let mut client = server.connect_redis();
    client.ask(
        "set a 1\r\nget \"\"\r\nmget \"\" a\r\n",
        "+OK\r\n$-1\r\n*2\r\n$-1\r\n$1\r\n1\r\n",
    );
    client.ask("*2\r\n$3\r\nGET\r\n$0\r\n\r\ndbsize\r\n", "$-1\r\n:1\r\n");
    server.stop();
    let server = Running::over(with_redis(), Arc::new(index));
    server.connect_redis().ask("get a\r\n", "$1\r\n1\r\n");
}

/// A key that is too long to exist is absent, and spoils no answer beside it.
#[test]
fn keys_that_are_too_long_are_absent() {
    let server = Running::with_redis();
    let mut client = server.connect_redis();
    let long = format!("$65536\r\n{}\r\n", "k".repeat(65_536));
    let get = |key: &str| format!("*2\r\n$3\r\nGET\r\n{key}");
    let a = "$1\r\na\r\n";
    client.ask("set a 1\r\n", "+OK\r\n");
    client.ask(
        &[get(a), get(&long), get(a)].concat(),
        "$1\r\n1\r\n$-1\r\n$1\r\n1\r\n",
    );
    client.ask(
        &format!("*4\r\n$4\r\nMGET\r\n{a}{long}{a}*2\r\n$6\r\nEXISTS\r\n{long}"),
        "*3\r\n$1\r\n1\r\n$-1\r\n$1\r\n1\r\n:0\r\n",
    );
}

/// A reply that would be too long is refused, and `GET`s of large values are answered in full.
#[test]
fn replies_are_bounded() {
    let server = Running::with_redis();
    let mut client = server.connect_redis();
    let value = "v".repeat(1 << 20);
    client.ask(
        &format!("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1048576\r\n{value}\r\n"),
        "+OK\r\n",
    );
    client.ask(
        &format!("mget{}\r\n", " a".repeat(64)),
        "-ERR the reply would be longer than 64 MiB: ask for less at a time\r\n",
    );
    client.ask(
        &"*2\r\n$3\r\nGET\r\n$1\r\na\r\n".repeat(10),
        &format!("$1048576\r\n{value}\r\n").repeat(10),
    );
}

/// Ranges of keys, with all bounds, directions and limits.
#[test]
fn ranges_are_in_order() {
    let server = Running::with_redis();
    let mut client = server.connect_redis();
    client.ask("mset a 1 b 2 ba 3 c 4\r\n", "+OK\r\n");
    let mut range = |command: &str, keys: &[&str]| {
        let bulk = |key: &&str| format!("${}\r\n{key}\r\n", key.len());
        let answer: String = keys.iter().map(bulk).collect();
        client.ask(&format!("{command}\r\n"), &format!("*{}\r\n{answer}", keys.len()));
    };
    range("krange - +", &["a", "b", "ba", "c"]);
    range("krange [b (c", &["b", "ba"]);
    range("krange (b [c", &["ba", "c"]);
    range("krange + -", &[]);
    range("krange [c [a", &[]);
    range("krange [c [b rev", &["c", "ba", "b"]);
    range("krange + - rev limit 2", &["c", "ba"]);
    range("krange - + limit 0", &[]);
    range("krange - + limit -1", &["a", "b", "ba", "c"]);
    range("krange - [b withvalues", &["a", "1", "b", "2"]);
    range("kprefix b", &["b", "ba"]);
    range("kprefix b rev limit 1 withvalues", &["ba", "3"]);
    range("kprefix x", &[]);
    client.ask(
        "krange a b\r\n",
        "-ERR min or max not valid string range item\r\n",
    );
    client.ask("kprefix b limit\r\n", "-ERR syntax error\r\n");
    client.send(b"hello 3\r\n");
    client.until(b"modules\r\n*0\r\n");
    client.ask(
        "kprefix b limit 1 withvalues\r\n",
        "*1\r\n*2\r\n$1\r\nb\r\n$1\r\n2\r\n",
    );
}

/// Between the commands of a transaction no other client sees or changes anything, while several write the same two
/// keys.
#[test]
fn transactions_are_alone() {
    let server = Running::with_redis();
    server.connect_redis().ask("mset a 0 b 0\r\n", "+OK\r\n");
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut client = server.connect_redis();
                for _ in 0..200 {
                    client.ask(
                        "multi\r\nincr a\r\nincr b\r\nexec\r\n",
                        "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n",
                    );
                    assert_eq!(
                        client.line(),
                        client.line(),
                        "another client's change came between"
                    );
                    client.send(b"mget a b\r\n");
                    assert_eq!(client.line(), "*2");
                    let (a, b) = ((client.line(), client.line()), (client.line(), client.line()));
                    assert_eq!(a, b, "half of a transaction was seen");
                }
            });
        }
    });
    server
        .connect_redis()
        .ask("mget a b\r\n", "*2\r\n$3\r\n600\r\n$3\r\n600\r\n");
}

/// Connections are listed, named, and ended by one another; the error at the limit has Redis's words.
#[test]
fn connections_can_be_ended() {
    let few = Config {
        max_connections: 2,
        ..with_redis()
    };
    let server = Running::over(few, Arc::new(ModelIndex::new()));
    let (mut first, mut second) = (server.connect_redis(), server.connect_redis());
    first.ask("client setname one\r\n", "+OK\r\n");
    second.ask("client getname\r\n", "$-1\r\n");
    let mut third = server.connect_redis();
    assert_eq!(
        shown(&third.rest()),
        shown(b"-ERR max number of clients reached\r\n")
    );
    first.send(b"client id\r\n");
    let id = first.line();
    second.ask(&format!("client kill id {}\r\n", &id[1..]), ":1\r\n");
    first.expect_end();
    second.ask("client kill 1.2.3.4:5\r\n", "-ERR No such client\r\n");
    second.ask("quit\r\nping\r\n", "+OK\r\n");
    second.expect_end();
}

/// Commands of newer clients that the server lacks get answers with which the clients continue.
#[test]
fn hints_are_taken() {
    let server = Running::with_redis();
    let mut client = server.connect_redis();
    for hint in [
        "maint_notifications on",
        "maint_notifications on moving-endpoint-type internal-ip",
        "maint_notifications off",
        "no-evict on",
        "no-touch off",
    ] {
        client.ask(&format!("client {hint}\r\n"), "+OK\r\n");
    }
    client.ask("client no-touch maybe\r\n", "-ERR syntax error\r\n");
}

/// A pipeline of reads and writes is answered in order.
#[test]
fn pipelines_are_answered_in_order() {
    let server = Running::with_redis();
    let mut client = server.connect_redis();
    let (mut requests, mut answers) = (String::new(), String::new());
    for i in 0..5000 {
        requests += &format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\n{i:04}\r\n");
        answers += "+OK\r\n";
        for _ in 0..i % 3 {
            requests += "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
            answers += &format!("$4\r\n{i:04}\r\n");
        }
    }
    let mut sender = client.socket.try_clone().expect("a socket");
    let sending = std::thread::spawn(move || sender.write_all(requests.as_bytes()));
    client.expect(answers.as_bytes());
    sending.join().expect("no panic").expect("all sent");
}

/// A client's `laddr` is the address that it has reached, not the one on which the server listens for any.
#[test]
fn clients_are_shown_with_the_address_that_they_reached() {
    let everywhere = Config {
        redis: vec![SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)).into()],
        allow_remote: true,
        ..config()
    };
    let server = Running::over(everywhere, Arc::new(ModelIndex::new()));
    let port = server.redis.expect("the server serves Redis clients").port();
    let mut client = Client::connect((Ipv4Addr::LOCALHOST, port).into());
    client.send(b"client info\r\n");
    client.line();
    let line = client.line();
    assert!(line.contains(&format!(" laddr=127.0.0.1:{port} ")), "{line}");
    client.ask(
        &format!("client kill laddr 127.0.0.1:{port} skipme no\r\n"),
        ":1\r\n",
    );
}

/// A client of a unix socket is shown as one, also if the socket's path is relative.
#[test]
fn clients_of_relative_sockets_are_shown() {
    let directory = tempfile::tempdir().expect("a folder");
    let here = std::env::current_dir().expect("a folder");
    let root: std::path::PathBuf = here.components().skip(1).map(|_| "..").collect();
    let absolute = directory.path().join("socket");
    let path = root.join(absolute.strip_prefix("/").expect("an absolute path"));
    let unix = Config {
        redis: vec![Address::Unix(path.clone())],
        ..config()
    };
    let server = Running::of(Server::bind(unix, &memory()).expect("the server starts"));
    let mut client = UnixStream::connect(&path).expect("it listens");
    client.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    client
        .write_all(b"client info\r\nquit\r\n")
        .expect("the server reads");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("the server answers");
    let laddr = format!(" laddr={}:0 ", path.display());
    assert!(
        answer.contains(&laddr) && answer.contains(" flags=U "),
        "{answer}"
    );
    let _open = UnixStream::connect(&path).expect("it listens");
    let mut stats = server.connect();
    stats.send(b"stats conns\r\n");
    let text = String::from_utf8(stats.until(b"END\r\n")).expect("text");
    assert!(
        text.contains(&format!(":addr unix:{}\r\n", path.display())),
        "{text}"
    );
    server.stop();
}

/// `CLIENT LIST ID` lists the clients in the order of its arguments, each as often as it is named.
#[test]
fn clients_are_listed_as_asked_for() {
    let server = Running::with_redis();
    let mut clients = [(); 2].map(|()| server.connect_redis());
    let ids = clients.each_mut().map(|client| {
        client.send(b"client id\r\n");
        client.line().split_off(1)
    });
    let [first, second] = &ids;
    clients[0].send(format!("client list id {second} {first} 999 {first}\r\n").as_bytes());
    let text = String::from_utf8(clients[0].until(b"\n\r\n")).expect("text");
    let listed = text
        .lines()
        .filter_map(|line| line.strip_prefix("id=")?.split(' ').next());
    assert_eq!(listed.collect::<Vec<_>>(), [second, first, first]);
    let many = 500_000;
    let request = format!("*{}\r\n$6\r\nclient\r\n$4\r\nlist\r\n$2\r\nid\r\n", many + 3);
    let id = format!("${}\r\n{first}\r\n", first.len());
    clients[0].send((request + &id.repeat(many)).as_bytes());
    clients[0].expect(b"-ERR the reply would be longer than 64 MiB: ask for less at a time\r\n");
}

/// The port shown is the one that the server listens on, also where the system chose it.
#[test]
fn the_port_is_shown() {
    let server = Running::with_redis();
    let port = server
        .redis
        .expect("the server serves Redis clients")
        .port()
        .to_string();
    let mut client = server.connect_redis();
    client.ask(
        "config get port\r\n",
        &format!("*2\r\n$4\r\nport\r\n${}\r\n{port}\r\n", port.len()),
    );
    client.send(b"info server\r\necho the-end\r\n");
    let info = String::from_utf8(client.until(b"the-end\r\n")).expect("text");
    assert!(info.contains(&format!("\r\ntcp_port:{port}\r\n")), "{info}");
}

/// `RESET` keeps the names of the client's library, and no other.
#[test]
fn a_reset_keeps_the_library() {
    let server = Running::with_redis();
    let mut client = server.connect_redis();
    client.ask(
        "client setname me\r\nclient setinfo lib-name some\r\nclient setinfo lib-ver 1\r\nreset\r\n",
        "+OK\r\n+OK\r\n+OK\r\n+RESET\r\n",
    );
    client.send(b"client info\r\n");
    client.line();
    let line = client.line();
    assert!(
        line.contains(" name= ") && line.contains(" lib-name=some lib-ver=1"),
        "{line}"
    );
}
