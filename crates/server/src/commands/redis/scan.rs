//! Commands that walk keys. Those that name ranges walk in key order, and are refused if the map's index does not keep
//! it; the others walk in the order of the index.

use super::context::Context;
use super::error::{Done, NOT_INTEGER, SYNTAX, Wrong};
use super::glob::{self, Pattern};
use super::state::walk::{Bounds, Listing, TURN, walk};
use crate::items::number;
use crate::proto::redis::args::Args;
use index::{Direction, Order, check_progress, prefix_bounds};
use std::ops::{Bound, ControlFlow};

/// Bytes of matching keys after which a `SCAN` call returns early, as Redis's contract allows.
const REPLY_BYTES: usize = 1 << 20;

/// The options of `SCAN`.
struct ScanOptions<'a> {
    pattern: &'a [u8],
    count: usize,
    /// Whether items match `TYPE`: all of them are strings.
    type_matches: bool,
}

impl<'a> ScanOptions<'a> {
    fn read(args: Args<'a>) -> Result<ScanOptions<'a>, Wrong> {
        let mut options = ScanOptions {
            pattern: b"*",
            count: 10,
            type_matches: true,
        };
        let mut i = 2;
        while i < args.len() {
            if i + 1 >= args.len() {
                return Err(SYNTAX.into());
            }
            let value = args.get(i + 1);
            match args.get(i).to_ascii_uppercase().as_slice() {
                b"MATCH" => options.pattern = value,
                b"COUNT" => {
                    let wanted = number::strict(value).ok_or(NOT_INTEGER)?;
                    let count = usize::try_from(wanted).ok();
                    options.count = count.filter(|&count| count > 0).ok_or(SYNTAX)?;
                }
                b"TYPE" => options.type_matches = value.eq_ignore_ascii_case(b"string"),
                _ => return Err(SYNTAX.into()),
            }
            i += 2;
        }
        Ok(options)
    }
}

/// `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`.
pub fn scan(context: &mut Context<'_>, args: Args<'_>) -> Done {
    let cursor = match args.get(1) {
        b"" => Some(0), // As in Redis.
        text => number::unsigned(text),
    };
    let cursor = cursor.ok_or("ERR invalid cursor")?;
    let ScanOptions {
        pattern,
        count,
        type_matches,
    } = ScanOptions::read(args)?;
    let (lower, upper) = bounds_of(context, pattern);
    let pattern = Pattern::new(pattern);
    let lower = match cursor {
        0 => lower,
        cursor => Bound::Excluded(
            context
                .shared()
                .cursors
                .resume_after(cursor)
                .ok_or("ERR invalid cursor")?,
        ),
    };
    let (mut keys, mut seen, mut bytes, mut last) = (Vec::new(), 0, 0, None);
    let from = lower.clone();
    let bounds = &mut (lower, upper);
    let items = (&*context.state.store, context.now);
    let ended = walk(items, bounds, Direction::Forward, TURN, &mut |key, _| {
        seen += 1;
        if type_matches && pattern.matches(key) {
            bytes += key.len();
            keys.push(key.to_vec());
        }
        if seen < count && bytes < REPLY_BYTES {
            return ControlFlow::Continue(());
        }
        last = Some(key.to_vec());
        ControlFlow::Break(())
    })?;
    if !ended && let (Bound::Excluded(place), _) = bounds {
        // The turn's limit was reached at this key, which may be dead.
        last = Some(std::mem::take(place));
    }
    if let Some(last) = &last {
        // A damaged pool may return keys in any order, and the scan might not end.
        let order = context.state.store.order();
        check_progress(order, last, from.as_ref().map(Vec::as_slice), Direction::Forward)?;
    }
    let next = context.shared().cursors.advance(cursor, last);
    context.reply.array(2);
    context.reply.bulk(next.to_string().as_bytes());
    context.reply.array(keys.len());
    keys.iter().for_each(|key| context.reply.bulk(key));
    Ok(())
}

/// Returns bounds between which all keys that match a pattern lie, perhaps with others among them.
fn bounds_of(context: &Context<'_>, pattern: &[u8]) -> Bounds {
    match context.state.store.order() {
        Order::Keys => prefix_bounds(glob::prefix(pattern)),
        Order::Ranks(_) => (Bound::Unbounded, Bound::Unbounded),
    }
}

/// `KEYS pattern`.
pub fn keys(context: &mut Context<'_>, args: Args<'_>) -> Done {
    let pattern = args.get(1);
    let bounds = bounds_of(context, pattern);
    let listing = Listing {
        pattern: Some(Pattern::new(pattern)),
        ..Listing::default()
    };
    context.start_walk(vec![bounds], listing)
}

impl Listing {
    /// Parses `[REV] [LIMIT n] [WITHVALUES]`, from the `i`th argument on.
    fn read(args: Args<'_>, mut i: usize) -> Result<Listing, Wrong> {
        let mut listing = Listing::default();
        while i < args.len() {
            match args.get(i).to_ascii_uppercase().as_slice() {
                b"REV" => listing.direction = Direction::Reverse,
                b"WITHVALUES" => listing.values = true,
                b"LIMIT" if i + 1 < args.len() => {
                    i += 1;
                    let limit = number::strict(args.get(i)).ok_or(NOT_INTEGER)?;
                    // A negative number means no limit, as in ZRANGEBYLEX.
                    listing.limit = usize::try_from(limit).unwrap_or(usize::MAX);
                }
                _ => return Err(SYNTAX.into()),
            }
            i += 1;
        }
        Ok(listing)
    }
}

/// `KRANGE start end [REV] [LIMIT n] [WITHVALUES]`.
pub fn krange(context: &mut Context<'_>, args: Args<'_>) -> Done {
    context.state.store.order().require_keys()?;
    let listing = Listing::read(args, 3)?;
    let (low, high) = match listing.direction {
        Direction::Forward => (args.get(1), args.get(2)),
        Direction::Reverse => (args.get(2), args.get(1)),
    };
    let (lower, upper) = (bound(low)?, bound(high)?);
    // A range that begins behind the last key, or ends before the first, is empty.
    let bounds = match (low, high) {
        (b"+", _) | (_, b"-") => (Bound::Excluded(Vec::new()), Bound::Included(Vec::new())),
        _ => (lower, upper),
    };
    context.start_walk(vec![bounds], listing)
}

/// `KPREFIX prefix [REV] [LIMIT n] [WITHVALUES]`.
pub fn kprefix(context: &mut Context<'_>, args: Args<'_>) -> Done {
    context.state.store.order().require_keys()?;
    let listing = Listing::read(args, 2)?;
    context.start_walk(vec![prefix_bounds(args.get(1))], listing)
}

/// Parses a bound in the form of ZRANGEBYLEX: `-`, `+`, `[key` or `(key`.
fn bound(text: &[u8]) -> Result<Bound<Vec<u8>>, Wrong> {
    Ok(match text {
        b"-" | b"+" => Bound::Unbounded,
        [b'[', key @ ..] => Bound::Included(key.to_vec()),
        [b'(', key @ ..] => Bound::Excluded(key.to_vec()),
        _ => return Err("ERR min or max not valid string range item".into()),
    })
}
