//! `INFO`: the server's numbers, under Redis's names where Redis has them.

use super::config::{policy, port};
use super::context::Context;
use super::error::Done;
use super::{backup, durable};
use crate::clock::now;
use crate::counters::{self, Counter};
use crate::items::memory::MemoryLimit;
use crate::ops::metrics::resident;
use crate::ops::pool;
use crate::ops::shared::Shared;
use crate::proto::redis::VERSION;
use crate::proto::redis::args::Args;
use std::fmt::{Display, Write};
use std::sync::atomic::Ordering;

/// The sections of `INFO`, in its order.
const SECTIONS: &[&str] = &[
    "server",
    "clients",
    "memory",
    "persistence",
    "stats",
    "replication",
    "cpu",
    "cluster",
    "keyspace",
];

pub fn info(context: &mut Context<'_>, args: Args<'_>) -> Done {
    let wanted = |section: &str| {
        let asked = |name: &[u8]| {
            name.eq_ignore_ascii_case(section.as_bytes())
                || [&b"all"[..], b"default", b"everything"]
                    .iter()
                    .any(|all| name.eq_ignore_ascii_case(all))
        };
        args.len() == 1 || args.from(1).any(asked)
    };
    let mut text = String::new();
    for section in SECTIONS.iter().filter(|section| wanted(section)) {
        if !text.is_empty() {
            text += "\r\n";
        }
        let title = match *section {
            "cpu" => "CPU".to_owned(),
            section => section[..1].to_ascii_uppercase() + &section[1..],
        };
        // Writing into memory does not fail.
        let _ = write!(text, "# {title}\r\n");
        for (name, value) in lines(context, section) {
            let _ = write!(text, "{name}:{value}\r\n");
        }
    }
    context.reply.verbatim(&text);
    Ok(())
}

/// The names and values of a section.
type Lines = Vec<(String, String)>;

fn line(name: &str, value: &dyn Display) -> (String, String) {
    (name.to_owned(), value.to_string())
}

fn lines(context: &Context<'_>, section: &str) -> Lines {
    let shared = context.shared();
    match section {
        "server" => server(shared),
        "clients" => vec![
            line("connected_clients", &shared.net.clients.count()),
            line("maxclients", &shared.net.limits.connections()),
            line("blocked_clients", &0),
        ],
        "memory" => memory(shared.databases.memory()),
        "persistence" => {
            let mut all = vec![line("loading", &0)];
            all.extend(backup::lines(context));
            all.extend(durable::info_fields(context));
            all.extend(pool::lines(shared));
            all
        }
        "stats" => stats(shared),
        "replication" => vec![line("role", &"master"), line("connected_slaves", &0)],
        "cpu" => vec![line("threads", &shared.net.workers())],
        "cluster" => vec![line("cluster_enabled", &0)],
        _ => keyspace(shared),
    }
}

fn server(shared: &Shared) -> Lines {
    let uptime = shared.started.elapsed().as_secs();
    vec![
        line("redis_version", &VERSION),
        line("redis_mode", &"standalone"),
        line("wollemi_version", &env!("CARGO_PKG_VERSION")),
        line("os", &std::env::consts::OS),
        line("arch_bits", &usize::BITS),
        line("process_id", &std::process::id()),
        line("tcp_port", &port(shared)),
        line("server_time_usec", &(now() * 1000)),
        line("uptime_in_seconds", &uptime),
        line("uptime_in_days", &(uptime / 86400)),
        line("io_threads_active", &u8::from(shared.net.workers() > 1)),
    ]
}

fn memory(memory: &MemoryLimit) -> Lines {
    let resident = resident().map(|bytes| line("used_memory_rss", &bytes));
    let all = [
        line("used_memory", &memory.used()),
        line("used_memory_human", &human(memory.used())),
        line("maxmemory", &memory.limit()),
        line("maxmemory_human", &human(memory.limit())),
        line("maxmemory_policy", &policy(memory.evicts())),
    ];
    resident.into_iter().chain(all).collect()
}

fn stats(shared: &Shared) -> Lines {
    let sums = counters::sums(shared.net.counters.iter());
    let sum = |wanted: Counter| sums[wanted as usize].1;
    let rejected = shared.net.rejected.load(Ordering::Relaxed);
    let counted = u8::from(shared.databases.counted());
    vec![
        line("total_connections_received", &sum(Counter::Connections)),
        line("total_commands_processed", &sum(Counter::Commands)),
        line("total_net_input_bytes", &sum(Counter::BytesRead)),
        line("total_net_output_bytes", &sum(Counter::BytesWritten)),
        line("rejected_connections", &rejected),
        line("http_hangups", &sum(Counter::HttpHangups)),
        line("keyspace_hits", &sum(Counter::GetHits)),
        line("keyspace_misses", &sum(Counter::GetMisses)),
        line("evicted_keys", &shared.databases.memory().evicted()),
        line("keyspace_exact", &counted),
    ]
}

/// Returns a line for each database that has items.
fn keyspace(shared: &Shared) -> Lines {
    let stores = shared.databases.all().into_iter();
    let counted = stores.map(|(number, store)| (number, store.items().0));
    let filled = counted.filter(|&(_, items)| items > 0);
    let lines = filled.map(|(number, items)| {
        let value = format!("keys={items},expires=0,avg_ttl=0");
        (format!("db{number}"), value)
    });
    lines.collect()
}

/// Returns a number of bytes as Redis shows it to people.
fn human(bytes: u64) -> String {
    let units = ["K", "M", "G", "T", "P"].iter().zip(1..);
    let fitting = units.take_while(|&(_, times)| bytes >> (10 * times) > 0).last();
    fitting.map_or_else(
        || format!("{bytes}B"),
        |(unit, times)| format!("{:.2}{unit}", bytes as f64 / (1u64 << (10 * times)) as f64),
    )
}
