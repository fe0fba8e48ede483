//! Metrics in Prometheus's text format 0.0.4: the server's counts, the durations of commands, and the pool's numbers.
//!
//! Each family of samples has its help, its type, and its samples together, in this order.
//!
//! Not here: the endpoint that serves them (`http`), the counting (`counters`, `latency`).

pub mod http;

use crate::clock::now;
use crate::counters;
use crate::ops::latency::{Command, Distribution};
use crate::ops::metric::Metric;
use crate::ops::shared::Shared;
use crate::ops::{log, pool};
use std::fmt::Write;
use std::sync::atomic::Ordering;

/// The bounds of the exported buckets: powers of two nanoseconds, from 1 µs to 17 s.
const BOUNDS: std::ops::RangeInclusive<u32> = 10..=34;

/// Returns all metrics as text.
pub fn text(shared: &Shared) -> String {
    let mut text = String::new();
    let mut metrics = own(shared);
    metrics.extend(pool::metrics(shared));
    let mut last = "";
    for metric in &metrics {
        if metric.name != last {
            let kind = if metric.name.ends_with("_total") {
                "counter"
            } else {
                "gauge"
            };
            head(&mut text, metric.name, metric.help, kind);
            last = metric.name;
        }
        sample(&mut text, metric.name, &metric.labels, metric.value);
    }
    durations(&mut text, shared);
    if let Some(log) = shared.databases.db().log_stats() {
        log::histograms(&log).iter().for_each(|histogram| {
            head(&mut text, histogram.name, histogram.help, "histogram");
            whole(&mut text, histogram.name, &[], &histogram.buckets, histogram.sum);
        });
    }
    text
}

/// Returns the server's own metrics.
fn own(shared: &Shared) -> Vec<Metric> {
    let version = Metric::new("wollemi_build_info", "The program's version.", 1.0);
    let mut all = vec![version.labelled("version", env!("CARGO_PKG_VERSION"))];
    all.extend(server(shared));
    all.extend(memory(shared));
    all.extend(backups(shared));
    all.extend(resident().map(|bytes| {
        let help = "Memory of the process that is resident, the pool's part included.";
        Metric::new("process_resident_memory_bytes", help, bytes)
    }));
    all.extend(shared.databases.all().into_iter().map(|(number, store)| {
        let help = "Items in a database. After the start they are counted beside the clients.";
        let items = Metric::new("wollemi_items", help, store.items().0 as f64);
        items.labelled("db", number.to_string())
    }));
    let sums = counters::sums(shared.net.counters.iter());
    let counted = counters::METRICS.iter().zip(sums);
    all.extend(counted.map(|((name, help), (_, sum))| Metric::new(name, help, sum as f64)));
    all
}

fn server(shared: &Shared) -> [Metric; 8] {
    let uptime = shared.started.elapsed().as_secs_f64();
    [
        ("wollemi_uptime_seconds", "Since when the server runs.", uptime),
        (
            "process_start_time_seconds",
            "When the server started, in seconds since 1970.",
            now() as f64 / 1e3 - uptime,
        ),
        (
            "wollemi_workers",
            "Threads that serve connections.",
            shared.net.workers() as f64,
        ),
        (
            "wollemi_connections",
            "Connections that are open.",
            shared.net.clients.count() as f64,
        ),
        (
            "wollemi_max_connections",
            "Maximum number of connections.",
            shared.net.limits.connections() as f64,
        ),
        (
            "wollemi_rejected_connections_total",
            "Connections turned away because there were too many.",
            shared.net.rejected.load(Ordering::Relaxed) as f64,
        ),
        (
            "wollemi_swept_items_total",
            "Dead items that the sweep removed, unasked for by any client.",
            shared.swept.load(Ordering::Relaxed) as f64,
        ),
        (
            "wollemi_slow_commands",
            "Commands that the slow log keeps.",
            shared.slow.count() as f64,
        ),
    ]
    .map(|(name, help, value)| Metric::new(name, help, value))
}

fn memory(shared: &Shared) -> [Metric; 4] {
    let memory = shared.databases.memory();
    [
        (
            "wollemi_item_bytes",
            "What the items take, their keys and places in the index included.",
            memory.used(),
        ),
        (
            "wollemi_memory_limit_bytes",
            "The most that the items may take; 0: no limit.",
            memory.limit(),
        ),
        (
            "wollemi_evicted_items_total",
            "Items that had to go for others.",
            memory.evicted(),
        ),
        (
            "wollemi_refused_writes_total",
            "Writes that were refused for want of room.",
            memory.refused(),
        ),
    ]
    .map(|(name, help, value)| Metric::new(name, help, value as f64))
}

