//! The changes between two scrapes.

use super::scrape::{Sample, Scrape};
use serde::Serialize;
use std::collections::VecDeque;

/// The histograms of the commands.
const DURATION: &str = "wollemi_command_duration_seconds";
/// The histograms of the log.
const SYNC: &str = "wollemi_log_sync_duration_seconds";
const GROUP: &str = "wollemi_log_group_records";
/// Number of scrapes shown in the graph.
const REMEMBERED: usize = 512;

/// A server, over an interval.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Look {
    pub version: String,
    /// Seconds since it was started.
    pub uptime: f64,
    /// Seconds between the two scrapes.
    pub interval: f64,
    pub commands_per_second: f64,
    /// Hit rate of the keys that were looked up; `None` if none were.
    pub hit_rate: Option<f64>,
    pub read_bytes_per_second: f64,
    pub written_bytes_per_second: f64,
    pub connections: f64,
    pub max_connections: f64,
    pub rejected_connections: f64,
    pub items: f64,
    pub item_memory: ItemMemory,
    /// Resident bytes of the process.
    pub resident: f64,
    pub pool: Pool,
    pub recovery: Recovery,
    pub backup: Backup,
    /// The log, for a pool of level `disk`.
    pub log: Option<Log>,
    /// All commands seen so far, the most frequent of the interval first.
    pub commands: Vec<Row>,
}

/// Memory of the items.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ItemMemory {
    pub used: f64,
    /// Its limit; 0: no limit.
    pub limit: f64,
    /// Items evicted since the server was started or its statistics were reset.
    pub evicted: f64,
    /// Writes refused since then for lack of room.
    pub refused: f64,
}

/// How the pool's bytes are used.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Pool {
    pub used: f64,
    pub free: f64,
    pub unswept: f64,
    pub largest: f64,
}

/// Progress of recovery.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Recovery {
    pub state: String,
    pub pages_swept: f64,
    pub pages: f64,
}

/// The state of backups.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Backup {
    pub running: bool,
    /// Items that the current backup has written.
    pub items: f64,
    /// Backups since the server was started.
    pub made: f64,
    /// Whether the last backup succeeded.
    pub ok: bool,
    /// Seconds since the last successful backup; `None` if there was none since the server was started.
    pub age: Option<f64>,
}

/// The state of the log.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Log {
    /// When writes are durable: `always`, `everysec` or `no`.
    pub sync: String,
    pub bytes: f64,
    pub limit: f64,
    pub unsynced_bytes: f64,
    pub syncs_per_second: f64,
    /// Mean number of records per sync; `None` without a sync in the interval.
    pub records_per_sync: Option<f64>,
    /// Duration of syncs in the interval, in seconds.
    pub sync_p50: Option<f64>,
    pub sync_p99: Option<f64>,
    /// Number of times in the interval that a write waited for a checkpoint.
    pub room_waits: f64,
    /// Seconds since the last checkpoint, or else since the server was started.
    pub checkpoint_age: f64,
    pub checkpointing: bool,
    pub checkpoint_ok: bool,
    /// Whether it accepts records.
    pub ok: bool,
}

/// A command. Times are in seconds; `None` if it was not called in the interval.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    pub protocol: String,
    pub command: String,
    pub total: f64,
    pub per_second: f64,
    pub p50: Option<f64>,
    pub p99: Option<f64>,
    pub p999: Option<f64>,
}

