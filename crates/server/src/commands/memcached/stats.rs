//! `stats`.

use super::dialect::VERSION;
use super::handler::Handler;
use crate::clock::now;
use crate::counters;
use crate::net::listen::Address;
use crate::ops::latency::{Command, Distribution};
use crate::ops::pool;
use std::io::Write;
use std::sync::atomic::Ordering;

impl Handler {
    /// Answers `stats`.
    pub fn stats(&self, what: &[u8], out: &mut Vec<u8>) {
        match what {
            b"" => self.general_stats(out),
            b"settings" => self.settings(out),
            b"items" => self.item_stats(out),
            b"conns" => self.connections(out),
            b"latency" => self.latencies(out),
            b"slowlog" => self.slow_log(out),
            // This server has no slabs, so there are none to show.
            b"slabs" | b"sizes" => {}
            b"reset" => {
                self.shared().reset_counts();
                out.extend_from_slice(b"RESET\r\n");
                return;
            }
            _ => {
                out.extend_from_slice(b"ERROR\r\n");
                return;
            }
        }
        out.extend_from_slice(b"END\r\n");
    }

    fn general_stats(&self, out: &mut Vec<u8>) {
        let shared = self.shared();
        let mut line = |name: &str, value: &dyn std::fmt::Display| stat(out, name, value);
        line("pid", &std::process::id());
        line("uptime", &shared.started.elapsed().as_secs());
        line("time", &(now() / 1000));
        line("version", &VERSION);
        line("wollemi_version", &env!("CARGO_PKG_VERSION"));
        line("pointer_size", &usize::BITS);
        line("threads", &shared.net.workers());
        line("max_connections", &shared.net.limits.connections());
        line("curr_connections", &shared.net.clients.count());
        line(
            "rejected_connections",
            &shared.net.rejected.load(Ordering::Relaxed),
        );
        line("accepting_conns", &1);
        let (items, exact) = shared.databases.first().items();
        line("curr_items", &items);
        line("curr_items_exact", if exact { &"yes" } else { &"no" });
        let memory = shared.databases.memory();
        line("bytes", &memory.used());
        line("limit_maxbytes", &memory.limit());
        line("evictions", &memory.evicted());
        line("store_no_memory", &memory.refused());
        line("swept_items", &shared.swept.load(Ordering::Relaxed));
        for (name, sum) in counters::sums(shared.net.counters.iter()) {
            line(name, &sum);
        }
        for (name, value) in pool::lines(shared) {
            line(&name, &value);
        }
    }

    /// Appends the statistics of items, which are all of class 1.
    fn item_stats(&self, out: &mut Vec<u8>) {
        let (items, _) = self.store().items();
        if items > 0 {
            stat(out, "items:1:number", &items);
            let memory = self.shared().databases.memory();
            stat(out, "items:1:evicted", &memory.evicted());
            stat(out, "items:1:outofmemory", &memory.refused());
        }
    }

    fn connections(&self, out: &mut Vec<u8>) {
        let shared = self.shared();
        let scheme = |unix| if unix { "unix" } else { "tcp" };
        // The listening sockets have the first numbers, the clients those behind.
        let listening = shared.net.listening.get().map_or(&[][..], Vec::as_slice);
        for (number, address) in (1u64..).zip(listening) {
            stat(
                out,
                &format!("{number}:addr"),
                &format_args!("{}:{address}", scheme(matches!(address, Address::Unix(_)))),
            );
            stat(out, &format!("{number}:state"), &"conn_listening");
            let uptime = shared.started.elapsed().as_secs();
            stat(out, &format!("{number}:secs_since_last_cmd"), &uptime);
        }
        for client in shared.net.clients.all() {
            let number = client.id + listening.len() as u64;
            let scheme = scheme(client.unix);
            let mut line = |name: &str, value: &dyn std::fmt::Display| {
                stat(out, &format!("{number}:{name}"), value);
            };
            line("addr", &format_args!("{scheme}:{}", client.peer));
            line("listen_addr", &format_args!("{scheme}:{}", client.local));
            line("state", &client.state().name());
            line("secs_since_last_cmd", &client.idle());
        }
    }

    /// Appends the latencies of each command of either protocol, in microseconds. memcached has no counterpart.
    fn latencies(&self, out: &mut Vec<u8>) {
        for command in Command::all(self.shared().dialects) {
            let Some(taken) = Distribution::of(command, &self.shared().latencies) else {
                continue;
            };
            let of = format!("{}:{}", command.protocol.name, command.name());
            stat(out, &format!("{of}:count"), &taken.count());
            for (name, share) in [("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)] {
                let micros = taken.quantile(share).as_nanos() as f64 / 1e3;
                stat(out, &format!("{of}:{name}"), &format_args!("{micros:.1}"));
            }
        }
    }

    /// Appends the slow log, the newest entry first. memcached has none.
    fn slow_log(&self, out: &mut Vec<u8>) {
        for slow in self.shared().slow.newest(usize::MAX) {
            let mut line = |name: &str, value: &dyn std::fmt::Display| {
                stat(out, &format!("{}:{name}", slow.id), value);
            };
            line("protocol", &slow.protocol.name);
            line("time", &slow.time);
            line("micros", &slow.took.as_micros());
            line("client", &slow.peer);
            let words: Vec<_> = slow
                .words
                .iter()
                .map(|word| word.escape_ascii().to_string())
                .collect();
            line("command", &words.join(" "));
        }
    }

    fn settings(&self, out: &mut Vec<u8>) {
        let config = &self.shared().config;
        let mut line = |name: &str, value: &dyn std::fmt::Display| stat(out, name, value);
        line("maxconns", &self.shared().net.limits.connections());
        for address in &config.memcached {
            line("inter", &address);
        }
        line("num_threads", &self.shared().net.workers());
        line("item_size_max", &self.shared().net.limits.value());
        line(
            "idle_timeout",
            &self.shared().net.limits.idle().map_or(0, |time| time.as_secs()),
        );
        let memory = self.shared().databases.memory();
        line("maxbytes", &memory.limit());
        line(
            "evictions",
            if memory.evicts() && memory.limit() > 0 {
                &"on"
            } else {
                &"off"
            },
        );
        line("cas_enabled", &"yes");
        line("flush_enabled", &"yes");
        line("slowlog_micros", &self.shared().slow.threshold());
        line("slowlog_length", &self.shared().slow.length());
    }
}

fn stat(out: &mut Vec<u8>, name: &str, value: &dyn std::fmt::Display) {
    // Writing into memory does not fail.
    let _ = write!(out, "STAT {name} {value}\r\n");
}
