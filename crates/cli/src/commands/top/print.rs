//! Prints a look as text, and formats numbers for it and for the terminal's view.

use super::look::{Log, Look, Row};
use std::io::{self, Write};

/// Prints one look: names and values, then the commands.
pub fn print(out: &mut impl Write, look: &Look) -> io::Result<()> {
    let mut line = |name: &str, value: String| writeln!(out, "{name:<12}{value}");
    line("version", look.version.clone())?;
    line("uptime", duration(look.uptime))?;
    line("commands/s", count(look.commands_per_second))?;
    line("hit rate", look.hit_rate.map_or("-".to_owned(), share))?;
    line("read/s", bytes(look.read_bytes_per_second))?;
    line("written/s", bytes(look.written_bytes_per_second))?;
    line("connections", connections(look))?;
    line("items", count(look.items))?;
    line("item bytes", item_memory(look))?;
    line("pool", pool(look))?;
    line("resident", bytes(look.resident))?;
    line("recovery", recovery(look))?;
    line("backup", backup(look))?;
    if let Some(log) = &look.log {
        line("log", self::log(log))?;
    }
    writeln!(out)?;
    let [protocol, command, rate, p50, p99, p999, total] = HEADS;
    writeln!(
        out,
        "{protocol:<10} {command:<14} {rate:>9} {p50:>9} {p99:>9} {p999:>9} {total:>9}"
    )?;
    for row in &look.commands {
        let [protocol, command, rate, p50, p99, p999, total] = cells(row);
        writeln!(
            out,
            "{protocol:<10} {command:<14} {rate:>9} {p50:>9} {p99:>9} {p999:>9} {total:>9}"
        )?;
    }
    Ok(())
}

/// The headers of the commands' columns.
pub const HEADS: [&str; 7] = ["protocol", "command", "/s", "p50", "p99", "p99.9", "total"];

/// Returns a command's columns.
pub fn cells(row: &Row) -> [String; 7] {
    let time = |seconds: Option<f64>| seconds.map_or("-".to_owned(), time);
    [
        row.protocol.clone(),
        row.command.clone(),
        count(row.per_second),
        time(row.p50),
        time(row.p99),
        time(row.p999),
        count(row.total),
    ]
}

/// Returns `3 of 1024`, and the number of rejected connections.
pub fn connections(look: &Look) -> String {
    let open = format!("{} of {}", look.connections, look.max_connections);
    match look.rejected_connections {
        0.0 => open,
        rejected => format!("{open}, {} turned away", count(rejected)),
    }
}

/// Returns the memory of the items, its limit, and how many items were evicted and how many writes refused.
pub fn item_memory(look: &Look) -> String {
    let memory = &look.item_memory;
    let mut text = bytes(memory.used);
    if memory.limit > 0.0 {
        text += &format!(" of {}", bytes(memory.limit));
    }
    for (number, what) in [(memory.evicted, "evicted"), (memory.refused, "refused")] {
        if number > 0.0 {
            text += &format!(", {} {what}", count(number));
        }
    }
    text
}

/// Returns the pool's fill level.
pub fn pool(look: &Look) -> String {
    let pool = &look.pool;
    let unswept = match pool.unswept {
        0.0 => String::new(),
        unswept => format!(", {} not swept yet", bytes(unswept)),
    };
    format!("{} used, {} free{unswept}", bytes(pool.used), bytes(pool.free))
}

/// Returns recovery's progress.
pub fn recovery(look: &Look) -> String {
    let recovery = &look.recovery;
    match recovery.state.as_str() {
        "" => "-".to_owned(),
        "running" => format!(
            "running, {} of {} pages",
            count(recovery.pages_swept),
            count(recovery.pages)
        ),
        state => state.to_owned(),
    }
}

/// Returns a backup's progress, or whether the last one failed, and the age of the last successful one.
pub fn backup(look: &Look) -> String {
    let backup = &look.backup;
    let last = backup
        .age
        .map_or("none".to_owned(), |age| format!("{} ago", duration(age)));
    match (backup.running, backup.ok) {
        (true, _) if look.items > 0.0 => format!("running, {}", share((backup.items / look.items).min(1.0))),
        (true, _) => "running".to_owned(),
        (false, true) => last,
        (false, false) => format!("failed; last: {last}"),
    }
}

