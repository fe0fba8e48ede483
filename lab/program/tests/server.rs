//! `bench server` measures the server beside memcached and Redis, for a moment each, and reports.

mod common;

use common::{Lab, wollemi};
use serde_json::Value;
use std::ffi::OsStr;

/// Runs `bench server`. Returns its messages on standard error, and its records.
fn measure(more: &[&str]) -> (String, Vec<Value>) {
    let program = wollemi();
    let args =
        "bench server --json --keys 300 --seconds 0.02 --rounds 2 --pipelines 1,16 --connections 3 --wollemi";
    let args = args.split(' ').map(OsStr::new).chain([program.as_os_str()]);
    let run = Lab::new().run(args.chain(more.iter().map(OsStr::new)));
    let messages = run.err.clone();
    let out = String::from_utf8(run.ok()).expect("UTF-8");
    let records = out
        .lines()
        .map(|line| serde_json::from_str(line).expect("an object"));
    (messages, records.collect())
}

/// Returns the records of a kind in which these fields have these values.
fn select<'r>(records: &'r [Value], kind: &str, fields: &[(&str, &str)]) -> Vec<&'r Value> {
    let matches = |record: &&Value| {
        record["record"] == kind && fields.iter().all(|(name, value)| record[*name] == *value)
    };
    records.iter().filter(matches).collect()
}

/// Each installed server is measured at each pipeline depth, with gets and sets. Ours is compared with each of the
/// others, with a verdict where a target is set.
#[test]
fn servers_are_measured() {
    let (messages, records) = measure(&[]);
    for (server, protocol) in [
        ("wollemi", "memcached"),
        ("wollemi", "redis"),
        ("memcached", "memcached"),
        ("redis", "redis"),
    ] {
        if messages.contains(&format!("{server}: no such program")) {
            eprintln!("{server} is not installed: skipped");
            continue;
        }
        let of = [("server", server), ("protocol", protocol)];
        let measured = select(&records, "server", &of);
        assert_eq!(measured.len(), 4, "{records:?}");
        for record in measured {
            for figure in ["kops", "p50_us", "p99_us"] {
                assert!(
                    record[figure]["median"]
                        .as_f64()
                        .is_some_and(|figure| figure > 0.0),
                    "{record}"
                );
            }
        }
        if server != "wollemi" {
            let ratios = select(&records, "ratio", &[("peer", server)]);
            assert_eq!(ratios.len(), 4, "{records:?}");
            assert_eq!(ratios.iter().filter(|ratio| ratio["met"].is_boolean()).count(), 2);
        }
        assert_eq!(select(&records, "about", &[("server", server)]).len(), 1);
    }
    let ours = select(&records, "about", &[("server", "wollemi")]);
    assert_eq!(ours[0]["promise"], "crash-safe at level process");
    assert_eq!(select(&records, "conditions", &[]).len(), 1);
}

/// Missing servers are left out, and a message says so.
#[test]
fn servers_that_are_not_there_are_left_out() {
    let (messages, records) = measure(&[
        "--memcached",
        "/nowhere/memcached",
        "--redis",
        "/nowhere/redis-server",
    ]);
    for server in ["memcached", "redis"] {
        assert!(
            messages.contains(&format!("{server}: no such program, left out")),
            "{messages}"
        );
        assert!(select(&records, "server", &[("server", server)]).is_empty());
    }
    assert_eq!(select(&records, "server", &[("server", "wollemi")]).len(), 8);
}
