//! `CONFIG`: shows the configuration, and changes the part of it that may change while the server runs.

use super::backup;
use super::context::Context;
use super::durable;
use super::error::{Done, SYNTAX, Wrong};
use super::glob::Pattern;
use super::help::help;
use crate::items::databases;
use crate::items::number;
use crate::net::listen::Address;
use crate::ops::config::LARGEST_VALUE;
use crate::ops::shared::Shared;
use crate::ops::sync::Sync;
use crate::proto::redis::args::Args;
use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

pub fn config(context: &mut Context<'_>, args: Args<'_>) -> Done {
    match args.get(1).to_ascii_lowercase().as_slice() {
        b"get" => {
            let all = parameters(context);
            let mut fits = vec![false; all.len()];
            for pattern in args.from(2) {
                let pattern = Pattern::new(&pattern.to_ascii_lowercase());
                let names = all.iter().map(|(name, _)| name.as_bytes());
                fits.iter_mut()
                    .zip(names)
                    .for_each(|(fits, name)| *fits |= pattern.matches(name));
            }
            let wanted: Vec<_> = all
                .iter()
                .zip(&fits)
                .filter(|(_, fits)| **fits)
                .map(|(all, _)| all)
                .collect();
            context.reply.map(wanted.len());
            for (name, value) in wanted {
                context.reply.bulk(name.as_bytes());
                context.reply.bulk(value.as_bytes());
            }
        }
        b"set" if args.len().is_multiple_of(2) => {
            let mut named = Vec::new();
            for name in args.from(2).step_by(2) {
                let known = changeable(context, name)?;
                if named.contains(&known) {
                    return Err(refused(name, "duplicate parameter"));
                }
                named.push(known);
            }
            // All values are checked before the first is applied.
            for apply in [false, true] {
                for (known, i) in named.iter().zip((2..).step_by(2)) {
                    let (name, value) = (args.get(i), args.get(i + 1));
                    set(context, known, &Setting { name, value }, apply)?;
                }
            }
            context.reply.ok();
        }
        b"set" => return Err(SYNTAX.into()),
        b"resetstat" => {
            context.shared().reset_counts();
            context.reply.ok();
        }
        b"help" => help(context, "config")?,
        b"rewrite" => return Err("ERR The server is running without a config file".into()),
        _ => return Err(Wrong::no_subcommand("config", args)),
    }
    Ok(())
}

fn parameters(context: &Context<'_>) -> Vec<(&'static str, String)> {
    let shared = context.shared();
    let tcp = tcp(&shared.config.redis);
    let unix = shared.config.redis.iter().find_map(|address| match address {
        Address::Unix(path) => Some(path.display().to_string()),
        Address::Tcp(_) => None,
    });
    let bound: Vec<_> = tcp.map(|address| address.ip().to_string()).collect();
    let limits = &shared.net.limits;
    let memory = shared.databases.memory();
    let (folder, file) = backup::place(context);
    vec![
        ("appendfsync", shared.syncing.get().to_string()),
        (
            "appendonly",
            if durable::is_enabled(context) { "yes" } else { "no" }.to_owned(),
        ),
        ("bind", bound.join(" ")),
        ("databases", databases::COUNT.to_string()),
        ("dbfilename", file),
        ("dir", folder),
        ("io-threads", shared.net.workers().to_string()),
        ("maxclients", limits.connections().to_string()),
        ("maxmemory", memory.limit().to_string()),
        ("maxmemory-policy", policy(memory.evicts()).to_owned()),
        ("port", port(shared).to_string()),
        ("proto-max-bulk-len", limits.bulk().to_string()),
        ("save", String::new()),
        ("slowlog-log-slower-than", shared.slow.threshold().to_string()),
        ("slowlog-max-len", shared.slow.length().to_string()),
        (
            "timeout",
            limits.idle().map_or(0, |idle| idle.as_secs()).to_string(),
        ),
        ("unixsocket", unix.unwrap_or_default()),
    ]
}

fn tcp(addresses: &[Address]) -> impl Iterator<Item = SocketAddr> {
    addresses.iter().filter_map(|address| match address {
        Address::Tcp(address) => Some(*address),
        Address::Unix(_) => None,
    })
}

/// Returns the port of the first TCP address of Redis's clients; 0 if there is none.
pub fn port(shared: &Shared) -> u16 {
    let listening = shared.net.listening.get().map_or(&[][..], Vec::as_slice);
    // Those of memcached's clients come first.
    let redis = listening.get(shared.config.memcached.len()..).unwrap_or_default();
    tcp(redis).next().map_or(0, |address| address.port())
}

/// Returns Redis's name for the way in which the memory limit is kept.
pub fn policy(evicts: bool) -> &'static str {
    match evicts {
        true => "allkeys-lfu",
        false => "noeviction",
    }
}