/// Returns the log's length, the duration and yield of its syncs, and its failures.
pub fn log(log: &Log) -> String {
    if !log.ok {
        return "failed: all writes fail until the server is restarted".to_owned();
    }
    let mut text = format!("{} of {}", bytes(log.bytes), bytes(log.limit));
    text += &format!(", {} {}/s", log.sync, count(log.syncs_per_second));
    if let (Some(records), Some(p50), Some(p99)) = (log.records_per_sync, log.sync_p50, log.sync_p99) {
        text += &format!(" of {}, {}, p99 {}", count(records), time(p50), time(p99));
    }
    text += &match (log.checkpointing, log.checkpoint_ok) {
        (true, _) => ", checkpoint running".to_owned(),
        (false, true) => format!(", checkpoint {} ago", duration(log.checkpoint_age)),
        (false, false) => ", checkpoint failed".to_owned(),
    };
    if log.room_waits > 0.0 {
        text += &format!(", {} waits for room", count(log.room_waits));
    }
    text
}

/// Formats a count in at most six characters, up to 999 T.
pub fn count(number: f64) -> String {
    scaled(number, 1000.0, &["", "k", "M", "G", "T"])
}

/// Formats bytes in binary multiples.
pub fn bytes(number: f64) -> String {
    scaled(number, 1024.0, &[" B", " KiB", " MiB", " GiB", " TiB"])
}

fn scaled(number: f64, step: f64, units: &[&str]) -> String {
    let mut number = number;
    let mut units = units.iter();
    let mut unit = units.next();
    while number >= step * 0.9995 {
        match units.next() {
            Some(next) => unit = Some(next),
            None => break,
        }
        number /= step;
    }
    let unit = unit.copied().unwrap_or_default();
    match number {
        whole if whole.fract() == 0.0 || whole >= 100.0 => format!("{whole:.0}{unit}"),
        small => format!("{small:.1}{unit}"),
    }
}

/// Formats a duration given in seconds.
pub fn time(seconds: f64) -> String {
    let nanos = seconds * 1e9;
    match nanos {
        _ if nanos < 999.5 => format!("{nanos:.0} ns"),
        _ if nanos < 999.5e3 => scaled_time(nanos / 1e3, "µs"),
        _ if nanos < 999.5e6 => scaled_time(nanos / 1e6, "ms"),
        _ => scaled_time(seconds, "s"),
    }
}

fn scaled_time(number: f64, unit: &str) -> String {
    if number >= 99.95 {
        format!("{number:.0} {unit}")
    } else {
        format!("{number:.1} {unit}")
    }
}

/// Formats a share in per cent.
pub fn share(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Formats a long duration in its two largest units.
pub fn duration(seconds: f64) -> String {
    let seconds = seconds as u64;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    if days > 0 {
        format!("{days} d {} h", hours % 24)
    } else if hours > 0 {
        format!("{hours} h {} min", minutes % 60)
    } else if minutes > 0 {
        format!("{minutes} min {} s", seconds % 60)
    } else {
        format!("{seconds} s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let counts = [0.0, 0.25, 999.0, 1000.0, 1234.0, 99_960.0, 999_600.0, 2e15];
        assert_eq!(
            counts.map(count),
            ["0", "0.2", "999", "1k", "1.2k", "100.0k", "1.0M", "2000T"]
        );
        assert_eq!([0.0, 1536.0, 1_048_576.0].map(bytes), ["0 B", "1.5 KiB", "1 MiB"]);
        assert_eq!(
            [5e-7, 1.5e-6, 0.25, 2.0].map(time),
            ["500 ns", "1.5 µs", "250 ms", "2.0 s"]
        );
        assert_eq!(
            [59.0, 61.0, 7260.0, 90_000.0].map(duration),
            ["59 s", "1 min 1 s", "2 h 1 min", "1 d 1 h"]
        );
    }
}
