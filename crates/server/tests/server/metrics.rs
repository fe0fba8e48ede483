//! The metrics for Prometheus.

use crate::python::python;
use crate::support::{Client, PATIENCE, Running, memory, with_redis};
use index::model::ModelIndex;
use index::{Action, Edit, Index};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wollemi_server::{Config, Error, Protocol, Server, Shutdown};

fn with_metrics() -> Config {
    Config {
        metrics: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
        ..with_redis()
    }
}

/// A started server: its addresses for memcached, Redis, and metrics, and a way to stop it.
type Started = ([SocketAddr; 3], Shutdown, std::thread::JoinHandle<()>);

fn start() -> Started {
    start_with(with_metrics())
}

fn start_with(config: Config) -> Started {
    let server = Server::bind(config, &memory()).expect("the server starts");
    let of = |protocol| match server.addresses(protocol)[..] {
        [wollemi_server::Address::Tcp(address)] => address,
        ref other => panic!("{other:?}"),
    };
    let metrics = server.metrics_address().expect("the server serves metrics");
    let addresses = [of(Protocol::Memcached), of(Protocol::Redis), metrics];
    let shutdown = Shutdown::new();
    let stop = shutdown.clone();
    let thread = std::thread::spawn(move || {
        server.run(&stop).expect("the server runs");
    });
    (addresses, shutdown, thread)
}

/// Returns the answer to a request: its head and its body.
fn ask(address: SocketAddr, request: &str) -> (String, String) {
    let mut client = Client::connect(address);
    client.send(request.as_bytes());
    let answer = String::from_utf8(client.rest()).expect("UTF-8");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    (head.to_owned(), body.to_owned())
}

/// Prometheus's own parser reads the metrics, and they show the operations.
#[test]
fn prometheus_reads_the_metrics() {
    let ([memcached, redis, metrics], shutdown, thread) = start();
    let mut client = Client::connect(memcached);
    client.ask("get a b\r\n", "END\r\n");
    let mut other = Client::connect(redis);
    other.ask("set a 1\r\nget a\r\n", "+OK\r\n$1\r\n1\r\n");
    let (head, body) = ask(metrics, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"),
        "{head}"
    );
    assert!(
        head.contains(&format!("Content-Length: {}\r\n", body.len())),
        "{head}"
    );
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/clients/metrics.py");
    let mut parser = Command::new(python())
        .arg(script)
        .args([
            "wollemi_gets_total=3",
            "wollemi_get_hits_total=1",
            "wollemi_get_misses_total=2",
            "wollemi_connections=2",
            "wollemi_items=1",
            "wollemi_pool_generation=1",
        ])
        .stdin(Stdio::piped())
        .spawn()
        .expect("the parser starts");
    let mut input = parser.stdin.take().expect("piped");
    input.write_all(body.as_bytes()).expect("the parser reads");
    drop(input);
    assert!(parser.wait().expect("the parser ends").success(), "{body}");
    shutdown.stop();
    thread.join().expect("no panic");
}

/// The samples of one name are together, behind their only help and type, also where several maps have them.
#[test]
fn each_name_has_its_samples_together() {
    let merging = Config {
        index: Some("dptree".parse().expect("an index")),
        ..with_metrics()
    };
    let ([_, redis, metrics], shutdown, thread) = start_with(merging);
    // The second database makes a second map.
    Client::connect(redis).ask("set a 1\r\nselect 1\r\nset a 1\r\n", &"+OK\r\n".repeat(3));
    let (_, body) = ask(metrics, "GET /metrics HTTP/1.1\r\n\r\n");
    let mut begun: Vec<&str> = Vec::new();
    for line in body.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let name = help.split(' ').next().expect("a name");
            assert!(!begun.contains(&name), "{name} begins twice:\n{body}");
            begun.push(name);
        }
        let family = begun.last().expect("a family's help comes first");
        let told = line.trim_start_matches("# HELP ").trim_start_matches("# TYPE ");
        assert!(told.starts_with(family), "{line} among {family}");
    }
    assert_eq!(body.matches("\nwollemi_merges_total{").count(), 2, "{body}");
    shutdown.stop();
    thread.join().expect("no panic");
}

/// Other requests are answered as HTTP prescribes, and no client can prevent the next request.
#[test]
fn other_requests_are_refused() {
    let ([_, _, metrics], shutdown, thread) = start();
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
        ("GET /metrics\r\n\r\n", "400"),
        ("\r\n\r\n", "400"),
        ("GET /metrics?x=1 HTTP/1.0\r\nA: b\r\n\r\n", "200"),
    ] {
        let (head, _) = ask(metrics, request);
        assert_eq!(head.split(' ').nth(1), Some(status), "{request}");
    }
    let (head, body) = ask(metrics, "HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200") && body.is_empty());
    let (head, _) = ask(metrics, &"x".repeat(8 << 10));
    assert!(head.starts_with("HTTP/1.1 431"), "{head}");
    let mut silent = Client::connect(metrics);
    drop(Client::connect(metrics));
    silent.send(b"GET /metrics");
    assert!(ask(metrics, "GET /metrics HTTP/1.1\r\n\r\n").0.contains("200 OK"));
    shutdown.stop();
    thread.join().expect("no panic");
}

/// Metrics are only for this machine, unless remote access is allowed explicitly: they have no passwords.
#[test]
fn metrics_stay_on_this_machine() {
    let remote = Config {
        metrics: Some(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))),
        ..with_redis()
    };
    let bind = |config| Server::bind(config, &memory());
    assert!(matches!(bind(remote.clone()), Err(Error::MetricsNotLoopback(_))));
    bind(Config {
        allow_remote: true,
        ..remote
    })
    .expect("remote access is allowed");
}

/// An index in which the second write of the key `k` waits until the test lets it go on, as a removal may wait for room
/// in the log.
struct Stalling {
    index: ModelIndex,
    writes: AtomicUsize,
    waits: Sender<()>,
    let_on: Mutex<Receiver<()>>,
}

impl Index for Stalling {
    index::delegate!(index: get, scan, check);

    fn write(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, index::Error> {
        if key == b"k" && self.writes.fetch_add(1, Ordering::SeqCst) == 1 {
            // If the test has failed, its end of both channels is closed.
            let _ = self.waits.send(());
            let _ = self.let_on.lock().map(|let_on| let_on.recv_timeout(PATIENCE));
        }
        self.index.write(key, edit)
    }
}

/// Metrics are served while the sweep waits.
#[test]
fn a_sweep_that_waits_delays_no_metrics() {
    let ((waits, waiting), (go_on, let_on)) = (channel(), channel());
    let stalling = Stalling {
        index: ModelIndex::new(),
        writes: AtomicUsize::new(0),
        waits,
        let_on: Mutex::new(let_on),
    };
    let config = Config {
        sweep_pause: Some(Duration::from_millis(1)),
        ..with_metrics()
    };
    let server = Running::over(config, Arc::new(stalling));
    server.connect_redis().ask("set k v px 1\r\n", "+OK\r\n");
    waiting
        .recv_timeout(PATIENCE)
        .expect("the sweep removes the item");
    let metrics = server.metrics.expect("the server serves metrics");
    let mut client = Client::connect(metrics);
    client
        .socket
        .set_read_timeout(Some(PATIENCE / 2))
        .expect("a timeout");
    client.send(b"GET /metrics HTTP/1.1\r\n\r\n");
    assert_eq!(client.line(), "HTTP/1.1 200 OK");
    go_on.send(()).expect("the sweep waits");
    assert_eq!(server.stop().swept, 1);
}
