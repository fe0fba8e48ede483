//! `MULTI`, `EXEC`, `DISCARD`, `WATCH`, `UNWATCH`.
//!
//! I1 Between two commands of an `EXEC` no other command runs: it holds the databases' gate.
//! I2 A watched key has changed if its item's unique has, or if it has come or gone, or both (`store::seen`): every
//!    change of an item by a Redis command gives it a new unique, and no unique is given twice.
//!
//! I3 The commands of an `EXEC` change nothing before it is committed, which makes all their changes durable at once;
//!    they see each other's changes (`store::pending`).

use super::command;
use super::context::{Context, Done, Wrong, is_name};
use super::parse::{Args, Kept};
use super::table::Command;
use crate::freed;
use crate::items::store::{Seen, Store};
use crate::net::clients::Client;
use std::collections::HashSet;
use std::sync::Arc;

/// Maximum number of bytes that wait between `MULTI` and `EXEC`.
const MAX: usize = 64 << 20;

/// The commands between `MULTI` and `EXEC`. While there is one, others see so.
pub struct Queue {
    client: Arc<Client>,
    commands: Vec<(&'static Command, Kept)>,
    size: usize,
    /// Whether one was refused, so that none will be carried out.
    refused: bool,
}

impl Queue {
    fn new(client: Arc<Client>) -> Queue {
        client.know(|known| known.queued = Some(0));
        Queue {
            client,
            commands: Vec::new(),
            size: 0,
            refused: false,
        }
    }

    /// Notes that a command was refused.
    pub fn refuse(&mut self) {
        self.refused = true;
    }

    /// Upper bound on the bytes by which these commands may grow items.
    fn growth(&self) -> u64 {
        let each = self
            .commands
            .iter()
            .map(|(command, kept)| command.growth(kept.args()));
        each.fold(0, u64::saturating_add)
    }

    /// Keeps a command for `EXEC`.
    pub fn push(&mut self, command: &'static Command, args: Args<'_>) -> Done {
        let kept = Kept::new(args);
        if self.size + kept.size() > MAX {
            self.refused = true;
            return Err("ERR too much is queued".into());
        }
        self.size += kept.size();
        self.commands.push((command, kept));
        self.client.know(|known| known.queued = Some(self.commands.len()));
        Ok(())
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.client.know(|known| known.queued = None);
        freed::note(self.size);
    }
}

/// A watched key, as it was.
pub struct Watched {
    store: Arc<Store>,
    key: Vec<u8>,
    seen: Seen,
}

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

/// Maximum number of keys that a connection may watch.
const MAX_WATCHED: usize = 1 << 16;
/// Maximum number of bytes of keys that a connection may watch.
const MAX_WATCHED_BYTES: usize = 16 << 20;

pub fn watch(context: &mut Context<'_>, args: Args<'_>) -> Done {
    if context.state.queue.is_some() {
        return Err("ERR WATCH inside MULTI is not allowed".into());
    }
    let store = context.state.store.clone();
    let old = context.state.watched.iter();
    let mut bytes: usize = old.clone().map(|old| old.key.len()).sum();
    let here = old.filter(|old| Arc::ptr_eq(&old.store, &store));
    let mut known: HashSet<Vec<u8>> = here.map(|old| old.key.clone()).collect();
    for key in args.from(1) {
        // The first look at a key counts, and an invalid key is always absent.
        if known.contains(key) || !is_name(key) {
            continue;
        }
        bytes += key.len();
        if context.state.watched.len() >= MAX_WATCHED || bytes > MAX_WATCHED_BYTES {
            return Err("ERR too many keys are watched".into());
        }
        known.insert(key.to_vec());
        let seen = store.see(key, context.now)?;
        context.state.watched.push(Watched {
            store: store.clone(),
            key: key.to_vec(),
            seen,
        });
    }
    context.reply.ok();
    Ok(())
}

pub fn unwatch(context: &mut Context<'_>, _: Args<'_>) -> Done {
    context.state.watched.clear();
    context.reply.ok();
    Ok(())
}

/// Upper bound on the bytes by which `EXEC` may grow items; zero where it will be refused. The caller has exclusive
/// use.
pub fn growth(context: &Context<'_>) -> u64 {
    let Some(queue) = context.state.queue.as_ref().filter(|queue| !queue.refused) else {
        return 0;
    };
    let growth = queue.growth();
    match changed(context) {
        Ok(false) => growth,
        // `EXEC` looks again, and says so.
        Ok(true) | Err(_) => 0,
    }
}

/// Runs the queued commands. The caller has exclusive use.
pub fn exec(context: &mut Context<'_>, _: Args<'_>) -> Done {
    let queue = context.state.queue.take().ok_or("ERR EXEC without MULTI")?;
    let changed = changed(context);
    context.state.watched.clear();
    if queue.refused {
        return Err("EXECABORT Transaction discarded because of previous errors.".into());
    }
    if changed? {
        context.reply.null_array();
        return Ok(());
    }
    context.reply.array(queue.commands.len());
    let begin = context.reply.out.len();
    context.state.executing = true;
    let done = queue.commands.iter().try_for_each(|(command, kept)| {
        command::run(context, command, kept.args());
        // A reply that is too long to be given takes back what was carried out.
        context.bounded(begin)
    });
    context.state.executing = false;
    done
}

/// Whether a watched key is not as it was.
fn changed(context: &Context<'_>) -> Result<bool, Wrong> {
    for Watched { store, key, seen } in &context.state.watched {
        if !store.is_as_seen(key, *seen, context.now)? {
            return Ok(true);
        }
    }
    Ok(false)
}
