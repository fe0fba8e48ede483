//! How the list identifies a root that is found in a pool.

use heap::{Heap, RecoveryStage};
use index::Index;
use pmem::{Hardware, Pool, PoolOptions};
use std::collections::HashSet;
use wollemi::indexes::{IndexKind, WithIndex};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Boxes an index, so that all have one type.
struct Boxed;

impl WithIndex for Boxed {
    type Out = Box<dyn Index>;
    fn with<I: Index + 'static>(self, index: I) -> Self::Out {
        Box::new(index)
    }
}

fn heap() -> Result<Heap, Box<dyn std::error::Error>> {
    let options = PoolOptions {
        max_size: 1 << 32,
        ..PoolOptions::default()
    };
    Ok(Heap::new(Pool::anonymous(&options, Hardware::detect())?)?)
}

/// Each index has a name of its own, by which it is found, and a description.
#[test]
fn names_are_distinct() -> Outcome {
    let mut names = HashSet::new();
    for &kind in IndexKind::ALL {
        assert!(names.insert(kind.name()), "{kind}");
        assert_eq!(kind.name().parse::<IndexKind>()?, kind);
        assert!(!kind.about().is_empty(), "{kind}");
    }
    assert!(!IndexKind::default().is_ablation());
    Ok(())
}

/// The list recognizes a root created by one index as that index, or as one that the same code can open. Every index
/// that claims to open it does, and the others do not.
#[test]
fn roots_are_opened_as_what_they_are() -> Outcome {
    let heap = heap()?;
    for made in IndexKind::ALL {
        let name = made.name().as_bytes();
        made.create(&heap, name, Boxed)?.upsert(b"key", b"value")?;
        let root = heap.root(name)?.expect("just made");
        assert!(made.holds(&root), "{made}");
        let found = IndexKind::of(&root).expect("of a known kind");
        assert!(found.holds(&root), "{made} is found as {found}");
        assert!(found == *made || made.is_ablation(), "{made} is found as {found}");
        for other in IndexKind::ALL {
            let opened = other.open(&heap, name, Boxed);
            assert_eq!(opened.is_ok(), other.holds(&root), "{made} opened as {other}");
            if let Ok(index) = opened {
                let index = index.expect("there is such a root");
                assert_eq!(
                    index.get(b"key", &heap::pin())?.as_deref(),
                    Some(&b"value"[..]),
                    "{made} opened as {other}"
                );
            }
        }
    }
    Ok(())
}

/// The kind of its roots alone identifies an index that is not an ablation.
#[test]
fn kinds_are_distinct() -> Outcome {
    let heap = heap()?;
    let mut kinds = HashSet::new();
    for kind in IndexKind::ALL.iter().filter(|kind| !kind.is_ablation()) {
        kind.create(&heap, kind.name().as_bytes(), Boxed)?;
        let root = heap.root(kind.name().as_bytes())?.expect("just made");
        assert!(kinds.insert(root.kind), "{kind} has the kind of another");
    }
    Ok(())
}

/// Recovery can trace what every index keeps alive, with one tracer for each kind of root.
#[test]
fn every_root_is_traced() -> Outcome {
    let heap = heap()?;
    for kind in IndexKind::ALL {
        let index = kind.create(&heap, kind.name().as_bytes(), Boxed)?;
        for number in 0..500u32 {
            index.upsert(&number.to_be_bytes(), &vec![7; number as usize])?;
        }
    }
    let tracers = IndexKind::tracers();
    let kinds: HashSet<u32> = tracers.iter().map(|tracer| tracer.kind()).collect();
    assert_eq!(kinds.len(), tracers.len());
    heap.recover(tracers, 1)?;
    assert_eq!(heap.wait_recovered(), RecoveryStage::Done);
    let audit = heap.audit(&IndexKind::tracers(), 1)?;
    assert!(audit.faults.is_empty() && audit.leaked() == 0, "{audit:?}");
    Ok(())
}
