//! `CONFIG`: what there is to tell of the configuration, and what of it may change while the server runs.

use super::backup;
use super::context::Context;
use super::durable;
use super::error::{Done, SYNTAX, Wrong};
use super::glob::Pattern;
use super::help::help;
use crate::items::databases;
use crate::items::number;
use crate::net::files;
use crate::net::listen::Address;
use crate::ops::shared::Shared;
use crate::ops::sync::Sync;
use crate::proto::redis::args::Args;
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
            // All of them or none.
            for apply in [false, true] {
                for (name, i) in named.iter().zip((2..).step_by(2)) {
                    set(context, name, args.get(i), args.get(i + 1), apply)?;
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
        ("port", port(&shared.config.redis).to_string()),
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

/// The first port of these; 0: none.
pub fn port(addresses: &[Address]) -> u16 {
    tcp(addresses).next().map_or(0, |address| address.port())
}

/// What Redis calls the two ways to keep the limit.
pub fn policy(evicts: bool) -> &'static str {
    match evicts {
        true => "allkeys-lfu",
        false => "noeviction",
    }
}

/// A number of bytes as Redis takes it: `100`, `1k` (1000), `1kb` (1024), and so on.
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
        "" => 0, // There as here.
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

/// The parameter of this name, which can be changed.
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

/// Checks a value for the parameter `known`, which the client has called `name`, and applies it.
fn set(context: &Context<'_>, known: &str, name: &[u8], value: &[u8], apply: bool) -> Done {
    let refused = |why: &str| refused(name, why);
    let within = |bounds: RangeInclusive<i64>| {
        let number =
            number::strict(value).ok_or_else(|| refused("argument couldn't be parsed into an integer"))?;
        let (least, max) = (bounds.start(), bounds.end());
        match bounds.contains(&number) {
            true => Ok(number),
            false => Err(refused(&format!(
                "argument must be between {least} and {max} inclusive"
            ))),
        }
    };
    let change: Box<dyn Fn(&Shared)> = match known {
        "appendfsync" => {
            let known = std::str::from_utf8(value)
                .ok()
                .and_then(|value| value.parse::<Sync>().ok());
            let sync = known
                .ok_or_else(|| refused("argument(s) must be one of the following: everysec, always, no"))?;
            let syncing = &context.shared().syncing;
            syncing.check(sync).map_err(|error| refused(&error.to_string()))?;
            // What it fails with, all later writes will fail with.
            Box::new(move |shared| drop(shared.syncing.set(sync)))
        }
        "maxclients" => {
            let max = within(1..=i64::from(u32::MAX))? as usize;
            Box::new(move |shared| {
                files::allow(max);
                shared.net.limits.set_connections(max);
            })
        }
        "maxmemory" => {
            let limit = bytes(value).ok_or_else(|| refused("argument must be a memory value"))?;
            Box::new(move |shared| shared.databases.memory().set_limit(limit))
        }
        "maxmemory-policy" => {
            let known = [false, true];
            let named = known
                .into_iter()
                .find(|&evicts| value.eq_ignore_ascii_case(policy(evicts).as_bytes()));
            let evicts = named.ok_or_else(|| {
                refused("argument(s) must be one of the following: allkeys-lfu, noeviction")
            })?;
            Box::new(move |shared| shared.databases.memory().set_evicts(evicts))
        }
        "timeout" => {
            let idle = within(0..=i64::from(i32::MAX))?;
            let idle = (idle > 0).then(|| Duration::from_secs(idle.unsigned_abs()));
            Box::new(move |shared| shared.net.set_idle(idle))
        }
        "proto-max-bulk-len" => {
            let bounds = 1 << 20..=crate::ops::config::LARGEST_VALUE as u64;
            let max = bytes(value).ok_or_else(|| refused("argument must be a memory value"))?;
            if !bounds.contains(&max) {
                let (least, max) = (bounds.start(), bounds.end());
                return Err(refused(&format!(
                    "argument must be between {least} and {max} inclusive"
                )));
            }
            Box::new(move |shared| shared.net.limits.set_bulk(max as usize))
        }
        "slowlog-log-slower-than" => {
            let micros = within(-1..=i64::MAX)?;
            Box::new(move |shared| shared.slow.set_threshold(micros))
        }
        "slowlog-max-len" => {
            let max = within(0..=i64::MAX)? as usize;
            Box::new(move |shared| shared.slow.set_length(max))
        }
        _ => return Err(refused("can't set immutable config")),
    };
    if apply {
        change(context.shared());
    }
    Ok(())
}
