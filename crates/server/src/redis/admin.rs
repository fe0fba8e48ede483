//! Commands on the server itself.

use super::command::{COMMANDS, Command, Kind, no_subcommand};
use super::context::{Context, Done, SYNTAX};
use super::help::help;
use super::parse::Args;
use super::{VERSION, glob};
use crate::counters;
use std::fmt::Write;

pub fn ping(context: &mut Context<'_>, args: Args<'_>) -> Done {
    match args.len() {
        1 => context.reply.simple("PONG"),
        2 => context.reply.bulk(args.get(1)),
        _ => return Err("ERR wrong number of arguments for 'ping' command".into()),
    }
    Ok(())
}

pub fn echo(context: &mut Context<'_>, args: Args<'_>) -> Done {
    context.reply.bulk(args.get(1));
    Ok(())
}

pub fn time(context: &mut Context<'_>, _: Args<'_>) -> Done {
    context.reply.array(2);
    context.reply.bulk((context.now / 1000).to_string().as_bytes());
    context
        .reply
        .bulk((context.now % 1000 * 1000).to_string().as_bytes());
    Ok(())
}

/// The sections of `INFO`, in its order.
const SECTIONS: &[&str] = &[
    "server",
    "clients",
    "memory",
    "persistence",
    "stats",
    "replication",
    "cpu",
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
        let title = section[..1].to_ascii_uppercase() + &section[1..];
        // Writing into memory does not fail.
        let _ = write!(text, "# {title}\r\n");
        for (name, value) in lines(context, section) {
            let _ = write!(text, "{name}:{value}\r\n");
        }
    }
    context.reply.verbatim(&text);
    Ok(())
}

fn lines(context: &Context<'_>, section: &str) -> Vec<(String, String)> {
    let shared = context.shared();
    let sums = counters::sums(shared.workers.iter());
    let sum = |wanted: counters::Counter| sums[wanted as usize].1.to_string();
    let memory = shared.databases.memory();
    let uptime = shared.started.elapsed().as_secs();
    let line = |name: &str, value: &dyn std::fmt::Display| (name.to_owned(), value.to_string());
    match section {
        "server" => vec![
            line("redis_version", &VERSION),
            line("redis_mode", &"standalone"),
            line("wollemi_version", &env!("CARGO_PKG_VERSION")),
            line("os", &std::env::consts::OS),
            line("arch_bits", &usize::BITS),
            line("process_id", &std::process::id()),
            line("uptime_in_seconds", &uptime),
            line("uptime_in_days", &(uptime / 86400)),
            line("io_threads_active", &shared.workers.len()),
        ],
        "clients" => vec![
            line("connected_clients", &shared.clients.count()),
            line("maxclients", &shared.limits.connections()),
        ],
        "memory" => vec![
            line("used_memory", &memory.used()),
            line("maxmemory", &memory.limit()),
            line("maxmemory_policy", &super::config::policy(memory.evicts())),
        ],
        "persistence" => {
            let more = shared.config.more_stats.as_ref();
            let more = more.map_or_else(Vec::new, |more| more());
            let backups = super::backup::lines(context);
            [line("loading", &0)]
                .into_iter()
                .chain(backups)
                .chain(more)
                .collect()
        }
        "stats" => vec![
            line("total_connections_received", &sum(counters::Counter::Connections)),
            line("total_commands_processed", &sum(counters::Counter::Commands)),
            line("total_net_input_bytes", &sum(counters::Counter::BytesRead)),
            line("total_net_output_bytes", &sum(counters::Counter::BytesWritten)),
            line(
                "rejected_connections",
                &shared.rejected.load(std::sync::atomic::Ordering::Relaxed),
            ),
            line("keyspace_hits", &sum(counters::Counter::GetHits)),
            line("keyspace_misses", &sum(counters::Counter::GetMisses)),
            line("evicted_keys", &memory.evicted()),
        ],
        "replication" => vec![line("role", &"master"), line("connected_slaves", &0)],
        "cpu" => vec![line("threads", &shared.workers.len())],
        _ => {
            let stores = shared.databases.all().into_iter();
            let counted = stores.map(|(number, store)| (number, store.items().0));
            counted
                .filter(|&(_, items)| items > 0)
                .map(|(number, items)| {
                    line(
                        &format!("db{number}"),
                        &format_args!("keys={items},expires=0,avg_ttl=0"),
                    )
                })
                .collect()
        }
    }
}

pub fn command(context: &mut Context<'_>, args: Args<'_>) -> Done {
    let reply = &mut context.reply;
    match (args.get(1).to_ascii_lowercase().as_slice(), args.len()) {
        (_, 1) => {
            reply.array(COMMANDS.len());
            COMMANDS.iter().for_each(|command| describe(context, command));
        }
        (b"count", 2) => reply.int(COMMANDS.len() as i64),
        (b"list", 2) => {
            reply.set(COMMANDS.len());
            COMMANDS
                .iter()
                .for_each(|command| reply.bulk(command.name.as_bytes()));
        }
        (b"list", 5) if args.get(2).eq_ignore_ascii_case(b"filterby") => {
            let pattern = args.get(4).to_ascii_lowercase();
            let fits = |command: &&Command| glob::fits(&pattern, command.name.as_bytes());
            reply.set(COMMANDS.iter().filter(fits).count());
            COMMANDS
                .iter()
                .filter(fits)
                .for_each(|command| reply.bulk(command.name.as_bytes()));
        }
        (b"info", 2) => {
            reply.array(COMMANDS.len());
            COMMANDS.iter().for_each(|command| describe(context, command));
        }
        (b"info", _) => {
            reply.array(args.len() - 2);
            for name in args.from(2) {
                match super::command::find(name) {
                    Some(command) => describe(context, command),
                    None => context.reply.null_array(),
                }
            }
        }
        (b"list", _) => return Err(SYNTAX.into()),
        (b"help", _) => return help(context, "command"),
        (b"docs", _) => {
            let named = |command: &&Command| {
                args.len() == 2
                    || args
                        .from(2)
                        .any(|name| name.eq_ignore_ascii_case(command.name.as_bytes()))
            };
            reply.map(COMMANDS.iter().filter(named).count());
            for command in COMMANDS.iter().filter(named) {
                reply.bulk(command.name.as_bytes());
                reply.map(2);
                for text in ["summary", command.about, "group", group(command)] {
                    reply.bulk(text.as_bytes());
                }
            }
        }
        _ => return Err(no_subcommand("command", args)),
    }
    Ok(())
}

fn group(command: &Command) -> &'static str {
    match command.kind {
        Kind::Neither => "connection",
        _ if command.keys == (0, 0, 0) => "generic",
        _ => "string",
    }
}

fn describe(context: &mut Context<'_>, command: &Command) {
    let reply = &mut context.reply;
    reply.array(10);
    reply.bulk(command.name.as_bytes());
    reply.int(command.arity);
    let flag = match command.kind {
        Kind::Neither => "fast",
        Kind::Read => "readonly",
        Kind::Write | Kind::Alone => "write",
    };
    reply.set(1);
    reply.simple(flag);
    let (first, last, step) = command.keys;
    [first, last, step].into_iter().for_each(|place| reply.int(place));
    // Categories of ACLs, hints, places of keys beyond the first, and subcommands are not told.
    reply.set(0);
    (0..3).for_each(|_| reply.array(0));
}
