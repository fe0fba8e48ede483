//! Commands that walk keys in order.

use super::context::{Context, Done, NOT_INTEGER, SYNTAX, Wrong};
use super::glob;
use super::parse::Args;
use crate::item::Item;
use crate::number;
use index::{Direction, behind, prefix_bounds};
use std::ops::{Bound, ControlFlow};

/// Keys that a scan looks at under one guard.
const STEP: usize = 1024;

type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

impl Context<'_> {
    /// Visits live items between the bounds, in order, until told to break.
    fn walk(
        &self,
        bounds: &Bounds,
        direction: Direction,
        visit: &mut dyn FnMut(&[u8], &Item<'_>) -> ControlFlow<()>,
    ) -> Result<(), Wrong> {
        let (mut lower, mut upper) = bounds.clone();
        loop {
            let (mut seen, mut last, mut ended) = (0, None, true);
            let guard = heap::pin();
            let (from, to) = (
                lower.as_ref().map(Vec::as_slice),
                upper.as_ref().map(Vec::as_slice),
            );
            self.state
                .store
                .scan(from, to, direction, self.now, &guard, &mut |key, item| {
                    seen += 1;
                    if let Some(item) = item
                        && visit(key, item).is_break()
                    {
                        return ControlFlow::Break(());
                    }
                    if seen < STEP {
                        return ControlFlow::Continue(());
                    }
                    (last, ended) = (Some(key.to_vec()), false);
                    ControlFlow::Break(())
                })?;
            match (last, direction) {
                (Some(last), Direction::Forward) if !ended => lower = behind(&last, from, direction)?,
                (Some(last), Direction::Reverse) if !ended => upper = behind(&last, to, direction)?,
                _ => return Ok(()),
            }
        }
    }
}

/// A `SCAN` ends early, as it may, once the keys it has found are this long together, in bytes.
const SCANNED: usize = 1 << 20;

/// `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`.
pub fn scan(context: &mut Context<'_>, args: Args<'_>) -> Done {
    let cursor = number::unsigned(args.get(1)).filter(|_| !args.get(1).starts_with(b"+"));
    let cursor = cursor.ok_or("ERR invalid cursor")?;
    let (mut pattern, mut count, mut strings): (&[u8], usize, bool) = (b"*", 10, true);
    let mut i = 2;
    while i < args.len() {
        let value = args.get(i + 1);
        match args.get(i).to_ascii_uppercase().as_slice() {
            _ if i + 1 >= args.len() => return Err(SYNTAX.into()),
            b"MATCH" => pattern = value,
            b"COUNT" => {
                let wanted = number::strict(value).ok_or(NOT_INTEGER)?;
                count = usize::try_from(wanted)
                    .ok()
                    .filter(|&count| count > 0)
                    .ok_or(SYNTAX)?;
            }
            b"TYPE" => strings = value.eq_ignore_ascii_case(b"string"),
            _ => return Err(SYNTAX.into()),
        }
        i += 2;
    }
    let (lower, upper) = prefix_bounds(glob::prefix(pattern));
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
    let bounds = (lower, upper);
    context.walk(&bounds, Direction::Forward, &mut |key, _| {
        seen += 1;
        if strings && glob::fits(pattern, key) {
            bytes += key.len();
            keys.push(key.to_vec());
        }
        if seen < count && bytes < SCANNED {
            return ControlFlow::Continue(());
        }
        last = Some(key.to_vec());
        ControlFlow::Break(())
    })?;
    if let Some(last) = &last {
        // Or the client would go round for ever in a damaged pool.
        behind(last, bounds.0.as_ref().map(Vec::as_slice), Direction::Forward)?;
    }
    let next = context.shared().cursors.gone_on(cursor, last);
    context.reply.array(2);
    context.reply.bulk(next.to_string().as_bytes());
    context.reply.array(keys.len());
    keys.iter().for_each(|key| context.reply.bulk(key));
    Ok(())
}

/// `KEYS pattern`.
pub fn keys(context: &mut Context<'_>, args: Args<'_>) -> Done {
    let pattern = args.get(1);
    let fits = |key: &[u8]| glob::fits(pattern, key);
    list(
        context,
        &prefix_bounds(glob::prefix(pattern)),
        &Listing::default(),
        &fits,
    )
}

/// How keys are listed.
#[derive(Default)]
struct Listing {
    reverse: bool,
    values: bool,
    limit: Option<usize>,
}