fn backups(shared: &Shared) -> [Metric; 8] {
    let look = shared.backups.look();
    let gauges = [
        (
            "wollemi_backup_running",
            "Whether a backup is under way.",
            f64::from(u8::from(look.running.is_some())),
        ),
        (
            "wollemi_backup_items",
            "Entries that the backup under way has written: items, dead ones too, and each database's record.",
            look.entries as f64,
        ),
        (
            "wollemi_backup_bytes",
            "Bytes that the backup under way has written.",
            look.bytes as f64,
        ),
        (
            "wollemi_backup_memory_bytes",
            "What the backup under way takes to keep what is changed meanwhile.",
            look.memory as f64,
        ),
        (
            "wollemi_backups_total",
            "Backups since the start.",
            look.done.made as f64,
        ),
        (
            "wollemi_failed_backups_total",
            "Backups that failed since the start.",
            look.done.failed as f64,
        ),
        (
            "wollemi_last_backup_ok",
            "Whether the last backup succeeded; 0 also if its snapshot or its thread failed.",
            f64::from(u8::from(look.done.well)),
        ),
        (
            "wollemi_last_backup_timestamp_seconds",
            "When the last backup was done, or else the server started, in seconds since 1970.",
            look.done.time as f64,
        ),
    ];
    gauges.map(|(name, help, value)| Metric::new(name, help, value))
}

/// Returns the bytes of resident memory of the process.
pub fn resident() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: f64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024.0)
}

fn durations(text: &mut String, shared: &Shared) {
    const NAME: &str = "wollemi_command_duration_seconds";
    let help = "How long commands took, from their input or the command before them to their answer.";
    let mut begun = false;
    for command in Command::all(shared.dialects) {
        let Some(taken) = Distribution::of(command, &shared.latencies) else {
            continue;
        };
        if !std::mem::replace(&mut begun, true) {
            head(text, NAME, help, "histogram");
        }
        let labels = [
            ("protocol", command.protocol.name.to_owned()),
            ("command", command.name().to_owned()),
        ];
        let within = |bound: u32| ((1u64 << bound) as f64 / 1e9, taken.within(1 << bound));
        let mut buckets: Vec<_> = BOUNDS.map(within).collect();
        buckets.push((f64::INFINITY, taken.count()));
        whole(text, NAME, &labels, &buckets, taken.sum().as_secs_f64());
    }
}

/// Appends the samples of one histogram: its cumulative buckets, the last of which counts all values, and the sum.
fn whole(text: &mut String, name: &str, labels: &[(&'static str, String)], buckets: &[(f64, u64)], sum: f64) {
    for (bound, within) in buckets {
        let bound = match bound.is_infinite() {
            true => "+Inf".to_owned(),
            false => bound.to_string(),
        };
        let labels = [labels, &[("le", bound)]].concat();
        sample(text, &format!("{name}_bucket"), &labels, *within as f64);
    }
    let count = buckets.last().map_or(0, |&(_, all)| all);
    sample(text, &format!("{name}_sum"), labels, sum);
    sample(text, &format!("{name}_count"), labels, count as f64);
}

fn head(text: &mut String, name: &str, help: &str, kind: &str) {
    // Writing into memory does not fail, here and below.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn sample(text: &mut String, name: &str, labels: &[(&'static str, String)], value: f64) {
    text.push_str(name);
    for (i, (label, value)) in labels.iter().enumerate() {
        let value = value
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        let _ = write!(text, "{}{label}=\"{value}\"", if i == 0 { '{' } else { ',' });
    }
    let close = if labels.is_empty() { "" } else { "}" };
    let _ = writeln!(text, "{close} {value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A label may hold any text.
    #[test]
    fn labels_are_quoted() {
        let mut text = String::new();
        let label = "a \"quoted\\\n\" word".to_owned();
        sample(&mut text, "wollemi_more", &[("of", label)], 0.25);
        assert_eq!(text, "wollemi_more{of=\"a \\\"quoted\\\\\\n\\\" word\"} 0.25\n");
    }
}