/// Parses a number of bytes as Redis does: `100`, `1k` (1000), `1kb` (1024), and so on.
fn bytes(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?.to_ascii_lowercase();
    let unit = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    let unit = match unit {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    let number = match number {
        "" => 0, // As in Redis.
        number => number.parse::<u64>().ok()?,
    };
    number.checked_mul(unit)
}

fn refused(name: &[u8], why: &str) -> Wrong {
    let before = "ERR CONFIG SET failed (possibly related to argument '";
    Wrong::with(before, name, &format!("') - {why}"))
}

/// The parameters that can be changed.
const CHANGEABLE: [&str; 8] = [
    "appendfsync",
    "maxclients",
    "maxmemory",
    "maxmemory-policy",
    "proto-max-bulk-len",
    "slowlog-log-slower-than",
    "slowlog-max-len",
    "timeout",
];

/// Returns the changeable parameter of this name.
fn changeable(context: &Context<'_>, name: &[u8]) -> Result<&'static str, Wrong> {
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    if let Some(known) = CHANGEABLE.into_iter().find(|known| is(known)) {
        return Ok(known);
    }
    if parameters(context).iter().any(|(known, _)| is(known)) {
        return Err(refused(name, "can't set immutable config"));
    }
    let before = "ERR Unknown option or number of arguments for CONFIG SET - '";
    Err(Wrong::with(before, name, "'"))
}

/// A new value, and the name by which the client has called its parameter.
struct Setting<'s> {
    name: &'s [u8],
    value: &'s [u8],
}

impl Setting<'_> {
    fn refused(&self, why: &str) -> Wrong {
        refused(self.name, why)
    }

    fn outside(&self, least: impl Display, max: impl Display) -> Wrong {
        self.refused(&format!("argument must be between {least} and {max} inclusive"))
    }

    /// Returns the value as a number within these bounds.
    fn number(&self, bounds: RangeInclusive<i64>) -> Result<i64, Wrong> {
        let number = number::strict(self.value);
        let number = number.ok_or_else(|| self.refused("argument couldn't be parsed into an integer"))?;
        match bounds.contains(&number) {
            true => Ok(number),
            false => Err(self.outside(bounds.start(), bounds.end())),
        }
    }

    /// Returns the value as a number of bytes.
    fn bytes(&self) -> Result<u64, Wrong> {
        bytes(self.value).ok_or_else(|| self.refused("argument must be a memory value"))
    }

    fn sync(&self) -> Result<Sync, Wrong> {
        let text = std::str::from_utf8(self.value).ok();
        let sync = text.and_then(|text| text.parse::<Sync>().ok());
        sync.ok_or_else(|| self.refused("argument(s) must be one of the following: everysec, always, no"))
    }

    fn evicts(&self) -> Result<bool, Wrong> {
        let is = |evicts: &bool| self.value.eq_ignore_ascii_case(policy(*evicts).as_bytes());
        let evicts = [false, true].into_iter().find(is);
        evicts
            .ok_or_else(|| self.refused("argument(s) must be one of the following: allkeys-lfu, noeviction"))
    }
}

/// Checks a value for the parameter `known`, and then applies it if `apply` says so.
fn set(context: &Context<'_>, known: &str, new: &Setting<'_>, apply: bool) -> Done {
    let change: Box<dyn Fn(&Shared)> = match known {
        "appendfsync" => {
            let sync = new.sync()?;
            let checked = context.shared().syncing.check(sync);
            checked.map_err(|error| new.refused(&error.to_string()))?;
            // If this fails, all later writes fail in the same way.
            Box::new(move |shared| drop(shared.syncing.set(sync)))
        }
        "maxclients" => {
            let max = new.number(1..=i64::from(u32::MAX))? as usize;
            Box::new(move |shared| shared.net.limits.set_connections(max))
        }
        "maxmemory" => {
            let limit = new.bytes()?;
            Box::new(move |shared| shared.databases.memory().set_limit(limit))
        }
        "maxmemory-policy" => {
            let evicts = new.evicts()?;
            Box::new(move |shared| shared.databases.memory().set_evicts(evicts))
        }
        "timeout" => {
            let idle = new.number(0..=i64::from(i32::MAX))?;
            let idle = (idle > 0).then(|| Duration::from_secs(idle.unsigned_abs()));
            Box::new(move |shared| shared.net.set_idle(idle))
        }
        "proto-max-bulk-len" => {
            let (least, max) = (1 << 20, LARGEST_VALUE as u64);
            let bulk = new.bytes()?;
            if !(least..=max).contains(&bulk) {
                return Err(new.outside(least, max));
            }
            Box::new(move |shared| shared.net.limits.set_bulk(bulk as usize))
        }
        "slowlog-log-slower-than" => {
            let micros = new.number(-1..=i64::MAX)?;
            Box::new(move |shared| shared.slow.set_threshold(micros))
        }
        "slowlog-max-len" => {
            let max = new.number(0..=i64::MAX)? as usize;
            Box::new(move |shared| shared.slow.set_length(max))
        }
        _ => return Err(new.refused("can't set immutable config")),
    };
    if apply {
        change(context.shared());
    }
    Ok(())
}