impl Listing {
    /// Reads `[REV] [LIMIT n] [WITHVALUES]`, from the `i`th argument on.
    fn read(args: Args<'_>, mut i: usize) -> Result<Listing, Wrong> {
        let mut listing = Listing::default();
        while i < args.len() {
            match args.get(i).to_ascii_uppercase().as_slice() {
                b"REV" => listing.reverse = true,
                b"WITHVALUES" => listing.values = true,
                b"LIMIT" if i + 1 < args.len() => {
                    i += 1;
                    let limit = number::strict(args.get(i)).ok_or(NOT_INTEGER)?;
                    // Below zero there is none, as in ZRANGEBYLEX.
                    listing.limit = usize::try_from(limit).ok();
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
    let listing = Listing::read(args, 3)?;
    let (low, high) = match listing.reverse {
        false => (args.get(1), args.get(2)),
        true => (args.get(2), args.get(1)),
    };
    let (lower, upper) = (bound(low)?, bound(high)?);
    let ordered = !matches!((low, high), (b"+", _) | (_, b"-"));
    // Behind the last key there is nothing, nor is there before the first.
    let nothing = || (Bound::Excluded(Vec::new()), Bound::Included(Vec::new()));
    let bounds = if ordered { (lower, upper) } else { nothing() };
    list(context, &bounds, &listing, &|_| true)
}

/// `KPREFIX prefix [REV] [LIMIT n] [WITHVALUES]`.
pub fn kprefix(context: &mut Context<'_>, args: Args<'_>) -> Done {
    let listing = Listing::read(args, 2)?;
    list(context, &prefix_bounds(args.get(1)), &listing, &|_| true)
}

/// A bound as ZRANGEBYLEX takes it: `-`, `+`, `[key` or `(key`.
fn bound(text: &[u8]) -> Result<Bound<Vec<u8>>, Wrong> {
    Ok(match text {
        b"-" | b"+" => Bound::Unbounded,
        [b'[', key @ ..] => Bound::Included(key.to_vec()),
        [b'(', key @ ..] => Bound::Excluded(key.to_vec()),
        _ => return Err("ERR min or max not valid string range item".into()),
    })
}

fn list(context: &mut Context<'_>, bounds: &Bounds, listing: &Listing, fits: &dyn Fn(&[u8]) -> bool) -> Done {
    let direction = match listing.reverse {
        false => Direction::Forward,
        true => Direction::Reverse,
    };
    let limit = listing.limit.unwrap_or(usize::MAX);
    // The head tells the length, so the elements are gathered behind the reply's end first.
    let mut found = Vec::new();
    let mut count = 0;
    let mut full = Ok(());
    let three = context.reply.three;
    if limit > 0 {
        context.walk(bounds, direction, &mut |key, item| {
            if !fits(key) {
                return ControlFlow::Continue(());
            }
            count += 1;
            let mut elements = super::reply::Reply {
                out: &mut found,
                three,
            };
            if listing.values && three {
                elements.array(2);
            }
            elements.bulk(key);
            if listing.values {
                elements.bulk(item.data);
            }
            full = super::context::bounded(found.len());
            match count < limit && full.is_ok() {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
    }
    full?;
    let each = if listing.values && !three { 2 } else { 1 };
    context.reply.array(count * each);
    context.reply.out.extend_from_slice(&found);
    Ok(())
}

/// `RANDOMKEY`: the key at or behind a random place between the first and the last.
pub fn randomkey(context: &mut Context<'_>, _: Args<'_>) -> Done {
    let all = (Bound::Unbounded, Bound::Unbounded);
    let first = end(context, &all, Direction::Forward)?;
    let last = end(context, &all, Direction::Reverse)?;
    let (Some(first), Some(last)) = (first, last) else {
        context.reply.null();
        return Ok(());
    };
    let common = first.iter().zip(&last).take_while(|(a, b)| a == b).count();
    let word = |key: &[u8]| {
        let mut word = [0; 8];
        let rest = &key[common.min(key.len())..];
        let length = rest.len().min(8);
        word[..length].copy_from_slice(&rest[..length]);
        u64::from_be_bytes(word)
    };
    let (low, high) = (word(&first), word(&last).max(word(&first)));
    let place = low + random(context) % (high - low).saturating_add(1).max(1);
    let mut from = first[..common].to_vec();
    from.extend_from_slice(&place.to_be_bytes());
    let behind = (Bound::Included(from), Bound::Unbounded);
    let key = end(context, &behind, Direction::Forward)?.unwrap_or(last);
    context.reply.bulk(&key);
    Ok(())
}

/// The first key between the bounds in this direction.
fn end(context: &Context<'_>, bounds: &Bounds, direction: Direction) -> Result<Option<Vec<u8>>, Wrong> {
    let mut found = None;
    context.walk(bounds, direction, &mut |key, _| {
        found = Some(key.to_vec());
        ControlFlow::Break(())
    })?;
    Ok(found)
}

/// A number that clients cannot tell from a random one.
fn random(context: &Context<'_>) -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(context.now)
}
