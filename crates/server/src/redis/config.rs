//! `CONFIG`: what there is to tell of the configuration, and what of it may change while the server runs.

use super::command::no_subcommand;
use super::context::{Context, Done, SYNTAX, Wrong};
use super::glob;
use super::parse::Args;
use crate::config::Address;
use crate::files;
use crate::number;
use crate::shared::Shared;
use std::time::Duration;

pub fn config(context: &mut Context<'_>, args: Args<'_>) -> Done {
    match args.get(1).to_ascii_lowercase().as_slice() {
        b"get" => {
            let all = parameters(context);
            let fits = |name: &str| {
                args.from(2)
                    .any(|pattern| glob::fits(&pattern.to_ascii_lowercase(), name.as_bytes()))
            };
            let wanted: Vec<_> = all.iter().filter(|(name, _)| fits(name)).collect();
            context.reply.map(wanted.len());
            for (name, value) in wanted {
                context.reply.bulk(name.as_bytes());
                context.reply.bulk(value.as_bytes());
            }
        }
        b"set" if args.len().is_multiple_of(2) => {
            // All of them or none.
            for apply in [false, true] {
                for i in (2..args.len()).step_by(2) {
                    set(context, args.get(i), args.get(i + 1), apply)?;
                }
            }
            context.reply.ok();
        }
        b"set" => return Err(SYNTAX.into()),
        b"resetstat" => {
            context.shared().reset_counts();
            context.reply.ok();
        }
        b"rewrite" => return Err("ERR The server is running without a config file".into()),
        _ => return Err(no_subcommand("config", args)),
    }
    Ok(())
}

fn parameters(context: &Context<'_>) -> Vec<(&'static str, String)> {
    let shared = context.shared();
    let tcp = shared.config.redis.iter().filter_map(|address| match address {
        Address::Tcp(address) => Some(*address),
        Address::Unix(_) => None,
    });
    let unix = shared.config.redis.iter().find_map(|address| match address {
        Address::Unix(path) => Some(path.display().to_string()),
        Address::Tcp(_) => None,
    });
    let bound: Vec<_> = tcp.clone().map(|address| address.ip().to_string()).collect();
    let limits = &shared.limits;
    let memory = shared.databases.memory();
    vec![
        ("appendonly", "yes".to_owned()),
        ("bind", bound.join(" ")),
        ("databases", shared.databases.count().to_string()),
        ("io-threads", shared.workers.len().to_string()),
        ("maxclients", limits.connections().to_string()),
        ("maxmemory", memory.limit().to_string()),
        ("maxmemory-policy", policy(memory.evicts()).to_owned()),
        (
            "port",
            tcp.clone().next().map_or(0, |address| address.port()).to_string(),
        ),
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
    number.parse::<u64>().ok()?.checked_mul(unit)
}

fn set(context: &Context<'_>, name: &[u8], value: &[u8], apply: bool) -> Done {
    let shown = String::from_utf8_lossy(name).into_owned();
    let refused = |why: &str| {
        Wrong(format!(
            "ERR CONFIG SET failed (possibly related to argument '{shown}') - {why}"
        ))
    };
    let signed = || {
        let number = number::strict(value);
        number.ok_or_else(|| refused("argument couldn't be parsed into an integer"))
    };
    let number = || {
        let number = u64::try_from(signed()?);
        number.map_err(|_| refused("argument couldn't be parsed into an integer"))
    };
    let change: Box<dyn Fn(&Shared)> = match name.to_ascii_lowercase().as_slice() {
        b"maxclients" => {
            let most = number()? as usize;
            if most == 0 {
                return Err(refused("argument must be at least 1"));
            }
            Box::new(move |shared| {
                files::allow(most);
                shared.limits.set_connections(most);
            })
        }
        b"maxmemory" => {
            let limit = bytes(value).ok_or_else(|| refused("argument must be a memory value"))?;
            Box::new(move |shared| shared.databases.memory().set_limit(limit))
        }
        b"maxmemory-policy" => {
            let known = [false, true];
            let named = known
                .into_iter()
                .find(|&evicts| value.eq_ignore_ascii_case(policy(evicts).as_bytes()));
            let evicts = named.ok_or_else(|| {
                refused("argument(s) must be one of the following: allkeys-lfu, noeviction")
            })?;
            Box::new(move |shared| shared.databases.memory().set_evicts(evicts))
        }
        b"timeout" => {
            let idle = number()?;
            let idle = (idle > 0).then(|| Duration::from_secs(idle));
            Box::new(move |shared| shared.limits.set_idle(idle))
        }
        b"proto-max-bulk-len" => {
            let most = number()? as usize;
            if !(1 << 20..=crate::config::LARGEST_VALUE).contains(&most) {
                return Err(refused("argument must be between 1048576 and 67108840 inclusive"));
            }
            Box::new(move |shared| shared.limits.set_bulk(most))
        }
        b"slowlog-log-slower-than" => {
            let micros = signed()?;
            if micros < -1 {
                return Err(refused(
                    "argument must be between -1 and 9223372036854775807 inclusive",
                ));
            }
            Box::new(move |shared| shared.slow.set_threshold(micros))
        }
        b"slowlog-max-len" => {
            let most = number()? as usize;
            Box::new(move |shared| shared.slow.set_length(most))
        }
        _ if parameters(context)
            .iter()
            .any(|(known, _)| shown.eq_ignore_ascii_case(known)) =>
        {
            return Err(refused("can't set immutable config"));
        }
        _ => {
            return Err(Wrong(format!(
                "ERR Unknown option or number of arguments for CONFIG SET - '{shown}'"
            )));
        }
    };
    if apply {
        change(context.shared());
    }
    Ok(())
}
