//! Commands on strings, except those that replace the whole data (`sets`).

use super::context::{Context, fresh, is_name, retimed};
use super::error::{Done, NOT_INTEGER, SYNTAX, TOO_LONG, TOO_LONG_REPLY, Wrong};
use super::expiry;
use crate::items::item::Item;
use crate::items::number;
use crate::items::store::{BATCH, Decision};
use crate::proto::redis::args::Args;

pub fn get(context: &mut Context<'_>, args: Args<'_>) -> Done {
    mget_each(context, &[args.get(1)], usize::MAX)?;
    Ok(())
}

pub fn mget(context: &mut Context<'_>, args: Args<'_>) -> Done {
    context.reply.array(args.len() - 1);
    let begin = context.reply.out.len();
    let keys: Vec<_> = args.from(1).collect();
    let mut left = keys.as_slice();
    while !left.is_empty() {
        let replied = mget_each(context, left, begin + TOO_LONG_REPLY)?;
        context.bounded(begin)?;
        left = &left[replied..];
    }
    Ok(())
}

/// Looks up the first keys together and replies their values: of at most [`BATCH`] keys, at least one, and no more once
/// `enough` bytes of replies wait. Returns the number of keys replied to.
pub fn mget_each(context: &mut Context<'_>, keys: &[&[u8]], enough: usize) -> Result<usize, Wrong> {
    let keys = &keys[..keys.len().min(BATCH)];
    if context.state.store.in_transaction() {
        return mget_within(context, keys, enough);
    }
    let mut named = [&[][..]; BATCH];
    let mut count = 0;
    for key in keys.iter().filter(|key| is_name(key)) {
        named[count] = key;
        count += 1;
    }
    let named = &named[..count];
    let store = context.state.store.clone();
    let mut dead = Vec::new();
    let mut replied = 0;
    {
        let guard = heap::pin();
        let mut found = [const { None }; BATCH];
        let found = &mut found[..count];
        if count > 0 {
            store.get(named, context.now, &guard, &mut dead, found)?;
        }
        let mut values = found.iter();
        for key in keys {
            let value = if is_name(key) { values.next() } else { None };
            let item = value.and_then(|value| Item::read(value.as_ref()?));
            context.count(item.is_some());
            context.reply.bulk_or_null(item.map(|item| item.data));
            replied += 1;
            if context.reply.out.len() >= enough {
                break;
            }
        }
    }
    // The guard has been dropped: an edit may wait for recovery, which waits for guards.
    for i in dead {
        // If this fails, the next command that meets the item tries again.
        let _ = store.bury(named[i], context.now);
    }
    Ok(replied)
}

/// Does the same as [`mget_each`] within a transaction, one key after the other.
fn mget_within(context: &mut Context<'_>, keys: &[&[u8]], enough: usize) -> Result<usize, Wrong> {
    for (i, key) in keys.iter().enumerate() {
        let data = context.read(key, |item| item.data.to_vec())?;
        context.count(data.is_some());
        context.reply.bulk_or_null(data.as_deref());
        if context.reply.out.len() >= enough {
            return Ok(i + 1);
        }
    }
    Ok(keys.len())
}

pub fn getdel(context: &mut Context<'_>, args: Args<'_>) -> Done {
    let old = context.change(args.get(1), |old, _, _| match old {
        Some(old) => Decision::Remove(Some(old.data.to_vec())),
        None => Decision::Keep(None),
    })?;
    context.count(old.is_some());
    context.reply.bulk_or_null(old.as_deref());
    Ok(())
}

