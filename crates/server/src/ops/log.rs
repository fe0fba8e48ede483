//! Statistics and metrics of the log and the checkpoints of a pool of level `disk`.

use crate::ops::metric::Metric;
use wollemi::{LogStats, Rebuilt};

/// A histogram since the start.
pub struct Histogram {
    pub name: &'static str,
    pub help: &'static str,
    /// Upper bounds, and how many samples were at most that. The last bound is infinite.
    pub buckets: Vec<(f64, u64)>,
    pub sum: f64,
}

/// Returns the log's lines of memcached's `stats` and of Redis's `INFO`.
pub fn lines(log: &LogStats) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        ("log_bytes", log.kept.to_string()),
        ("log_limit_bytes", log.limit.to_string()),
        ("log_appended_bytes", log.bytes.to_string()),
        ("log_unsynced_bytes", unsynced(log).to_string()),
        ("log_records", log.records.to_string()),
        ("log_syncs", log.syncs.to_string()),
        ("log_sync_seconds", format!("{:.6}", log.sync_seconds)),
        ("log_room_waits", log.room_waits.to_string()),
        ("log_refused_at_limit", log.refused_at_limit.to_string()),
        ("log_refused_disk_full", log.refused_disk_full.to_string()),
        ("log_status", status(&log.failure)),
        ("checkpoints", log.checkpoints.to_string()),
        ("checkpoint_bytes", log.checkpoint_bytes.to_string()),
        (
            "checkpoint_age_seconds",
            format!("{:.0}", log.seconds_since_checkpoint),
        ),
        ("checkpoint_status", status(&log.checkpoint_failure)),
    ];
    if let Some(rebuilt) = &log.rebuilt {
        lines.extend([
            ("rebuild_entries", rebuilt.entries.to_string()),
            ("rebuild_log_bytes", rebuilt.log.to_string()),
            ("rebuild_seconds", format!("{:.6}", rebuilt.seconds)),
        ]);
    }
    lines.extend(log.failure.clone().map(|why| ("log_failure", on_one_line(&why))));
    lines
}

/// Returns the number of bytes that no sync has made durable. The two positions are not read at the same moment.
fn unsynced(log: &LogStats) -> u64 {
    log.appended.saturating_sub(log.durable)
}

fn status(failure: &Option<String>) -> String {
    match failure {
        None => "ok".to_owned(),
        Some(_) => "err".to_owned(),
    }
}

fn on_one_line(text: &str) -> String {
    text.replace(['\r', '\n'], " ")
}

/// Returns the counters and gauges.
pub fn metrics(log: &LogStats) -> impl Iterator<Item = Metric> + use<> {
    let all = log_metrics(log).into_iter();
    let rebuilt = log.rebuilt.as_ref().map(rebuild_metrics);
    all.chain(checkpoint_metrics(log))
        .chain(rebuilt.into_iter().flatten())
}

fn is(condition: bool) -> f64 {
    f64::from(u8::from(condition))
}

fn log_metrics(log: &LogStats) -> [Metric; 10] {
    [
        (
            "wollemi_log_bytes",
            "Bytes of the log that are kept for an opening after a loss of power.",
            log.kept as f64,
        ),
        (
            "wollemi_log_limit_bytes",
            "Bytes of the log that may be kept: beyond, writes wait for a checkpoint.",
            log.limit as f64,
        ),
        (
            "wollemi_log_unsynced_bytes",
            "Bytes of the log that a loss of power would take now.",
            unsynced(log) as f64,
        ),
        (
            "wollemi_log_appended_bytes_total",
            "Bytes appended to the log since the start.",
            log.bytes as f64,
        ),
        (
            "wollemi_log_records_total",
            "Records appended to the log since the start.",
            log.records as f64,
        ),
        (
            "wollemi_log_room_waits_total",
            "Times that a write has waited for a checkpoint, because the log had reached its limit.",
            log.room_waits as f64,
        ),
        (
            "wollemi_log_room_wait_seconds_total",
            "How long writes have waited so.",
            log.room_wait_seconds,
        ),
        (
            "wollemi_log_refused_at_limit_total",
            "Times that the log refused a record because it had reached its limit: the write waited, or failed.",
            log.refused_at_limit as f64,
        ),
        (
            "wollemi_log_refused_disk_full_total",
            "Times that a segment of the log could not be made because the disk was full.",
            log.refused_disk_full as f64,
        ),
        (
            "wollemi_log_ok",
            "Whether the log takes records: if it has failed, nothing can be written until the server is started \
             again.",
            is(log.failure.is_none()),
        ),
    ]
    .map(|(name, help, value)| Metric::new(name, help, value))
}

