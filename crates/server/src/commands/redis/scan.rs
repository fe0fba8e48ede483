//! Commands that walk keys. Those that name ranges walk in key order, and are refused if the map's index does not keep
//! it; the others walk in the order of the index.

use super::context::Context;
use super::error::{Done, NOT_INTEGER, SYNTAX, Wrong};
use super::glob::{self, Pattern};
use super::random::{self, Picked, Random};
use super::state::walk::{Bounds, Listing, TURN, Walk, walk};
use crate::items::number;
use crate::proto::redis::args::Args;
use index::{Direction, Order, behind, prefix_bounds};
use std::hash::{BuildHasher, RandomState};
use std::ops::{Bound, ControlFlow};

/// A `SCAN` ends early, as it may, once the keys it has found have this many bytes together.
const SCANNED: usize = 1 << 20;

/// The options of `SCAN`.
struct ScanOptions<'a> {
    pattern: &'a [u8],
    count: usize,
    /// Whether keys of strings are wanted, the only type that exists here.
    strings: bool,
}

impl<'a> ScanOptions<'a> {
    fn read(args: Args<'a>) -> Result<ScanOptions<'a>, Wrong> {
        let mut options = ScanOptions {
            pattern: b"*",
            count: 10,
            strings: true,
        };
        let mut i = 2;
        while i < args.len() {
            let value = args.get(i + 1);
            match args.get(i).to_ascii_uppercase().as_slice() {
                _ if i + 1 >= args.len() => return Err(SYNTAX.into()),
                b"MATCH" => options.pattern = value,
                b"COUNT" => {
                    let wanted = number::strict(value).ok_or(NOT_INTEGER)?;
                    let count = usize::try_from(wanted).ok();
                    options.count = count.filter(|&count| count > 0).ok_or(SYNTAX)?;
                }
                b"TYPE" => options.strings = value.eq_ignore_ascii_case(b"string"),
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
        strings,
    } = ScanOptions::read(args)?;
    let (lower, upper) = fitting(context, pattern);
    let pattern = Pattern::new(pattern);
    let lower = match cursor {
        0 => lower,
        cursor => Bound::Excluded(
            context
                .shared()
                .cursors
                .place(cursor)
                .ok_or("ERR invalid cursor")?,
        ),
    };
    let (mut keys, mut seen, mut bytes, mut last) = (Vec::new(), 0, 0, None);
    let begin = lower.clone();
    let bounds = &mut (lower, upper);
    let items = (&*context.state.store, context.now);
    let ended = walk(items, bounds, Direction::Forward, TURN, &mut |key, _| {
        seen += 1;
        if strings && pattern.matches(key) {
            bytes += key.len();
            keys.push(key.to_vec());
        }
        if seen < count && bytes < SCANNED {
            return ControlFlow::Continue(());
        }
        last = Some(key.to_vec());
        ControlFlow::Break(())
    })?;
    if !ended && let (Bound::Excluded(place), _) = bounds {
        // The turn has ended at this key, which may be dead.
        last = Some(std::mem::take(place));
    }
    if let Some(last) = &last {
        // Without this check a client would scan a damaged pool for ever.
        let order = context.state.store.order();
        behind(order, last, begin.as_ref().map(Vec::as_slice), Direction::Forward)?;
    }
    let next = context.shared().cursors.gone_on(cursor, last);
    context.reply.array(2);
    context.reply.bulk(next.to_string().as_bytes());
    context.reply.array(keys.len());
    keys.iter().for_each(|key| context.reply.bulk(key));
    Ok(())
}

/// Returns bounds between which all keys that match a pattern lie, perhaps with others among them.
fn fitting(context: &Context<'_>, pattern: &[u8]) -> Bounds {
    match context.state.store.order() {
        Order::Keys => prefix_bounds(glob::prefix(pattern)),
        Order::Ranks(_) => (Bound::Unbounded, Bound::Unbounded),
    }
}

/// `KEYS pattern`.
pub fn keys(context: &mut Context<'_>, args: Args<'_>) -> Done {
    let pattern = args.get(1);
    let bounds = fitting(context, pattern);
    let listing = Listing {
        pattern: Some(Pattern::new(pattern)),
        ..Listing::default()
    };
    begin(context, vec![bounds], listing)
}

/// Begins a walk through these ranges.
fn begin(context: &mut Context<'_>, ranges: Vec<Bounds>, listing: Listing) -> Done {
    let turns_alone = context.shared().databases.turns_alone();
    context.walk(Walk::new(ranges, listing, turns_alone))
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
    let ordered = !matches!((low, high), (b"+", _) | (_, b"-"));
    // A range that begins behind the last key, or ends before the first, is empty.
    let nothing = || (Bound::Excluded(Vec::new()), Bound::Included(Vec::new()));
    let bounds = if ordered { (lower, upper) } else { nothing() };
    begin(context, vec![bounds], listing)
}

/// `KPREFIX prefix [REV] [LIMIT n] [WITHVALUES]`.
pub fn kprefix(context: &mut Context<'_>, args: Args<'_>) -> Done {
    context.state.store.order().require_keys()?;
    let listing = Listing::read(args, 2)?;
    begin(context, vec![prefix_bounds(args.get(1))], listing)
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

/// `RANDOMKEY`: see [`random`].
pub fn randomkey(context: &mut Context<'_>, _: Args<'_>) -> Done {
    let count = context.state.store.keys();
    let seed = RandomState::new().hash_one(context.now);
    let from = match context.state.store.order() {
        // The index's order is as good as random: take the first live key behind a random place.
        Order::Ranks(_) => seed.to_ne_bytes().to_vec(),
        Order::Keys => match random::pick(&LiveKeys(context), count, &mut Random::new(seed))? {
            Picked::Key(key) => {
                context.reply.bulk(&key);
                return Ok(());
            }
            Picked::Nothing => {
                context.reply.null();
                return Ok(());
            }
            Picked::NoneOf(dead) => dead,
        },
    };
    // Take the first live key behind `from`, or else the first live one before it. (In key order: nearly all keys are
    // dead.)
    let behind = (Bound::Excluded(from.clone()), Bound::Unbounded);
    let before = (Bound::Unbounded, Bound::Excluded(from));
    let listing = Listing {
        lone: true,
        limit: 1,
        ..Listing::default()
    };
    begin(context, vec![behind, before], listing)
}

/// The keys of the database, for a random choice among the live ones.
struct LiveKeys<'l, 'c>(&'l Context<'c>);

impl random::Keys for LiveKeys<'_, '_> {
    type Error = Wrong;

    fn end(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>, last: bool) -> Result<Option<Vec<u8>>, Wrong> {
        let direction = match last {
            false => Direction::Forward,
            true => Direction::Reverse,
        };
        let mut end = None;
        let store = &self.0.state.store;
        store.scan(
            lower,
            upper,
            direction,
            self.0.now,
            &heap::pin(),
            &mut |key, _| {
                end = Some(key.to_vec());
                ControlFlow::Break(())
            },
        )?;
        Ok(end)
    }

    fn may_take(&self, key: &[u8]) -> Result<bool, Wrong> {
        // A scan does not count as an access of the item.
        let (only, mut live) = (Bound::Included(key), false);
        let store = &self.0.state.store;
        store.scan(
            only,
            only,
            Direction::Forward,
            self.0.now,
            &heap::pin(),
            &mut |_, item| {
                live = item.is_some();
                ControlFlow::Break(())
            },
        )?;
        Ok(live)
    }
}
