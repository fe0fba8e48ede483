//! Commands that replace the whole data of strings.

use super::context::{Context, fresh};
use super::error::{Done, SYNTAX, Wrong};
use super::expiry;
use crate::counters::Counter;
use crate::items::item::HEADER;
use crate::items::item::PLACE;
use crate::items::store::Decision;
use crate::proto::redis::args::Args;

/// The options of `SET`.
#[derive(Default)]
struct SetOptions {
    if_absent: bool,
    if_present: bool,
    get: bool,
    keep: bool,
    expiry: Option<u64>,
}

impl SetOptions {
    fn read(args: Args<'_>, now: u64) -> Result<SetOptions, Wrong> {
        let mut options = SetOptions::default();
        let mut time = None;
        let mut i = 3;
        while i < args.len() {
            let word = args.get(i).to_ascii_uppercase();
            // At most one unit may occur; of several times in it, the last counts.
            let timed = |unit: &[u8]| options.keep || time.as_ref().is_some_and(|(other, _)| other != unit);
            match word.as_slice() {
                b"NX" if !options.if_present => options.if_absent = true,
                b"XX" if !options.if_absent => options.if_present = true,
                b"GET" => options.get = true,
                b"KEEPTTL" if time.is_none() => options.keep = true,
                b"EX" | b"PX" | b"EXAT" | b"PXAT" if !timed(&word) && i + 1 < args.len() => {
                    i += 1;
                    time = Some((word, args.get(i)));
                }
                _ => return Err(SYNTAX.into()),
            }
            i += 1;
        }
        if let Some((unit, time)) = time {
            options.expiry = Some(expiry::positive(&unit, time, now, "set")?);
        }
        Ok(options)
    }
}

pub fn set(context: &mut Context<'_>, args: Args<'_>) -> Done {
    let options = SetOptions::read(args, context.now)?;
    let data = args.get(2);
    let old = store(context, args.get(1), data, &options)?;
    match old {
        (_, old) if options.get => context.reply.bulk_or_null(old.as_deref()),
        (true, _) => context.reply.ok(),
        (false, _) => context.reply.null(),
    }
    Ok(())
}

/// Stores data if the options allow it. Returns whether it has, and the old data if the options ask for them.
fn store(
    context: &Context<'_>,
    key: &[u8],
    data: &[u8],
    options: &SetOptions,
) -> Result<(bool, Option<Vec<u8>>), Wrong> {
    let stored = context.change(key, |old, unique, put| {
        let shown = old.filter(|_| options.get).map(|old| old.data.to_vec());
        if old.is_some() && options.if_absent || old.is_none() && options.if_present {
            return Decision::Keep((false, shown));
        }
        let kept = old.filter(|_| options.keep).map_or(0, |old| old.header.expiry);
        fresh(unique, options.expiry.unwrap_or(kept), &[data], put);
        Decision::Put((true, shown))
    })?;
    context.add(Counter::Sets, 1);
    Ok(stored)
}

/// Stores the data of keys without expiries, in order, and replies to each as `SET` does. The caller has checked that
/// the client may write, that no transaction runs, and that all keys are valid.
pub fn set_each(context: &mut Context<'_>, keys: &[&[u8]], data: &[&[u8]]) {
    let databases = &context.worker.shared.databases;
    if databases.memory().limit() == 0 {
        return put_all(context, keys, data);
    }
    context.state.store.prefetch(keys);
    for (key, data) in keys.iter().zip(data) {
        let growth = PLACE + (key.len() + HEADER + data.len()) as u64;
        match databases.room(growth, context.now) {
            Ok(_room) => put_all(context, &[key], &[data]),
            Err(failure) => context.reply.error(&Wrong::from(failure).0),
        }
    }
}

/// Stores all, and replies to each. The caller has reserved room, unless there is no memory limit.
fn put_all(context: &mut Context<'_>, keys: &[&[u8]], data: &[&[u8]]) {
    let worker = context.worker;
    let scratch = &mut *worker.scratch.borrow_mut();
    let store = context.state.store.clone();
    let reply = &mut context.reply;
    let mut count = 0;
    let stored = store.put_many(
        keys,
        scratch,
        |i, unique, put| fresh(unique, 0, &[data[i]], put),
        |_, done| match done {
            Ok(()) => {
                count += 1;
                reply.ok();
            }
            Err(failure) => reply.error(&Wrong::from(failure).0),
        },
    );
    worker.add(Counter::Sets, count);
    // The space for a large value is freed.
    scratch.shrink_to(64 << 10);
    if let Err(failure) = stored {
        let Wrong(text) = failure.into();
        keys.iter().for_each(|_| context.reply.error(&text));
    }
}

pub fn setnx(context: &mut Context<'_>, args: Args<'_>) -> Done {
    let options = SetOptions {
        if_absent: true,
        ..SetOptions::default()
    };
    let (stored, _) = store(context, args.get(1), args.get(2), &options)?;
    context.reply.int(stored.into());
    Ok(())
}

pub fn setex(context: &mut Context<'_>, args: Args<'_>) -> Done {
    set_for(context, args, b"EX", "setex")
}

pub fn psetex(context: &mut Context<'_>, args: Args<'_>) -> Done {
    set_for(context, args, b"PX", "psetex")
}

fn set_for(context: &mut Context<'_>, args: Args<'_>, unit: &[u8], command: &str) -> Done {
    let options = SetOptions {
        expiry: Some(expiry::positive(unit, args.get(2), context.now, command)?),
        ..SetOptions::default()
    };
    store(context, args.get(1), args.get(3), &options)?;
    context.reply.ok();
    Ok(())
}

pub fn getset(context: &mut Context<'_>, args: Args<'_>) -> Done {
    let options = SetOptions {
        get: true,
        ..SetOptions::default()
    };
    let (_, old) = store(context, args.get(1), args.get(2), &options)?;
    context.reply.bulk_or_null(old.as_deref());
    Ok(())
}

pub fn mset(context: &mut Context<'_>, args: Args<'_>) -> Done {
    set_all(context, args, "mset")?;
    context.reply.ok();
    Ok(())
}

pub fn msetnx(context: &mut Context<'_>, args: Args<'_>) -> Done {
    if args.len().is_multiple_of(2) {
        return Err("ERR wrong number of arguments for 'msetnx' command".into());
    }
    for key in args.from(1).step_by(2) {
        if context.read(key, |_| ())?.is_some() {
            context.reply.int(0);
            return Ok(());
        }
    }
    set_all(context, args, "msetnx")?;
    context.reply.int(1);
    Ok(())
}

fn set_all(context: &Context<'_>, args: Args<'_>, command: &str) -> Done {
    if args.len().is_multiple_of(2) {
        return Err(Wrong::from(format!(
            "ERR wrong number of arguments for '{command}' command"
        )));
    }
    // Checked first, so that the command has no partial effect within a transaction either.
    let too_long = args.from(1).step_by(2).find(|key| key.len() > index::MAX_KEY);
    if let Some(key) = too_long {
        return Err(index::Error::KeyTooLong(key.len()).into());
    }
    let values = args.from(2).step_by(2);
    for (key, data) in args.from(1).step_by(2).zip(values) {
        context.put(key, data)?;
    }
    Ok(())
}
