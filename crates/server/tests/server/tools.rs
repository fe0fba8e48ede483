//! The clients that come with libmemcached and Redis, which `test.sh` installs.

use crate::support::Running;
use std::io::Write;
use std::process::{Command, Stdio};

/// Runs a program, expects success, and returns its output.
fn printed(program: &str, args: &[&str], input: &str) -> String {
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}, which test.sh installs: {error}"));
    let mut stdin = child.stdin.take().expect("the input is piped");
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input.as_bytes()).expect("the program reads"));
        child.wait_with_output().expect("the program ends")
    });
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{program} {args:?}: {}\n{text}{errors}",
        output.status
    );
    text
}

/// Everything that libmemcached tests in the text protocol.
#[test]
fn memccapable_passes() {
    let server = Running::over_pool();
    let port = server.address.port().to_string();
    let text = printed(
        "memccapable",
        &["-a", "-t", "120", "-h", "127.0.0.1", "-p", &port],
        "",
    );
    assert!(text.contains("All tests passed"), "{text}");
    assert_eq!(text.matches("[pass]").count(), 27, "{text}");
    assert_eq!(server.stop().failures, 0);
}

/// The output of `redis-cli`, connected to this server.
struct Cli {
    port: String,
}

impl Cli {
    fn to(server: &Running) -> Cli {
        let address = server.redis.expect("the server serves Redis clients");
        Cli {
            port: address.port().to_string(),
        }
    }

    fn output(&self, args: &[&str], input: &str) -> String {
        let args = [&["-h", "127.0.0.1", "-p", &self.port], args].concat();
        printed("redis-cli", &args, input)
    }

    #[track_caller]
    fn ask(&self, args: &[&str], answer: &str) {
        assert_eq!(self.output(args, ""), answer, "{args:?}");
    }
}

/// Commands as arguments and as lines, in both protocols, by themselves and in a transaction.
#[test]
fn redis_cli_reads_and_writes() {
    let server = Running::over_pool();
    let cli = Cli::to(&server);
    cli.ask(&["set", "key", "a b"], "OK\n");
    cli.ask(&["get", "key"], "a b\n");
    cli.ask(&["--no-raw", "get", "key"], "\"a b\"\n");
    cli.ask(
        &["-3", "--no-raw", "mget", "key", "nothing"],
        "1) \"a b\"\n2) (nil)\n",
    );
    cli.ask(&["--json", "mget", "key", "nothing"], "[\"a b\",null]\n");
    cli.ask(&["-n", "3", "get", "key"], "\n");
    cli.ask(&["-r", "3", "incr", "count"], "1\n2\n3\n");
    let lines = "MULTI\nINCR count\nSET key other\nGET key\nEXEC\nMULTI\nDISCARD\nNONESUCH\nget key\n";
    for protocol in ["-2", "-3"] {
        let before = cli.output(&["get", "count"], "");
        let count: i64 = before.trim().parse().expect("a number");
        let output = cli.output(&[protocol], lines);
        let exec = format!("OK\nQUEUED\nQUEUED\nQUEUED\n{}\nOK\nother\nOK\nOK\n", count + 1);
        let unknown = "ERR unknown command 'NONESUCH', with args beginning with: \n";
        assert_eq!(output, format!("{exec}{unknown}\nother\n"));
    }
    assert_eq!(server.stop().failures, 0);
}

/// Many commands by `--pipe`, and their keys by `--scan`.
#[test]
fn redis_cli_inserts_and_scans() {
    let server = Running::over_pool();
    let cli = Cli::to(&server);
    let set = |i: usize| {
        let key = format!("key-{i:05}");
        format!("*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n$1\r\nx\r\n", key.len())
    };
    let output = cli.output(&["--pipe"], &(0..20_000).map(set).collect::<String>());
    assert!(output.ends_with("errors: 0, replies: 20000\n"), "{output}");
    cli.ask(&["dbsize"], "20000\n");
    let all = cli.output(&["--scan"], "");
    assert!(all.lines().eq((0..20_000).map(|i| format!("key-{i:05}"))));
    let some = cli.output(&["--scan", "--pattern", "key-1234*"], "");
    assert!(some.lines().eq((0..10).map(|i| format!("key-1234{i}"))), "{some}");
    assert_eq!(server.stop().failures, 0);
}

/// Load from `redis-benchmark` runs without an error, and all of its keys are present.
#[test]
fn redis_benchmark_is_served() {
    let server = Running::over_pool();
    let cli = Cli::to(&server);
    let load = [
        "-t",
        "set,get,incr,mset",
        "-n",
        "20000",
        "-c",
        "20",
        "-P",
        "16",
        "-r",
        "1000",
    ];
    let args = [&["-h", "127.0.0.1", "-p", &cli.port, "--csv"], &load[..]].concat();
    let output = printed("redis-benchmark", &args, "");
    let names: Vec<_> = output
        .lines()
        .skip(1)
        .filter_map(|line| line.split('"').nth(1))
        .collect();
    assert_eq!(names, ["SET", "GET", "INCR", "MSET (10 keys)"], "{output}");
    assert!(!output.to_lowercase().contains("err"), "{output}");
    // Each key is `key:` or `counter:` and one of 1000 numbers.
    let keys: u64 = cli.output(&["dbsize"], "").trim().parse().expect("a number");
    assert!((2..=2000).contains(&keys), "{keys}");
    let counters = cli.output(&["--scan", "--pattern", "counter:*"], "");
    let words: Vec<_> = ["mget"].into_iter().chain(counters.lines()).collect();
    let sum: u64 = cli
        .output(&words, "")
        .lines()
        .map(|line| line.parse::<u64>().expect("a number"))
        .sum();
    assert!(sum >= 20_000, "{sum}");
    assert_eq!(server.stop().failures, 0);
}
