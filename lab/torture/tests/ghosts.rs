//! The judge detects a removed key that a get still finds, and no scan.

use crashkit::{Crash, Explorer, Failure, History, Settings};
use heap::Heap;
use index::{Error, Guard, Index, Value};
use wollemi::indexes::{IndexKind, WithIndex};
use wollemi_torture::map::{OfIndex, Op};

const STAYS: &[u8] = b"stays";
const GOES: &[u8] = b"goes";
const LATER: &[u8] = b"later";

/// An index of which a get finds [`GOES`], absent or not, as soon as [`LATER`] is present.
struct Haunted(Box<dyn Index>);

impl Index for Haunted {
    index::delegate!(0: write, scan, check);

    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<Value<'g>>, Error> {
        match self.0.get(LATER, guard)? {
            Some(_) if key == GOES => self.0.get(STAYS, guard),
            _ => self.0.get(key, guard),
        }
    }
}

/// Boxes the index, haunted or not.
struct Boxed(bool);

impl WithIndex for Boxed {
    type Out = Box<dyn Index>;
    fn with<I: Index + 'static>(self, index: I) -> Box<dyn Index> {
        match self.0 {
            true => Box::new(Haunted(Box::new(index))),
            false => Box::new(index),
        }
    }
}

/// Explores a history that removes a key and then writes others. The index is haunted once it was opened.
fn explore(haunted: bool) -> Result<(), Box<Failure>> {
    const ROOT: &[u8] = b"haunted";
    let kind = IndexKind::Roart;
    let create = move |heap: &Heap<Crash>| kind.create(heap, ROOT, Boxed(false));
    let open = move |heap: &Heap<Crash>| kind.open(heap, ROOT, Boxed(haunted));
    let subject = OfIndex::new("haunted", create, open, IndexKind::tracers());
    let settings = Settings {
        deep_share: 0,
        again_share: 0,
        kill_share: 0,
        ..Settings::default()
    };
    let mut explorer = Explorer::new(subject, settings).expect("memory");
    let insert = |key: &[u8]| Op::Insert(key.into(), b"a value"[..].into());
    let mut ops = vec![insert(STAYS), insert(GOES), Op::Remove(GOES.into())];
    ops.extend((0..6).map(|n| Op::Upsert(LATER.into(), [n; 20][..].into())));
    explorer.explore(&History {
        seed: 1,
        ops,
        ..History::default()
    })
}

/// After each crash the judge gets keys that no allowed state has.
#[test]
fn a_removed_key_is_not_found() {
    explore(false).unwrap_or_else(|failure| panic!("{failure}"));
    let failure = explore(true).expect_err("a removed key is found");
    assert!(failure.message.contains("a get finds \"goes\""), "{failure}");
}
