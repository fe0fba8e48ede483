//! Commands as they arrive: found, checked, and queued or carried out.

use super::super::http::note_hangup;
use super::catalogue::{ALL, find, number_of};
use super::command::{Command, Kind, takes};
use super::context::Context;
use super::error::{Wrong, as_text, misconf};
use super::state::walk::Walk;
use super::{table, transaction};
use crate::items::databases::NotMade;
use crate::proto::http::is_http;
use crate::proto::redis::args::Args;

/// Carries out a command that has just arrived, or queues it.
pub fn arrived(context: &mut Context<'_>, args: Args<'_>) {
    match check(context, args) {
        Ok((command, number)) => {
            context.client.note_command(number);
            let queue = context.state.queue.as_mut();
            match queue.filter(|_| !command.is_not_queued()) {
                Some(queue) => match queue.push(command.number, args) {
                    Ok(()) => context.reply.simple("QUEUED"),
                    Err(why) => context.reply.error(why),
                },
                None => carry_out(context, command, args),
            }
        }
        Err(_) if is_no_command(args) && is_http(args.from(0)) => {
            note_hangup(context.worker, context.client);
            context.state.closing = true;
        }
        Err(wrong) => match find(args.get(0)) {
            // A wrong `EXEC` ends the transaction.
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

/// Carries out a command once the databases' gate lets it pass and there is room for it.
fn carry_out(context: &mut Context<'_>, command: &Command, args: Args<'_>) {
    let shared = &context.worker.shared;
    // With a single key the command is one edit: it need not exclude other clients.
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
        false => drop(table::run(context, command.number, args)),
    }
    record_time(context, command, args);
}

/// Takes a further turn of the walk of the last command.
pub fn continue_walk(context: &mut Context<'_>, args: Args<'_>, walk: Walk) {
    let Some(command) = find(args.get(0)) else {
        return;
    };
    let _shared = context.worker.shared.databases.shared();
    context.attempt(|context| context.walk(walk));
    record_time(context, command, args);
}

/// Records the duration of a command; if the command continues in another turn, only adds up its time so far.
fn record_time(context: &mut Context<'_>, command: &Command, args: Args<'_>) {
    match context.state.walk {
        Some(_) => context.state.walked += context.worker.lap(),
        None => context.timed(command, args),
    }
}

/// Returns whether no command of this name takes this many words.
fn is_no_command(args: Args<'_>) -> bool {
    find(args.get(0)).is_none_or(|command| !takes(command.arity, args.len()))
}

/// Returns the command that was sent, and the number of the command or subcommand, if it may be carried out.
fn check(context: &Context<'_>, args: Args<'_>) -> Result<(&'static Command, usize), Wrong> {
    let command = find(args.get(0)).ok_or_else(|| unknown(args))?;
    if !takes(command.arity, args.len()) {
        return Err(Wrong::arity(command.name));
    }
    let number = number_of(command, args)?;
    if !context.state.known && !command.needs_no_login() {
        return Err("NOAUTH Authentication required.".into());
    }
    if command.name == "save" && context.state.queue.is_some() {
        return Err("ERR Command not allowed inside a transaction".into());
    }
    let writes = matches!(command.kind, Kind::Write | Kind::Alone);
    if writes && command.keys(args).any(<[u8]>::is_empty) {
        return Err("ERR the empty key is reserved for the server".into());
    }
    Ok((command, number))
}

/// Returns the error for a command that does not exist.
fn unknown(args: Args<'_>) -> Wrong {
    const MAX: usize = 128;
    let shown = |word: &'_ [u8], max: usize| as_text(&word[..word.len().min(max)]).to_vec();
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

/// Refuses a command, for example if there is no room for it. A refused `EXEC` ends its transaction.
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

/// Carries out a command as one transaction. The caller has exclusive use.
fn transact(context: &mut Context<'_>, command: &Command, args: Args<'_>) {
    let shared = context.worker.shared.clone();
    let begin = context.reply.out.len();
    let before = (context.state.store.clone(), context.client.known());
    let transaction = shared.databases.begin();
    let done = table::run(context, command.number, args);
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
        Err(NotMade::NotLogged(why)) => Some(misconf(&why)),
        Err(NotMade::NotDurable(why)) => {
            context.reply.out.truncate(begin);
            return context.reply.error(misconf(&why));
        }
        // All of it is committed, but reads do not show all of it yet.
        Err(NotMade::Unfinished(why)) => {
            context.reply.out.truncate(begin);
            return context.reply.error(format!("UNFINISHED {why}"));
        }
    };
    // `SELECT`, `HELLO`, `AUTH` and `CLIENT SETNAME` in the transaction are undone, too. Its queue is gone.
    let (store, mut known) = before;
    known.queued = None;
    (context.state.store, context.state.db, context.state.resp3) = (store, known.db, known.resp3);
    context.client.know(|now| *now = known);
    if let Some(text) = failed {
        context.reply.out.truncate(begin);
        context.reply.error(&text);
    }
}
