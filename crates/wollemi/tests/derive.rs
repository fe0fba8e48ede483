//! Derived keys: their bytes are ordered by `Ord`, and read back.

use proptest::prelude::*;
use std::fmt::Debug;
use wollemi::{Db, Error, Key, TypedMap};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Key)]
struct Named {
    text: String,
    number: i16,
    bytes: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Key)]
struct Pair<A, B>(A, B);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Key)]
struct Unit;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Key)]
enum Event {
    Began,
    Changed { what: String, to: u8 },
    Ended(bool, String),
}

/// Text with zeros, end marks of parts, and texts that are prefixes of others.
fn text() -> impl Strategy<Value = String> {
    "[\u{0}\u{1}a\u{7f}ÿ]{0,4}"
}

fn named() -> impl Strategy<Value = Named> {
    (text(), any::<i16>(), proptest::collection::vec(0..3u8, 0..4)).prop_map(|(text, number, bytes)| Named {
        text,
        number,
        bytes,
    })
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(Event::Began),
        (text(), any::<u8>()).prop_map(|(what, to)| Event::Changed { what, to }),
        (any::<bool>(), text()).prop_map(|(flag, text)| Event::Ended(flag, text)),
    ]
}

/// Both ways of writing keep the order and read back.
fn in_order<K: Key + Ord + Debug>(one: &K, two: &K) {
    let bytes = |key: &K| {
        let (mut whole, mut part) = (Vec::new(), Vec::new());
        key.write(&mut whole);
        key.write_part(&mut part);
        (whole, part)
    };
    let ((one_whole, mut one_part), (two_whole, two_part)) = (bytes(one), bytes(two));
    assert_eq!(one_whole.cmp(&two_whole), one.cmp(two));
    assert_eq!(one_part.cmp(&two_part), one.cmp(two));
    assert_eq!(K::read(&one_whole).as_ref(), Some(one));
    one_part.extend([0, 0, 1]);
    let (read, rest) = K::read_part(&one_part).expect("a part");
    assert_eq!((&read, rest), (one, &[0, 0, 1][..]));
}

proptest! {
    #[test]
    fn bytes_are_in_the_order_of_keys(
        named in (named(), named()),
        events in (event(), event()),
        inner in ((named(), event()), (named(), event())),
    ) {
        in_order(&named.0, &named.1);
        in_order(&events.0, &events.1);
        let pair = |(named, event): (Named, Event)| Pair(Pair(event.clone(), named), Pair(Unit, event));
        in_order(&pair(inner.0), &pair(inner.1));
    }

    /// A struct has the bytes of the tuple of its fields.
    #[test]
    fn a_struct_is_written_as_a_tuple(key in named()) {
        let (mut derived, mut tuple) = (Vec::new(), Vec::new());
        key.write(&mut derived);
        (key.text, key.number, key.bytes).write(&mut tuple);
        assert_eq!(derived, tuple);
    }

    /// Bytes that are not a key's give `None`.
    #[test]
    fn any_bytes_can_be_read(bytes in proptest::collection::vec(0..4u8, 0..8)) {
        if let Some(event) = Event::read(&bytes) {
            let mut again = Vec::new();
            event.write(&mut again);
            assert_eq!(again, bytes);
        }
    }
}

/// A unit has no bytes, and empty bytes are a unit.
#[test]
fn a_unit_has_no_bytes() -> Result<(), Error> {
    in_order(&Unit, &Unit);
    assert_eq!(Unit::read(&[0]), None);
    assert_eq!(Event::read(&[]), None);
    assert_eq!(Event::read(&[3]), None);
    let map = TypedMap::<Unit, u8>::new(Db::anonymous()?.map("m")?);
    map.upsert(&Unit, &7)?;
    assert_eq!(map.get(&Unit)?, Some(7));
    Ok(())
}