impl Look {
    /// Returns the changes between two scrapes, or, without an earlier one, since the server was started.
    pub fn between(before: Option<&Scrape>, now: &Scrape) -> Look {
        let uptime = now.one("wollemi_uptime_seconds").unwrap_or_default();
        // A server that was restarted meanwhile counts from zero.
        let before =
            before.filter(|before| before.one("wollemi_uptime_seconds").unwrap_or_default() <= uptime);
        let interval = before
            .map_or(uptime, |before| (now.at - before.at).as_secs_f64())
            .max(1e-3);
        let grown = |name: &str| {
            let of = |scrape: &Scrape| scrape.one(name).unwrap_or_default();
            // Counts may also have been reset.
            (of(now) - before.map_or(0.0, of)).max(0.0)
        };
        let one = |name: &str| now.one(name).unwrap_or_default();
        let space = |state: &str| {
            now.labelled("wollemi_pool_bytes", "state", state)
                .unwrap_or_default()
        };
        let (hits, misses) = (grown("wollemi_get_hits_total"), grown("wollemi_get_misses_total"));
        let state = |scrape: &Scrape| {
            let states = scrape.all("wollemi_recovery_state").iter();
            states
                .filter(|sample| sample.value == 1.0)
                .map(|sample| sample.label("state").to_owned())
                .next()
        };
        let mut commands = rows(before, now, interval);
        commands.sort_by(|a, b| {
            (b.per_second, b.total)
                .partial_cmp(&(a.per_second, a.total))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        let info = now.all("wollemi_build_info").first();
        Look {
            version: info.map_or("", |info| info.label("version")).to_owned(),
            uptime,
            interval,
            commands_per_second: commands.iter().map(|row| row.per_second).sum(),
            hit_rate: (hits + misses > 0.0).then(|| hits / (hits + misses)),
            read_bytes_per_second: grown("wollemi_read_bytes_total") / interval,
            written_bytes_per_second: grown("wollemi_written_bytes_total") / interval,
            connections: one("wollemi_connections"),
            max_connections: one("wollemi_max_connections"),
            rejected_connections: one("wollemi_rejected_connections_total"),
            items: now.all("wollemi_items").iter().map(|sample| sample.value).sum(),
            item_memory: ItemMemory {
                used: one("wollemi_item_bytes"),
                limit: one("wollemi_memory_limit_bytes"),
                evicted: one("wollemi_evicted_items_total"),
                refused: one("wollemi_refused_writes_total"),
            },
            resident: one("process_resident_memory_bytes"),
            pool: Pool {
                used: space("used"),
                free: space("free"),
                unswept: space("unswept"),
                largest: one("wollemi_pool_max_bytes"),
            },
            recovery: Recovery {
                state: state(now).unwrap_or_default(),
                pages_swept: one("wollemi_recovery_swept_pages"),
                pages: one("wollemi_recovery_pages"),
            },
            backup: Backup {
                running: one("wollemi_backup_running") > 0.0,
                items: one("wollemi_backup_items"),
                made: one("wollemi_backups_total"),
                ok: now.one("wollemi_last_backup_ok") != Some(0.0),
                age: (one("wollemi_backups_total") > 0.0).then(|| {
                    let now = one("process_start_time_seconds") + uptime;
                    (now - one("wollemi_last_backup_timestamp_seconds")).max(0.0)
                }),
            },
            log: now.one("wollemi_log_bytes").map(|bytes| {
                let syncs = grown(&format!("{SYNC}_count"));
                let times = buckets(before, now, SYNC, |_| true);
                let info = now.all("wollemi_pool_info").first();
                Log {
                    sync: info.map_or("", |info| info.label("sync")).to_owned(),
                    bytes,
                    limit: one("wollemi_log_limit_bytes"),
                    unsynced_bytes: one("wollemi_log_unsynced_bytes"),
                    syncs_per_second: syncs / interval,
                    records_per_sync: (syncs > 0.0).then(|| grown(&format!("{GROUP}_sum")) / syncs),
                    sync_p50: quantile(&times, 0.5),
                    sync_p99: quantile(&times, 0.99),
                    room_waits: grown("wollemi_log_room_waits_total"),
                    checkpoint_age: one("wollemi_checkpoint_age_seconds"),
                    checkpointing: one("wollemi_checkpoint_running") > 0.0,
                    checkpoint_ok: now.one("wollemi_last_checkpoint_ok") != Some(0.0),
                    ok: now.one("wollemi_log_ok") != Some(0.0),
                }
            }),
            commands,
        }
    }
}

fn same(a: &Sample, b: &Sample) -> bool {
    ["protocol", "command"]
        .iter()
        .all(|label| a.label(label) == b.label(label))
}

fn rows(before: Option<&Scrape>, now: &Scrape, interval: f64) -> Vec<Row> {
    let counts = format!("{DURATION}_count");
    let row = |count: &Sample| {
        let earlier = before.and_then(|before| before.all(&counts).iter().find(|sample| same(sample, count)));
        let came = (count.value - earlier.map_or(0.0, |sample| sample.value)).max(0.0);
        let buckets = buckets(before, now, DURATION, |bucket| same(bucket, count));
        Row {
            protocol: count.label("protocol").to_owned(),
            command: count.label("command").to_owned(),
            total: count.value,
            per_second: came / interval,
            p50: quantile(&buckets, 0.5),
            p99: quantile(&buckets, 0.99),
            p999: quantile(&buckets, 0.999),
        }
    };
    now.all(&counts).iter().map(row).collect()
}

/// Returns the cumulative buckets of a histogram over the interval, in the server's order, which is by ascending bound.
fn buckets(
    before: Option<&Scrape>,
    now: &Scrape,
    name: &str,
    is_of: impl Fn(&Sample) -> bool,
) -> Vec<(f64, f64)> {
    let name = format!("{name}_bucket");
    let earlier = |bucket: &Sample| {
        let mut all = before.map_or(&[][..], |before| before.all(&name)).iter();
        let found = all.find(|sample| sample.labels == bucket.labels);
        found.map_or(0.0, |sample| sample.value)
    };
    let own = now.all(&name).iter().filter(|bucket| is_of(bucket));
    let bucket = |bucket: &Sample| {
        let bound = bucket.label("le").parse().unwrap_or(f64::INFINITY);
        (bound, (bucket.value - earlier(bucket)).max(0.0))
    };
    own.map(bucket).collect()
}

/// Returns a quantile, interpolated linearly within its bucket.
fn quantile(buckets: &[(f64, f64)], share: f64) -> Option<f64> {
    let all = buckets.last()?.1;
    if all <= 0.0 {
        return None;
    }
    let wanted = share * all;
    let found = buckets.iter().position(|&(_, within)| within >= wanted)?;
    let (begin, below) = found.checked_sub(1).map_or((0.0, 0.0), |before| buckets[before]);
    let (end, within) = buckets[found];
    if end.is_infinite() || within <= below {
        return Some(if end.is_infinite() { begin } else { end });
    }
    Some(begin + (end - begin) * (wanted - below) / (within - below))
}

/// The values seen so far.
#[derive(Debug, Default)]
pub struct History {
    last: Option<Scrape>,
    /// The latest view, once there is one.
    pub look: Option<Look>,
    /// Commands per second, newest first.
    pub rates: VecDeque<u64>,
    /// Why the last scrape failed, if it did.
    pub lost: Option<String>,
}

impl History {
    /// Adds the server's latest values.
    pub fn add(&mut self, scrape: Scrape) {
        let look = Look::between(self.last.as_ref(), &scrape);
        if self.last.is_some() {
            self.rates.push_front(look.commands_per_second.round() as u64);
            self.rates.truncate(REMEMBERED);
        }
        self.look = Some(look);
        self.last = Some(scrape);
        self.lost = None;
    }

    /// Notes that the server did not answer.
    pub fn lose(&mut self, why: String) {
        self.lost = Some(why);
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// Two scrapes of a server, two seconds apart.
    pub fn scrapes() -> (Scrape, Scrape) {
        let text = |seconds: u64, gets: u64, slow: u64| {
            format!(
                "wollemi_build_info{{version=\"1.2.3\"}} 1\nwollemi_uptime_seconds {seconds}\n\
                 wollemi_connections 3\nwollemi_max_connections 10\nwollemi_rejected_connections_total 0\n\
                 wollemi_get_hits_total {}\nwollemi_get_misses_total {}\n\
                 wollemi_items{{db=\"0\"}} 7\nwollemi_items{{db=\"3\"}} 5\n\
                 wollemi_item_bytes 2097152\nwollemi_memory_limit_bytes 4194304\n\
                 wollemi_evicted_items_total 5\nwollemi_refused_writes_total 0\n\
                 wollemi_pool_bytes{{state=\"used\"}} 3145728\nwollemi_pool_bytes{{state=\"free\"}} 1048576\n\
                 wollemi_pool_bytes{{state=\"unswept\"}} 0\nwollemi_pool_max_bytes 1073741824\n\
                 process_resident_memory_bytes 5242880\n\
                 wollemi_recovery_state{{state=\"running\"}} 1\nwollemi_recovery_state{{state=\"done\"}} 0\n\
                 process_start_time_seconds 1000\nwollemi_backup_running 1\nwollemi_backup_items 6\n\
                 wollemi_backups_total 2\nwollemi_last_backup_ok 1\nwollemi_last_backup_timestamp_seconds 1040\n\
                 wollemi_pool_info{{level=\"disk\",sync=\"always\"}} 1\nwollemi_log_bytes 3145728\n\
                 wollemi_log_limit_bytes 6291456\nwollemi_log_unsynced_bytes 0\nwollemi_log_ok 1\n\
                 wollemi_log_room_waits_total 0\nwollemi_checkpoint_age_seconds 61\n\
                 wollemi_checkpoint_running 0\nwollemi_last_checkpoint_ok 1\n\
                 {SYNC}_bucket{{le=\"0.001\"}} {seconds}\n{SYNC}_bucket{{le=\"+Inf\"}} {seconds}\n\
                 {SYNC}_sum 1\n{SYNC}_count {seconds}\n{GROUP}_sum {gets}\n{GROUP}_count {seconds}\n\
                 wollemi_recovery_pages 200\nwollemi_recovery_swept_pages 50\n\
                 {DURATION}_bucket{{protocol=\"redis\",command=\"get\",le=\"0.001\"}} {gets}\n\
                 {DURATION}_bucket{{protocol=\"redis\",command=\"get\",le=\"0.002\"}} {}\n\
                 {DURATION}_bucket{{protocol=\"redis\",command=\"get\",le=\"+Inf\"}} {}\n\
                 {DURATION}_sum{{protocol=\"redis\",command=\"get\"}} 1\n\
                 {DURATION}_count{{protocol=\"redis\",command=\"get\"}} {}\n",
                gets / 2,
                gets / 2,
                gets + slow,
                gets + slow,
                gets + slow,
            )
        };
        let begin = Instant::now();
        let before = Scrape::read(&text(100, 1000, 0), begin).expect("metrics");
        let now = Scrape::read(&text(102, 1180, 20), begin + Duration::from_secs(2)).expect("metrics");
        (before, now)
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    /// Rates and percentiles are those of the interval alone.
    #[test]
    fn an_interval_is_told() {
        let (before, now) = scrapes();
        let look = Look::between(Some(&before), &now);
        assert!(near(look.interval, 2.0) && near(look.commands_per_second, 100.0));
        assert_eq!((look.hit_rate, look.items), (Some(0.5), 12.0));
        assert_eq!(
            (look.version.as_str(), look.recovery.state.as_str()),
            ("1.2.3", "running")
        );
        let backup = &look.backup;
        assert_eq!(
            (backup.running, backup.items, backup.age),
            (true, 6.0, Some(62.0))
        );
        let log = look.log.as_ref().expect("there is one");
        assert_eq!((log.sync.as_str(), log.syncs_per_second), ("always", 1.0));
        assert_eq!((log.records_per_sync, log.checkpoint_age), (Some(90.0), 61.0));
        assert!(near(log.sync_p50.expect("some"), 0.0005));
        let row = &look.commands[0];
        assert_eq!(row.total, 1200.0);
        // 180 took up to 1 ms, 20 up to 2 ms.
        assert!(near(row.p50.expect("some"), 0.001 * 100.0 / 180.0));
        assert!(near(row.p99.expect("some"), 0.001 + 0.001 * 18.0 / 20.0));
    }

    /// Counts of a restarted server are not compared with those before the restart.
    #[test]
    fn a_new_server_is_looked_at_anew() {
        let (before, now) = scrapes();
        let look = Look::between(Some(&now), &before);
        assert!(near(look.interval, 100.0) && near(look.commands_per_second, 10.0));
        let nothing = Look::between(None, &Scrape::read("", Instant::now()).expect("metrics"));
        assert_eq!((nothing.hit_rate, nothing.commands.len()), (None, 0));
        assert!(nothing.log.is_none());
    }

    /// Without commands in the interval there is no percentile.
    #[test]
    fn nothing_has_no_percentiles() {
        let (before, _) = scrapes();
        let look = Look::between(Some(&before), &before);
        assert_eq!((look.commands[0].p50, look.hit_rate), (None, None));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
