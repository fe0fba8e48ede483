//! Ranges over the reference index.

extern crate wollemi_index as index;

use index::model::ModelIndex;
use index::{Direction, Error, Guard, Index, MAX_KEY, Range, Value, Visit};
use std::ops::Bound::{self, Excluded, Included, Unbounded};
use std::ops::ControlFlow;

/// Numbers from 0, two bytes each, with themselves as values.
fn numbers(count: u16) -> ModelIndex {
    let model = ModelIndex::new();
    for number in 0..count {
        model
            .insert(&number.to_be_bytes(), &number.to_be_bytes())
            .unwrap();
    }
    model
}

fn number((key, value): (&[u8], Value<'_>)) -> u16 {
    assert_eq!(key, &*value);
    u16::from_be_bytes(key.try_into().unwrap())
}

fn collect(entries: impl Iterator<Item = Result<(impl AsRef<[u8]>, impl Sized), Error>>) -> Vec<Vec<u8>> {
    entries.map(|entry| entry.unwrap().0.as_ref().to_vec()).collect()
}

#[test]
fn both_ends_meet_once_whatever_the_order_of_calls() {
    let model = numbers(3000);
    let guard = heap::pin();
    // Runs of calls at one end, of lengths near the sizes of the batches that are read ahead.
    for runs in [
        [1, 1],
        [1, 3000],
        [3000, 1],
        [16, 16],
        [15, 17],
        [17, 700],
        [500, 40],
        [48, 49],
    ] {
        let mut range = model.range(Unbounded, Unbounded, &guard);
        let (mut low, mut high) = (0, 3000);
        'all: loop {
            for _ in 0..runs[0] {
                let Some(entry) = range.next() else { break 'all };
                assert_eq!(number(entry.unwrap()), low);
                low += 1;
            }
            for _ in 0..runs[1] {
                let Some(entry) = range.next_back() else {
                    break 'all;
                };
                high -= 1;
                assert_eq!(number(entry.unwrap()), high);
            }
        }
        assert_eq!(low, high);
        assert!(
            range.next().is_none() && range.next_back().is_none(),
            "an iterator that has ended stays so"
        );
    }
}

#[test]
fn bounds_are_kept() {
    let model = numbers(100);
    let guard = heap::pin();
    let (a, b) = (&10_u16.to_be_bytes()[..], &20_u16.to_be_bytes()[..]);
    let cases = [
        (Included(a), Included(b), 10..21),
        (Included(a), Excluded(b), 10..20),
        (Excluded(a), Included(b), 11..21),
        (Excluded(a), Excluded(b), 11..20),
        (Unbounded, Excluded(a), 0..10),
        (Excluded(b), Unbounded, 21..100),
        (Included(a), Included(a), 10..11),
        (Included(a), Excluded(a), 0..0),
        (Excluded(a), Included(a), 0..0),
        (Excluded(a), Excluded(a), 0..0),
        (Included(b), Included(a), 0..0),
    ];
    for (lower, upper, expected) in cases {
        let up: Vec<_> = model
            .range(lower, upper, &guard)
            .map(|entry| number(entry.unwrap()))
            .collect();
        let down: Vec<_> = model
            .range(lower, upper, &guard)
            .rev()
            .map(|entry| number(entry.unwrap()))
            .collect();
        assert!(
            up.iter().copied().eq(expected.clone()),
            "{lower:?}, {upper:?}: {up:?}"
        );
        assert!(
            down.iter().copied().eq(expected.rev()),
            "{lower:?}, {upper:?}: {down:?}"
        );
    }
}

#[test]
fn a_prefix_ends_before_the_next_one() {
    let model = ModelIndex::new();
    let keys: [&[u8]; 9] = [
        b"",
        b"a",
        b"a\xff",
        b"a\xff\xff",
        b"a\xff\xffz",
        b"b",
        b"\xff",
        b"\xff\xff",
        b"\xff\xffz",
    ];
    for key in keys {
        model.insert(key, b"").unwrap();
    }
    let guard = heap::pin();
    for prefix in keys.iter().copied().chain([&b"a\xfe"[..], b"c", b"\xff\xff\xff"]) {
        let expected: Vec<_> = keys
            .iter()
            .filter(|key| key.starts_with(prefix))
            .map(|key| key.to_vec())
            .collect();
        assert_eq!(collect(model.prefix(prefix, &guard)), expected, "{prefix:?}");
        let mut down = collect(model.prefix(prefix, &guard).rev());
        down.reverse();
        assert_eq!(down, expected, "{prefix:?}");
    }
}

#[test]
fn a_prefix_that_no_key_can_have_is_an_error() {
    let model = numbers(1);
    let guard = heap::pin();
    let mut range = Range::with_prefix(&model, &vec![0; MAX_KEY + 1], &guard);
    assert!(matches!(range.next(), Some(Err(Error::KeyTooLong(_)))));
    assert!(range.next().is_none() && range.next_back().is_none());
    assert!(
        Range::with_prefix(&model, &vec![0; MAX_KEY], &guard)
            .next()
            .is_none()
    );
}

#[test]
fn a_range_goes_on_among_changes() {
    let model = numbers(1000);
    let guard = heap::pin();
    let mut seen = Vec::new();
    for entry in model.range(Unbounded, Unbounded, &guard) {
        let number = number(entry.unwrap());
        seen.push(number);
        model.remove(&number.to_be_bytes()).unwrap();
        // Behind the iterator: not seen by it any more.
        model
            .insert(
                &[&number.to_be_bytes()[..1], &[0]].concat(),
                &[number.to_be_bytes()[0], 0],
            )
            .unwrap();
    }
    assert!(seen.iter().copied().eq(0..1000));
}

/// A model whose scans fail when they reach the key of this number.
struct Failing(ModelIndex, usize);

impl Index for Failing {
    index::delegate!(0: get, write, check);

    fn scan<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Error> {
        let mut failed = false;
        self.0.scan(lower, upper, direction, guard, &mut |key, value| {
            failed = number((key, value)) as usize == self.1;
            if failed {
                ControlFlow::Break(())
            } else {
                visit(key, value)
            }
        })?;
        if failed {
            Err(heap::Error::Damaged {
                what: "test",
                offset: 64,
            }
            .into())
        } else {
            Ok(())
        }
    }
}

#[test]
fn an_error_is_returned_once_and_ends_the_iteration() {
    let failing = Failing(numbers(100), 40);
    let guard = heap::pin();
    let mut range = failing.range(Unbounded, Unbounded, &guard);
    let good = range.by_ref().take_while(Result::is_ok).count();
    assert!(good <= 40);
    assert!(range.next().is_none());
    assert!(range.next_back().is_none());
}

#[test]
fn ranges_work_through_dyn() {
    let model = numbers(10);
    let index: &dyn Index = &model;
    let guard = heap::pin();
    let up = Range::new(index, Unbounded, Unbounded, &guard).map(|entry| number(entry.unwrap()));
    assert!(up.eq(0..10));
}