fn checkpoint_metrics(log: &LogStats) -> [Metric; 5] {
    [
        (
            "wollemi_checkpoints_total",
            "Checkpoints since the start.",
            log.checkpoints as f64,
        ),
        (
            "wollemi_checkpoint_bytes_total",
            "Bytes of these.",
            log.checkpoint_bytes as f64,
        ),
        (
            "wollemi_checkpoint_running",
            "Whether a checkpoint is being taken.",
            is(log.is_checkpointing),
        ),
        (
            "wollemi_checkpoint_age_seconds",
            "Time since the last checkpoint, or else since the start.",
            log.seconds_since_checkpoint,
        ),
        (
            "wollemi_last_checkpoint_ok",
            "Whether the last checkpoint did not fail.",
            is(log.checkpoint_failure.is_none()),
        ),
    ]
    .map(|(name, help, value)| Metric::new(name, help, value))
}

fn rebuild_metrics(rebuilt: &Rebuilt) -> [Metric; 3] {
    [
        (
            "wollemi_rebuild_entries",
            "Entries of the checkpoint from which the start rebuilt the pool.",
            rebuilt.entries as f64,
        ),
        (
            "wollemi_rebuild_log_bytes",
            "Bytes of the log from which the start rebuilt the pool.",
            rebuilt.log as f64,
        ),
        (
            "wollemi_rebuild_seconds",
            "How long the rebuild took.",
            rebuilt.seconds,
        ),
    ]
    .map(|(name, help, value)| Metric::new(name, help, value))
}

/// Returns the histograms.
pub fn histograms(log: &LogStats) -> [Histogram; 4] {
    [
        Histogram {
            name: "wollemi_log_sync_duration_seconds",
            help: "How long the log's syncs of the disk took.",
            // The log counts whole microseconds, so a bucket holds those below a power of two.
            buckets: cumulated(&log.sync_micros, |power| (1u64 << power) as f64 / 1e6),
            sum: log.sync_seconds,
        },
        Histogram {
            name: "wollemi_log_group_records",
            help: "How many records one sync of the disk has made durable.",
            buckets: cumulated(&log.group_sizes, |power| ((1u64 << power) - 1) as f64),
            sum: log.synced as f64,
        },
        Histogram {
            name: "wollemi_log_room_wait_duration_seconds",
            help: "How long writes waited for a checkpoint, because the log had reached its limit.",
            buckets: cumulated(&log.room_wait_micros, |power| (1u64 << power) as f64 / 1e6),
            sum: log.room_wait_seconds,
        },
        Histogram {
            name: "wollemi_checkpoint_duration_seconds",
            help: "How long checkpoints took.",
            buckets: cumulated(&log.checkpoint_millis, |power| (1u64 << power) as f64 / 1e3),
            sum: log.checkpoint_seconds,
        },
    ]
}

