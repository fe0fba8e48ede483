//! Times at which keys expire, and the commands that set and show them.

use super::context::{Context, retimed};
use super::error::{Done, NOT_INTEGER, Wrong};
use crate::items::number;
use crate::items::store::Decision;
use crate::proto::redis::args::Args;

/// Converts a positive time in this unit (`EX`, `PX`, `EXAT`, `PXAT`) to milliseconds since 1970.
pub fn positive(unit: &[u8], time: &[u8], now: u64, command: &str) -> Result<u64, Wrong> {
    let time = number::strict(time).ok_or(NOT_INTEGER)?;
    let at = match time > 0 {
        true => at(unit, time, now),
        false => None,
    };
    at.and_then(|at| u64::try_from(at).ok())
        .ok_or_else(|| invalid(command))
}

/// Converts a time to milliseconds since 1970, which may be negative; `None` if it is out of range.
fn at(unit: &[u8], time: i64, now: u64) -> Option<i64> {
    let seconds = matches!(unit, b"EX" | b"EXAT");
    let time = if seconds { time.checked_mul(1000)? } else { time };
    match unit {
        b"EX" | b"PX" => time.checked_add(i64::try_from(now).ok()?),
        _ => Some(time),
    }
}

fn invalid(command: &str) -> Wrong {
    Wrong::from(format!("ERR invalid expire time in '{command}' command"))
}

pub fn expire(context: &mut Context<'_>, args: Args<'_>) -> Done {
    set(context, args, b"EX", "expire")
}

pub fn pexpire(context: &mut Context<'_>, args: Args<'_>) -> Done {
    set(context, args, b"PX", "pexpire")
}

pub fn expireat(context: &mut Context<'_>, args: Args<'_>) -> Done {
    set(context, args, b"EXAT", "expireat")
}

pub fn pexpireat(context: &mut Context<'_>, args: Args<'_>) -> Done {
    set(context, args, b"PXAT", "pexpireat")
}

/// The conditions on a key's present expiry under which a new one is set.
#[derive(Default)]
struct When {
    none: bool,
    some: bool,
    later: bool,
    earlier: bool,
}

impl When {
    fn read(args: Args<'_>) -> Result<When, Wrong> {
        let mut when = When::default();
        for word in args.from(3) {
            match word.to_ascii_uppercase().as_slice() {
                b"NX" => when.none = true,
                b"XX" => when.some = true,
                b"GT" => when.later = true,
                b"LT" => when.earlier = true,
                _ => return Err(Wrong::with("ERR Unsupported option ", word, "")),
            }
        }
        if when.none && (when.some || when.later || when.earlier) {
            return Err("ERR NX and XX, GT or LT options at the same time are not compatible".into());
        }
        if when.later && when.earlier {
            return Err("ERR GT and LT options at the same time are not compatible".into());
        }
        Ok(when)
    }

    /// Returns whether a key with the expiry `old` (0: none) gets the expiry `new`.
    fn allows(&self, old: u64, new: i64) -> bool {
        let (old, has) = (i64::try_from(old).unwrap_or(i64::MAX), old != 0);
        !(self.none && has
            || self.some && !has
            || self.later && (!has || new <= old)
            || self.earlier && has && new >= old)
    }
}

fn set(context: &mut Context<'_>, args: Args<'_>, unit: &[u8], command: &str) -> Done {
    let now = context.now;
    let when = When::read(args)?;
    let time = number::strict(args.get(2)).ok_or(NOT_INTEGER)?;
    let at = at(unit, time, now).ok_or_else(|| invalid(command))?;
    let done = context.change(args.get(1), |old, unique, put| {
        let Some(old) = old.filter(|old| when.allows(old.header.expiry, at)) else {
            return Decision::Keep(false);
        };
        let expiry = u64::try_from(at).unwrap_or(0);
        if expiry <= now {
            return Decision::Remove(true);
        }
        retimed(unique, expiry, &old, put);
        Decision::Put(true)
    })?;
    context.reply.int(done.into());
    Ok(())
}

pub fn persist(context: &mut Context<'_>, args: Args<'_>) -> Done {
    let done = context.change(args.get(1), |old, unique, put| {
        let Some(old) = old.filter(|old| old.header.expiry != 0) else {
            return Decision::Keep(false);
        };
        retimed(unique, 0, &old, put);
        Decision::Put(true)
    })?;
    context.reply.int(done.into());
    Ok(())
}

pub fn ttl(context: &mut Context<'_>, args: Args<'_>) -> Done {
    reply_expiry(context, args, |expiry, now| {
        expiry.saturating_sub(now).saturating_add(500) / 1000
    })
}

pub fn pttl(context: &mut Context<'_>, args: Args<'_>) -> Done {
    reply_expiry(context, args, u64::saturating_sub)
}

pub fn expiretime(context: &mut Context<'_>, args: Args<'_>) -> Done {
    reply_expiry(context, args, |expiry, _| expiry.saturating_add(500) / 1000)
}

pub fn pexpiretime(context: &mut Context<'_>, args: Args<'_>) -> Done {
    reply_expiry(context, args, |expiry, _| expiry)
}

/// Replies a key's expiry: -2 if there is no such key, -1 if it does not expire.
fn reply_expiry(context: &mut Context<'_>, args: Args<'_>, show: fn(u64, u64) -> u64) -> Done {
    let expiry = context.read(args.get(1), |item| item.header.expiry)?;
    let told = match expiry {
        None => -2,
        Some(0) => -1,
        Some(expiry) => i64::try_from(show(expiry, context.now)).unwrap_or(i64::MAX),
    };
    context.reply.int(told);
    Ok(())
}
