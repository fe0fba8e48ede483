//! Commands that increment and decrement numbers.

use super::context::{Context, fresh};
use super::decimal::Decimal;
use super::error::{Done, NOT_INTEGER};
use crate::items::number;
use crate::items::store::Decision;
use crate::proto::redis::args::Args;

pub fn incr(context: &mut Context<'_>, args: Args<'_>) -> Done {
    count(context, args.get(1), 1)
}

pub fn decr(context: &mut Context<'_>, args: Args<'_>) -> Done {
    count(context, args.get(1), -1)
}

pub fn incrby(context: &mut Context<'_>, args: Args<'_>) -> Done {
    let by = number::strict(args.get(2)).ok_or(NOT_INTEGER)?;
    count(context, args.get(1), by)
}

pub fn decrby(context: &mut Context<'_>, args: Args<'_>) -> Done {
    let by = number::strict(args.get(2)).ok_or(NOT_INTEGER)?;
    let by = by.checked_neg().ok_or("ERR decrement would overflow")?;
    count(context, args.get(1), by)
}

fn count(context: &mut Context<'_>, key: &[u8], by: i64) -> Done {
    let number = context.change(key, |old, unique, put| {
        let (expiry, number) = match old {
            Some(old) => (old.header.expiry, number::strict(old.data)),
            None => (0, Some(0)),
        };
        let Some(number) = number else {
            return Decision::Keep(Err(NOT_INTEGER));
        };
        let Some(number) = number.checked_add(by) else {
            return Decision::Keep(Err("ERR increment or decrement would overflow"));
        };
        fresh(unique, expiry, &[], put);
        number::write_signed(put, number);
        Decision::Put(Ok(number))
    })?;
    context.reply.int(number?);
    Ok(())
}

pub fn incrbyfloat(context: &mut Context<'_>, args: Args<'_>) -> Done {
    const NOT_FLOAT: &str = "ERR value is not a valid float";
    let by = Decimal::read(args.get(2)).ok_or(NOT_FLOAT)?;
    let text = context.change(args.get(1), |old, unique, put| {
        let (expiry, number) = match old {
            Some(old) => (old.header.expiry, Decimal::read(old.data)),
            None => (0, Some(Decimal::ZERO)),
        };
        let Some(number) = number else {
            return Decision::Keep(Err(NOT_FLOAT));
        };
        let Some(sum) = number.add(by) else {
            // Redis's message. Here it also reports a finite sum that is too large for a `Decimal`.
            return Decision::Keep(Err("ERR increment would produce NaN or Infinity"));
        };
        let text = sum.to_string();
        fresh(unique, expiry, &[text.as_bytes()], put);
        Decision::Put(Ok(text))
    })?;
    context.reply.bulk(text?.as_bytes());
    Ok(())
}
