//! `MULTI`, `EXEC`, `DISCARD`, `WATCH`, `UNWATCH`.
//!
//! I1 Between two commands of an `EXEC` no other command reads or writes items: the `EXEC` has exclusive use of the
//!    databases.
//! I2 The commands of an `EXEC` change no item before it commits; the commit makes all their changes together. They see
//!    each other's changes (`store::pending`).

use super::catalogue::COMMANDS;
use super::context::{Context, is_name};
use super::error::{Done, Wrong};
use super::state::queue::Queue;
use crate::proto::redis::args::Args;

pub fn multi(context: &mut Context<'_>, _: Args<'_>) -> Done {
    if context.state.queue.is_some() {
        return Err("ERR MULTI calls can not be nested".into());
    }
    context.state.queue = Some(Queue::new(context.client.clone()));
    context.reply.ok();
    Ok(())
}

pub fn discard(context: &mut Context<'_>, _: Args<'_>) -> Done {
    context.state.queue.take().ok_or("ERR DISCARD without MULTI")?;
    context.state.watched.clear();
    context.reply.ok();
    Ok(())
}

pub fn watch(context: &mut Context<'_>, args: Args<'_>) -> Done {
    if context.state.queue.is_some() {
        return Err("ERR WATCH inside MULTI is not allowed".into());
    }
    let store = context.state.store.clone();
    for key in args.from(1) {
        let watched = &mut context.state.watched;
        // The first look at a key counts, and an invalid key is always absent.
        if watched.has(&store, key) || !is_name(key) {
            continue;
        }
        if !watched.takes(key) {
            return Err("ERR too many keys are watched".into());
        }
        watched.add(&store, key, store.watch_key(key, context.now)?);
    }
    context.reply.ok();
    Ok(())
}

pub fn unwatch(context: &mut Context<'_>, _: Args<'_>) -> Done {
    context.state.watched.clear();
    context.reply.ok();
    Ok(())
}

/// Returns an upper bound on the bytes by which `EXEC` may grow items; zero if it will be refused. The caller has
/// exclusive use.
pub fn growth(context: &Context<'_>) -> u64 {
    let Some(queue) = context.state.queue.as_ref().filter(|queue| !queue.is_refused()) else {
        return 0;
    };
    let each = queue.commands().iter();
    let each = each.map(|(number, kept)| COMMANDS[*number].growth(kept.args()));
    let growth = each.fold(0, u64::saturating_add);
    match have_changed(context) {
        Ok(false) => growth,
        // `EXEC` looks again, and replies what it finds.
        Ok(true) | Err(_) => 0,
    }
}

/// Carries out the queued commands, each by `run`, which is given its number. The caller has exclusive use.
pub fn exec(context: &mut Context<'_>, run: impl Fn(&mut Context<'_>, usize, Args<'_>)) -> Done {
    let queue = context.state.queue.take().ok_or("ERR EXEC without MULTI")?;
    let changed = have_changed(context);
    context.state.watched.clear();
    if queue.is_refused() {
        return Err("EXECABORT Transaction discarded because of previous errors.".into());
    }
    if changed? {
        context.reply.null_array();
        return Ok(());
    }
    context.reply.array(queue.commands().len());
    let begin = context.reply.out.len();
    context.state.executing = true;
    let done = queue.commands().iter().try_for_each(|(number, kept)| {
        run(context, *number, kept.args());
        // If the reply is too long, the `EXEC` fails, and the commands' changes are not committed.
        context.bounded(begin)
    });
    context.state.executing = false;
    done
}

/// Returns whether a watched key has changed.
fn have_changed(context: &Context<'_>) -> Result<bool, Wrong> {
    Ok(context.state.watched.have_changed(context.now)?)
}