pub fn getex(context: &mut Context<'_>, args: Args<'_>) -> Done {
    if args.len() == 2 {
        return get(context, args);
    }
    // At most one option may occur; of several times, the last counts.
    let word = args.get(2).to_ascii_uppercase();
    let (persists, options) = match (word.as_slice(), args.len()) {
        (b"PERSIST", _) => (true, 1),
        (b"EX" | b"PX" | b"EXAT" | b"PXAT", length) if length.is_multiple_of(2) => (false, 2),
        _ => return Err(SYNTAX.into()),
    };
    if !args
        .from(2)
        .step_by(options)
        .all(|other| other.eq_ignore_ascii_case(&word))
    {
        return Err(SYNTAX.into());
    }
    if context.read(args.get(1), |_| ())?.is_none() {
        context.count(false);
        context.reply.null();
        return Ok(());
    }
    let expiry = match persists {
        true => 0,
        false => expiry::positive(&word, args.get(args.len() - 1), context.now, "getex")?,
    };
    let old = context.change(args.get(1), |old, unique, put| match old {
        Some(old) if old.header.expiry == 0 && persists => Decision::Keep(Some(old.data.to_vec())),
        Some(old) if !persists && expiry <= context.now => Decision::Remove(Some(old.data.to_vec())),
        Some(old) => {
            retimed(unique, expiry, &old, put);
            Decision::Put(Some(old.data.to_vec()))
        }
        None => Decision::Keep(None),
    })?;
    context.count(old.is_some());
    context.reply.bulk_or_null(old.as_deref());
    Ok(())
}

pub fn strlen(context: &mut Context<'_>, args: Args<'_>) -> Done {
    let length = context.read(args.get(1), |item| item.data.len())?;
    context.count(length.is_some());
    context.reply.int(length.unwrap_or(0) as i64);
    Ok(())
}

pub fn append(context: &mut Context<'_>, args: Args<'_>) -> Done {
    let longest = context.longest();
    let more = args.get(2);
    let length = context.change(args.get(1), |old, unique, put| {
        let (expiry, data) = old.map_or((0, &[][..]), |old| (old.header.expiry, old.data));
        if data.len() + more.len() > longest {
            return Decision::Keep(None);
        }
        fresh(unique, expiry, &[data, more], put);
        Decision::Put(Some(data.len() + more.len()))
    })?;
    context.reply.int(length.ok_or(TOO_LONG)? as i64);
    Ok(())
}

pub fn getrange(context: &mut Context<'_>, args: Args<'_>) -> Done {
    let begin = number::strict(args.get(2)).ok_or(NOT_INTEGER)?;
    let end = number::strict(args.get(3)).ok_or(NOT_INTEGER)?;
    let range = context.read(args.get(1), |item| range(item.data, begin, end).to_vec())?;
    context.count(range.is_some());
    context.reply.bulk(&range.unwrap_or_default());
    Ok(())
}

/// Returns the bytes from `begin` through `end`; negative numbers count from the end of the data.
fn range(data: &[u8], begin: i64, end: i64) -> &[u8] {
    let length = data.len() as i64;
    let place = |i: i64| if i < 0 { i.saturating_add(length).max(0) } else { i };
    if begin < 0 && end < 0 && begin > end {
        return &[];
    }
    let (begin, end) = (place(begin), place(end).min(length - 1));
    match begin <= end && length > 0 {
        true => &data[begin as usize..=end as usize],
        false => &[],
    }
}

pub fn setrange(context: &mut Context<'_>, args: Args<'_>) -> Done {
    let offset = number::strict(args.get(2)).ok_or(NOT_INTEGER)?;
    let offset = usize::try_from(offset).map_err(|_| "ERR offset is out of range")?;
    let (longest, new) = (context.longest(), args.get(3));
    let length = context.change(args.get(1), |old, unique, put| {
        let (expiry, data) = old.map_or((0, &[][..]), |old| (old.header.expiry, old.data));
        if new.is_empty() {
            return Decision::Keep(Some(data.len()));
        }
        let end = offset.saturating_add(new.len());
        if end > longest {
            return Decision::Keep(None);
        }
        fresh(unique, expiry, &[data], put);
        let head = crate::items::item::HEADER;
        put.resize(put.len().max(head + end), 0);
        put[head + offset..head + end].copy_from_slice(new);
        Decision::Put(Some(put.len() - head))
    })?;
    context.reply.int(length.ok_or(TOO_LONG)? as i64);
    Ok(())
}
