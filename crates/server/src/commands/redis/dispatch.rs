//! Commands as they arrive: looked up, checked, queued or carried out.

use super::catalogue::{ALL, COMMANDS, Command, Kind, find};
use super::context::{self, Context, Done, Wrong};
use super::parse::Args;
use super::state::walk::Walk;
use super::transaction;
use crate::items::databases::NotMade;
use crate::items::item::HEADER;
use crate::items::item::PLACE;
use crate::items::number;
use crate::ops::config::LARGEST_VALUE;
use crate::proto::http::{is_http, note_hangup};

/// The bytes of the longest number that counting makes.
const NUMBER: u64 = 48;

/// The error for a subcommand that does not exist.
pub fn no_subcommand(command: &str, args: Args<'_>) -> Wrong {
    let word = args.get(1);
    let behind = format!("'. Try {} HELP.", command.to_ascii_uppercase());
    Wrong::with("ERR unknown subcommand '", &word[..word.len().min(128)], &behind)
}

/// The number of a command, or of the subcommand that it is: these come behind all commands.
fn number_of(command: &Command, args: Args<'_>) -> Result<usize, Wrong> {
    if command.subcommands.is_empty() || args.len() < 2 {
        return Ok(command.number);
    }
    let mut numbered = (command.first_subcommand..).zip(command.subcommands);
    let named = numbered.find(|(_, (word, _))| args.get(1).eq_ignore_ascii_case(word.as_bytes()));
    let (number, (word, arity)) = named.ok_or_else(|| no_subcommand(command.name, args))?;
    match takes(*arity, args.len()) {
        true => Ok(number),
        false => {
            let name = command.name;
            Err(Wrong::from(format!(
                "ERR wrong number of arguments for '{name}|{word}' command"
            )))
        }
    }
}

/// What the command or subcommand of this number is called.
pub fn full_name(number: usize) -> String {
    if let Some(command) = COMMANDS.get(number) {
        return command.name.to_owned();
    }
    let named = COMMANDS.iter().find_map(|command| {
        let (word, _) = command
            .subcommands
            .get(number.checked_sub(command.first_subcommand)?)?;
        Some(format!("{}|{word}", command.name))
    });
    named.unwrap_or_default()
}

/// Whether a command of this arity takes this many words.
pub fn takes(arity: i64, words: usize) -> bool {
    let words = words as i64;
    match arity {
        least @ ..0 => words >= -least,
        exact => words == exact,
    }
}

impl Command {
    /// The keys among its arguments.
    pub fn keys<'a>(&self, args: Args<'a>) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (first, last, step) = self.keys;
        let last = if last < 0 { args.len() as i64 + last } else { last };
        let count = if first == 0 {
            0
        } else {
            (last - first + step) / step
        };
        args.from(first.max(1) as usize)
            .step_by(step.max(1) as usize)
            .take(count.max(0) as usize)
    }

    /// Upper bound on the bytes by which it may grow items.
    pub fn growth(&self, args: Args<'_>) -> u64 {
        let grows = matches!(
            self.name,
            "append"
                | "decr"
                | "decrby"
                | "getset"
                | "incr"
                | "incrby"
                | "incrbyfloat"
                | "mset"
                | "msetnx"
                | "psetex"
                | "rename"
                | "renamenx"
                | "set"
                | "setex"
                | "setnx"
                | "setrange"
        );
        if !grows {
            return 0;
        }
        let words = args.from(1).map(|word| word.len() as u64).sum::<u64>();
        let items = self.keys(args).count() as u64 * (PLACE + HEADER as u64 + NUMBER);
        // Zeros between the old end and the offset written to.
        let gap = match self.name {
            "setrange" => number::strict(args.get(2)).map_or(0, |offset| offset.unsigned_abs()),
            _ => 0,
        };
        (words + items).saturating_add(gap.min(LARGEST_VALUE as u64))
    }

    /// Whether it is carried out at once between `MULTI` and `EXEC`.
    fn is_not_queued(&self) -> bool {
        matches!(
            self.name,
            "exec" | "discard" | "multi" | "watch" | "quit" | "reset"
        )
    }

    fn needs_no_name(&self) -> bool {
        matches!(self.name, "auth" | "hello" | "quit" | "reset")
    }
}

/// Carries out a command that has just arrived, or queues it.
pub fn arrived(context: &mut Context<'_>, args: Args<'_>) {
    match check(context, args) {
        Err(_) if is_no_command(args) && is_http(args.from(0)) => {
            note_hangup(context.worker, context.client);
            context.state.closing = true;
        }
        Ok((command, number)) => {
            context.client.note_command(number);
            if let Some(queue) = context.state.queue.as_mut().filter(|_| !command.is_not_queued()) {
                match queue.push(command, args) {
                    Ok(()) => context.reply.simple("QUEUED"),
                    Err(Wrong(text)) => context.reply.error(&text),
                }
                return;
            }
            let shared = &context.worker.shared;
            // A lone key is one edit: other clients need not be kept away.
            let alone = command.kind == Kind::Alone && (args.len() != 2 || command.keys != ALL);
            let _alone;
            let _shared;
            if alone {
                _alone = shared.databases.alone();
            } else {
                _shared = shared.databases.shared();
            }
            let growth = match command.name {
                _ if shared.databases.memory().limit() == 0 => 0,
                "exec" => transaction::growth(context),
                _ => command.growth(args),
            };
            let _room = match shared.databases.room(growth, context.now) {
                Ok(room) => room,
                Err(failure) => return refuse(context, command, failure.into()),
            };
            match alone {
                true => transact(context, command, args),
                false => drop(run(context, command, args)),
            }
            done_for_now(context, command, args);
        }
        Err(wrong) => match find(args.get(0)) {
            // What is wrong with it ends the transaction.
            Some(command) if command.name == "exec" => refuse(context, command, wrong),
            _ => {
                if let Some(queue) = &mut context.state.queue {
                    queue.refuse();
                }
                context.reply.error(&wrong.0);
            }
        },
    }
}