/// Turns counts by powers of two into cumulative buckets.
fn cumulated(counts: &[u64], bound: impl Fn(usize) -> f64) -> Vec<(f64, u64)> {
    let mut sum = 0;
    let last = counts.len().saturating_sub(1);
    let bucket = |(power, count): (usize, &u64)| {
        sum += count;
        match power == last {
            true => (f64::INFINITY, sum),
            false => (bound(power), sum),
        }
    };
    counts.iter().enumerate().map(bucket).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sync between the two readings leaves no negative number of unsynced bytes.
    #[test]
    fn unsynced_bytes_are_never_negative() {
        let log = LogStats {
            appended: 1,
            durable: 2,
            ..LogStats::default()
        };
        assert!(lines(&log).contains(&("log_unsynced_bytes", "0".to_owned())));
        let unsynced = metrics(&log).find(|metric| metric.name == "wollemi_log_unsynced_bytes");
        assert_eq!(unsynced.map(|metric| metric.value), Some(0.0));
    }

    /// Refusals by the log are counted by their reasons, in both protocols and in the metrics.
    #[test]
    fn refusals_are_told() {
        let log = LogStats {
            refused_at_limit: 3,
            refused_disk_full: 2,
            ..LogStats::default()
        };
        let values = |name: &str| {
            let line = lines(&log)
                .into_iter()
                .find(|(line, _)| *line == format!("log_{name}"));
            let metric = metrics(&log).find(|metric| metric.name == format!("wollemi_log_{name}_total"));
            (line.map(|(_, value)| value), metric.map(|metric| metric.value))
        };
        assert_eq!(values("refused_at_limit"), (Some("3".to_owned()), Some(3.0)));
        assert_eq!(values("refused_disk_full"), (Some("2".to_owned()), Some(2.0)));
    }

    /// Only a start that rebuilt the pool tells of a rebuild.
    #[test]
    fn rebuilds_are_told() {
        let told = |log: &LogStats| {
            let metrics: Vec<_> = metrics(log)
                .filter(|metric| metric.name.starts_with("wollemi_rebuild_"))
                .map(|metric| metric.value)
                .collect();
            let lines = lines(log)
                .into_iter()
                .filter(|(name, _)| name.starts_with("rebuild_"));
            (metrics, lines.map(|(_, value)| value).collect::<Vec<_>>())
        };
        let mut log = LogStats::default();
        assert_eq!(told(&log), (vec![], vec![]));
        log.rebuilt = Some(Rebuilt {
            entries: 3,
            log: 512,
            seconds: 0.25,
        });
        let values = ["3", "512", "0.250000"].map(str::to_owned).to_vec();
        assert_eq!(told(&log), (vec![3.0, 512.0, 0.25], values));
    }

    /// A histogram's buckets add up to all counts, and each has the bound that its counts are below.
    #[test]
    fn histograms_are_cumulated() {
        let mut log = LogStats {
            sync_micros: vec![0; 32],
            group_sizes: vec![0; 32],
            room_wait_micros: vec![0; 32],
            checkpoint_millis: vec![0; 32],
            synced: 9,
            checkpoint_seconds: 0.75,
            ..LogStats::default()
        };
        log.sync_micros[7] = 2; // 64 to 127 µs.
        log.sync_micros[31] = 1;
        log.group_sizes[1] = 1; // One record.
        log.group_sizes[4] = 1; // 8 to 15.
        log.room_wait_micros[20] = 4; // 0.52 to 1.05 s.
        log.checkpoint_millis[9] = 2; // 256 to 511 ms.
        let [syncs, groups, room, checkpoints] = histograms(&log);
        assert_eq!(syncs.buckets[6], (64e-6, 0));
        assert_eq!(syncs.buckets[7], (128e-6, 2));
        assert_eq!(syncs.buckets.last(), Some(&(f64::INFINITY, 3)));
        assert_eq!((groups.buckets[0], groups.buckets[1]), ((0.0, 0), (1.0, 1)));
        assert_eq!((groups.buckets[4], groups.sum), ((15.0, 2), 9.0));
        assert_eq!((room.buckets[19].1, room.buckets[20]), (0, (1.048576, 4)));
        assert_eq!(checkpoints.buckets[9], (0.512, 2));
        assert_eq!((checkpoints.buckets[8].1, checkpoints.sum), (0, 0.75));
    }
}
