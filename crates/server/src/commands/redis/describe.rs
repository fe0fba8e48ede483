//! `COMMAND`: describes the commands, and finds the keys among their arguments.

use super::catalogue::{COMMANDS, find};
use super::command::{Command, Kind, takes};
use super::context::Context;
use super::error::{Done, SYNTAX, Wrong};
use super::glob::Pattern;
use super::help::help;
use super::syntax;
use crate::proto::redis::args::Args;
use crate::proto::redis::reply::Reply;
use std::collections::BTreeSet;

/// `COMMAND` and its subcommands.
pub fn command(context: &mut Context<'_>, args: Args<'_>) -> Done {
    let reply = &mut context.reply;
    match (args.get(1).to_ascii_lowercase().as_slice(), args.len()) {
        (_, 1) => {
            reply.array(COMMANDS.len());
            COMMANDS.iter().for_each(|command| describe(context, command));
        }
        (b"count", 2) => reply.int(COMMANDS.len() as i64),
        (b"list", 2) => {
            reply.array(COMMANDS.len());
            COMMANDS
                .iter()
                .for_each(|command| reply.bulk(command.name.as_bytes()));
        }
        (b"list", 5) if args.get(2).eq_ignore_ascii_case(b"filterby") => {
            let pattern = Pattern::new(&args.get(4).to_ascii_lowercase());
            let by_pattern = match args.get(3).to_ascii_lowercase().as_slice() {
                b"pattern" => true,
                b"module" => false, // There are none.
                _ => return Err(SYNTAX.into()),
            };
            let names = COMMANDS.iter().flat_map(names);
            let fitting: Vec<_> = names
                .filter(|name| by_pattern && pattern.matches(name.as_bytes()))
                .collect();
            reply.array(fitting.len());
            fitting.iter().for_each(|name| reply.bulk(name.as_bytes()));
        }
        (b"info", 2) => {
            reply.array(COMMANDS.len());
            COMMANDS.iter().for_each(|command| describe(context, command));
        }
        (b"info", _) => {
            reply.array(args.len() - 2);
            let begin = context.reply.out.len();
            for name in args.from(2) {
                match find(name) {
                    Some(command) => describe(context, command),
                    None => context.reply.null(),
                }
                context.bounded(begin)?;
            }
        }
        (b"list", _) => return Err(SYNTAX.into()),
        (b"getkeys", _) => return keys(context, args.behind(2)),
        (b"help", _) => return help(context, "command"),
        (b"docs", _) => docs(reply, args),
        _ => return Err(Wrong::no_subcommand("command", args)),
    }
    Ok(())
}

/// `COMMAND DOCS`: replies the documentation of the named commands, or of all.
fn docs(reply: &mut Reply<'_>, args: Args<'_>) {
    let named: BTreeSet<_> = match args.len() {
        2 => COMMANDS.iter().map(|command| command.name).collect(),
        _ => args
            .from(2)
            .filter_map(find)
            .map(|command| command.name)
            .collect(),
    };
    reply.map(named.len());
    for command in COMMANDS.iter().filter(|command| named.contains(command.name)) {
        reply.bulk(command.name.as_bytes());
        let args = syntax::of(command.name);
        reply.map(2 + usize::from(!args.is_empty()));
        for text in ["summary", command.about, "group", command.group] {
            reply.bulk(text.as_bytes());
        }
        if !args.is_empty() {
            reply.bulk(b"arguments");
            syntax::describe(reply, args);
        }
    }
}

/// Returns the names of a command and of its subcommands.
fn names(command: &Command) -> impl Iterator<Item = String> {
    let of_subcommand = move |(word, _): &(&str, i64)| format!("{}|{word}", command.name);
    std::iter::once(command.name.to_owned()).chain(command.subcommands.iter().map(of_subcommand))
}

/// `COMMAND GETKEYS`: replies the keys of a command without carrying it out.
fn keys(context: &mut Context<'_>, args: Args<'_>) -> Done {
    let command = find(args.get(0)).ok_or("ERR Invalid command specified")?;
    if command.keys.0 == 0 {
        return Err("ERR The command has no key arguments".into());
    }
    if !takes(command.arity, args.len()) {
        return Err("ERR Invalid number of arguments specified for command".into());
    }
    context.reply.array(command.keys(args).count());
    command.keys(args).for_each(|key| context.reply.bulk(key));
    Ok(())
}

/// Replies the description of a command.
fn describe(context: &mut Context<'_>, command: &Command) {
    let reply = &mut context.reply;
    head(reply, command.name, command.arity, command.kind, command.keys);
    match command.subcommands.len() {
        0 => reply.set(0),
        count => reply.array(count),
    }
    for (word, arity) in command.subcommands {
        head(
            reply,
            &format!("{}|{word}", command.name),
            *arity,
            Kind::Neither,
            (0, 0, 0),
        );
        reply.set(0);
    }
}

/// Replies a description up to its subcommands.
fn head(reply: &mut Reply<'_>, name: &str, arity: i64, kind: Kind, (first, last, step): (i64, i64, i64)) {
    reply.array(10);
    reply.bulk(name.as_bytes());
    reply.int(arity);
    let flag = match kind {
        Kind::Neither => "fast",
        Kind::Read => "readonly",
        Kind::Write | Kind::Alone => "write",
    };
    reply.set(1);
    reply.simple(flag);
    [first, last, step].into_iter().for_each(|place| reply.int(place));
    // Categories of ACLs, hints and further key positions are left out.
    (0..3).for_each(|_| reply.set(0));
}
