//! Commands on keys.

use super::context::Context;
use super::error::{Done, SYNTAX, Wrong};
use crate::counters::Counter;
use crate::items::item::Header;
use crate::items::store::{Decision, Outcome};
use crate::proto::redis::args::Args;

pub fn del(context: &mut Context<'_>, args: Args<'_>) -> Done {
    let mut removed = 0;
    for key in args.from(1) {
        let hit = context.state.store.delete(key, context.now)? == Outcome::Done;
        context.add(
            if hit {
                Counter::DeleteHits
            } else {
                Counter::DeleteMisses
            },
            1,
        );
        removed += i64::from(hit);
    }
    context.reply.int(removed);
    Ok(())
}

pub fn exists(context: &mut Context<'_>, args: Args<'_>) -> Done {
    let mut there = 0;
    for key in args.from(1) {
        let found = context.read(key, |_| ())?.is_some();
        context.count(found);
        there += i64::from(found);
    }
    context.reply.int(there);
    Ok(())
}

pub fn kind(context: &mut Context<'_>, args: Args<'_>) -> Done {
    let found = context.read(args.get(1), |_| ())?.is_some();
    context.reply.simple(if found { "string" } else { "none" });
    Ok(())
}

pub fn rename(context: &mut Context<'_>, args: Args<'_>) -> Done {
    move_to(context, args, true)?;
    context.reply.ok();
    Ok(())
}

pub fn renamenx(context: &mut Context<'_>, args: Args<'_>) -> Done {
    let moved = move_to(context, args, false)?;
    context.reply.int(moved.into());
    Ok(())
}

/// Moves an item to another key, with its expiry. The caller runs this in a transaction.
fn move_to(context: &Context<'_>, args: Args<'_>, replace: bool) -> Result<bool, Wrong> {
    let (from, to) = (args.get(1), args.get(2));
    let item = context.read(from, |item| (item.header, item.data.to_vec()))?;
    let (header, data) = item.ok_or("ERR no such key")?;
    if from == to {
        return Ok(replace);
    }
    let moved = context.change(to, |old, unique, put| {
        if old.is_some() && !replace {
            return Decision::Keep(false);
        }
        Header { unique, ..header }.begin(put);
        put.extend_from_slice(&data);
        Decision::Put(true)
    })?;
    if moved {
        context.state.store.delete(from, context.now)?;
    }
    Ok(moved)
}

pub fn dbsize(context: &mut Context<'_>, _: Args<'_>) -> Done {
    let (items, _) = context.state.store.items();
    context.reply.int(i64::try_from(items).unwrap_or(i64::MAX));
    Ok(())
}

pub fn flushdb(context: &mut Context<'_>, args: Args<'_>) -> Done {
    flush_mode(args)?;
    context.state.store.flush(None)?;
    context.add(Counter::Flushes, 1);
    context.reply.ok();
    Ok(())
}

pub fn flushall(context: &mut Context<'_>, args: Args<'_>) -> Done {
    flush_mode(args)?;
    for (_, store) in context.shared().databases.all() {
        store.flush(None)?;
    }
    context.add(Counter::Flushes, 1);
    context.reply.ok();
    Ok(())
}

/// Checks the mode of a flush. A flush is a single write, so both modes carry it out at once.
fn flush_mode(args: Args<'_>) -> Result<(), Wrong> {
    match (args.len(), args.get(1).to_ascii_uppercase().as_slice()) {
        (1, _) | (2, b"ASYNC" | b"SYNC") => Ok(()),
        _ => Err(SYNTAX.into()),
    }
}
