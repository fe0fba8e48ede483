//! `MULTI`, `EXEC`, `DISCARD`, `WATCH`, `UNWATCH`.
//!
//! I1 Between two commands of an `EXEC` no other command runs: it holds the databases' gate.
//! I2 A watched key has changed if its item's unique has, or if it has come or gone, or both (`store::seen`): every
//!    change of an item by a Redis command gives it a new unique, and no unique is given twice.
//!
//! I3 The commands of an `EXEC` change nothing before it is committed, which makes all their changes durable at once;
//!    they see each other's changes (`store::pending`).

use super::catalogue::Command;
use super::context::{Context, Done, Wrong, is_name};
use super::dispatch;
use super::parse::{Args, Kept};
use crate::freed;
use crate::items::store::{Seen, Store};
use crate::net::clients::Client;
use std::collections::HashMap;
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

/// Keys, and what was seen of each.
type SeenKeys = HashMap<Vec<u8>, Seen>;

/// The keys that a connection watches, as they were.
#[derive(Default)]
pub struct Watches {
    /// By the database that they are in.
    stores: Vec<(Arc<Store>, SeenKeys)>,
    count: usize,
    /// Of all keys.
    bytes: usize,
}

impl Watches {
    /// No key is watched any longer.
    pub fn clear(&mut self) {
        freed::note(self.bytes);
        *self = Watches::default();
    }

    fn has(&self, store: &Arc<Store>, key: &[u8]) -> bool {
        let mut stores = self.stores.iter();
        stores.any(|(its, keys)| Arc::ptr_eq(its, store) && keys.contains_key(key))
    }

    /// Whether one more key may be watched.
    fn takes(&self, key: &[u8]) -> bool {
        self.count < MAX_WATCHED && self.bytes + key.len() <= MAX_WATCHED_BYTES
    }

    /// Watches a key that is not watched yet.
    fn add(&mut self, store: &Arc<Store>, key: &[u8], seen: Seen) {
        let place = self.stores.iter().position(|(its, _)| Arc::ptr_eq(its, store));
        let place = place.unwrap_or_else(|| {
            self.stores.push((store.clone(), SeenKeys::new()));
            self.stores.len() - 1
        });
        self.stores[place].1.insert(key.to_vec(), seen);
        self.count += 1;
        self.bytes += key.len();
    }
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
    for key in args.from(1) {
        let watched = &mut context.state.watched;
        // The first look at a key counts, and an invalid key is always absent.
        if watched.has(&store, key) || !is_name(key) {
            continue;
        }
        if !watched.takes(key) {
            return Err("ERR too many keys are watched".into());
        }
        watched.add(&store, key, store.see(key, context.now)?);
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
        dispatch::run(context, command, kept.args());
        // A reply that is too long to be given takes back what was carried out.
        context.bounded(begin)
    });
    context.state.executing = false;
    done
}

/// Whether a watched key is not as it was.
fn changed(context: &Context<'_>) -> Result<bool, Wrong> {
    for (store, keys) in &context.state.watched.stores {
        for (key, seen) in keys {
            if !store.is_as_seen(key, *seen, context.now)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::items::store::tests::{NOW, open};
    use index::model::Model;

    /// Each key counts once in each database, until none is watched.
    #[test]
    fn watched_keys_are_counted() {
        let stores = [0, 1].map(|_| Arc::new(open(&Model::new(), NOW)));
        let mut watches = Watches::default();
        for _ in 0..2 {
            for (i, store) in stores.iter().enumerate() {
                for key in [&b"a"[..], b"long"] {
                    assert!(!watches.has(store, key));
                    let seen = store.see(key, NOW).expect("the model does not fail");
                    watches.add(store, key, seen);
                    assert!(watches.has(store, key));
                }
                assert_eq!((watches.count, watches.bytes), (2 * (i + 1), 5 * (i + 1)));
            }
            watches.clear();
            assert_eq!((watches.count, watches.bytes), (0, 0));
        }
        watches.bytes = MAX_WATCHED_BYTES - 4;
        assert!(watches.takes(b"long") && !watches.takes(b"longer"));
        (watches.bytes, watches.count) = (0, MAX_WATCHED);
        assert!(!watches.takes(b"a"));
    }
}