/// Goes on with a walk of the command that came last, which had a turn before.
pub fn walks_on(context: &mut Context<'_>, args: Args<'_>, walk: Walk) {
    let Some(command) = find(args.get(0)) else {
        return;
    };
    let _shared = context.worker.shared.databases.shared();
    run_with(context, |context| walk.go_on(context));
    done_for_now(context, command, args);
}

/// Notes what a command has taken; or, of one that goes on in another turn, what it has so far.
fn done_for_now(context: &mut Context<'_>, command: &Command, args: Args<'_>) {
    match context.state.walk {
        Some(_) => context.state.walked += context.worker.lap(),
        None => context.timed(command, args),
    }
}

/// Whether no command of this name takes this many words.
fn is_no_command(args: Args<'_>) -> bool {
    find(args.get(0)).is_none_or(|command| !takes(command.arity, args.len()))
}

/// The command that was sent, and its number, if it may be carried out.
fn check(context: &Context<'_>, args: Args<'_>) -> Result<(&'static Command, usize), Wrong> {
    let command = find(args.get(0)).ok_or_else(|| unknown(args))?;
    if !takes(command.arity, args.len()) {
        let name = command.name;
        return Err(Wrong::from(format!(
            "ERR wrong number of arguments for '{name}' command"
        )));
    }
    let number = number_of(command, args)?;
    if !context.state.known && !command.needs_no_name() {
        return Err("NOAUTH Authentication required.".into());
    }
    if command.name == "save" && context.state.queue.is_some() {
        return Err("ERR Command not allowed inside a transaction".into());
    }
    let writes = matches!(command.kind, Kind::Write | Kind::Alone);
    if writes && command.keys(args).any(<[u8]>::is_empty) {
        return Err("ERR the empty key is the server's own".into());
    }
    Ok((command, number))
}

fn unknown(args: Args<'_>) -> Wrong {
    const MAX: usize = 128;
    let shown = |word: &'_ [u8], max: usize| context::as_text(&word[..word.len().min(max)]).to_vec();
    let mut words = Vec::new();
    for arg in args.from(1) {
        if words.len() >= MAX {
            break;
        }
        words.extend([b"'", &shown(arg, MAX - words.len())[..], b"' "].concat());
    }
    let name = shown(args.get(0), MAX);
    let (before, amid): (&[u8], &[u8]) = (b"ERR unknown command '", b"', with args beginning with: ");
    Wrong([before, &name, amid, &words].concat())
}

/// Refuses a command, for which there is no room, say.
fn refuse(context: &mut Context<'_>, command: &Command, Wrong(text): Wrong) {
    if command.name == "exec" {
        context.state.queue = None;
        context.state.watched.clear();
        let text = text.strip_prefix(b"ERR ").unwrap_or(&text);
        let before: &[u8] = b"EXECABORT Transaction discarded because of: ";
        context.reply.error([before, text].concat());
    } else {
        context.reply.error(&text);
    }
}

/// Carries out a command wholly or not at all. The caller keeps all other commands away.
fn transact(context: &mut Context<'_>, command: &Command, args: Args<'_>) {
    let shared = context.worker.shared.clone();
    let begin = context.reply.out.len();
    let selected = (context.state.store.clone(), context.state.db);
    let transaction = shared.databases.begin();
    let done = run(context, command, args);
    let committed = match done {
        true => transaction.commit(),
        false => {
            drop(transaction);
            Ok(())
        }
    };
    let failed = match committed {
        Ok(()) if done => return,
        Ok(()) => None,
        Err(NotMade::Refused(why)) => Some(format!("ERR {why}")),
        Err(NotMade::NotLogged(why)) => Some(context::misconf(&why)),
        Err(NotMade::NotDurable(why)) => {
            context.reply.out.truncate(begin);
            return context.reply.error(context::misconf(&why));
        }
        // The replies of its commands stand for what is committed, but reads do not show all of it yet.
        Err(NotMade::Unfinished(why)) => {
            context.reply.out.truncate(begin);
            return context.reply.error(format!("UNFINISHED {why}"));
        }
    };
    // A database that it has selected is taken back, too.
    (context.state.store, context.state.db) = selected;
    let db = context.state.db;
    context.client.know(|known| known.db = db);
    if let Some(text) = failed {
        context.reply.out.truncate(begin);
        context.reply.error(&text);
    }
}

/// Carries out a command; whether it could be.
pub fn run(context: &mut Context<'_>, command: &Command, args: Args<'_>) -> bool {
    run_with(context, |context| (command.run)(context, args))
}

fn run_with(context: &mut Context<'_>, run: impl FnOnce(&mut Context<'_>) -> Done) -> bool {
    let begin = context.reply.out.len();
    let ticked = context.state.store.tick(context.now).map_err(Wrong::from);
    let done = ticked.and_then(|()| run(context));
    if let Err(Wrong(text)) = &done {
        context.reply.out.truncate(begin);
        context.reply.error(text);
    }
    done.is_ok()
}
