//! Replaced values make room for later writes. A program of its own, because guards of other tests would keep it back.

use std::ops::ControlFlow;
use wollemi::{Action, Edit, Edits, Error, IndexError, Options, RecoveryState};

/// Puts the same large value under each key.
struct Large(Vec<u8>);

impl Edit for Large {
    fn decide(&mut self, _: Option<&[u8]>) -> Action {
        Action::Put
    }
    fn value(&self) -> &[u8] {
        &self.0
    }
}

impl Edits for Large {
    fn edit(&mut self, _: usize) -> &mut dyn Edit {
        self
    }
    fn done(&mut self, _: usize, done: Result<Action, IndexError>) -> ControlFlow<()> {
        assert_eq!(done.expect("what was replaced makes room"), Action::Put);
        ControlFlow::Continue(())
    }
}

/// In sequence, because the guards of each part would keep the other's space back.
#[test]
fn what_is_replaced_makes_room() -> Result<(), Error> {
    what_several_writes_replace_makes_room()?;
    what_batches_replace_makes_room()?;
    what_is_replaced_makes_room_without_recovery()
}

/// Grouped writes free space for later ones, like single writes.
fn what_several_writes_replace_makes_room() -> Result<(), Error> {
    let db = Options::new().max_size(16 << 20).anonymous()?;
    db.wait_recovered();
    let map = db.map("m")?;
    let keys: Vec<_> = (0..64u8).map(|i| vec![b'k', i % 8]).collect();
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    for key in &keys {
        map.upsert(key, vec![1; 500_000])?;
    }
    map.index().write_many(&keys, &mut Large(vec![2; 500_000]));
    for key in &keys {
        assert_eq!(map.get(key)?, Some(vec![2; 500_000]));
    }
    Ok(())
}

/// Values that batches replace make room for later writes too.
fn what_batches_replace_makes_room() -> Result<(), Error> {
    let db = Options::new().max_size(16 << 20).anonymous()?;
    db.wait_recovered();
    let map = db.map("m")?;
    for i in 0..64u8 {
        let mut batch = db.batch();
        for key in [i % 4, 4 + i % 4] {
            batch.upsert(&map, [key], vec![i; 500_000]);
        }
        assert!(batch.commit()?);
        assert_eq!(map.get([i % 4])?, Some(vec![i; 500_000]));
    }
    Ok(())
}

/// Without a call to recovery, space from before the opening stays occupied, while values written since make room when
/// they are replaced. Recovery then frees what was dead before.
fn what_is_replaced_makes_room_without_recovery() -> Result<(), Error> {
    const DEAD: u64 = 6 << 20;
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("a.pool");
    let options = || Options::new().max_size(16 << 20).recovery_threads(0);
    {
        let map = options().open(&path)?.map("m")?;
        map.load((0..DEAD / 1000).map(|i| (i.to_be_bytes(), vec![1; 1000])))?;
        for i in 1..DEAD / 1000 {
            assert!(map.remove(i.to_be_bytes())?);
        }
    }
    let db = options().open(&path)?;
    let map = db.map("m")?;
    for i in 0..200_000u64 {
        map.upsert("often", i.to_be_bytes().repeat(25))?;
    }
    for i in 0..40 {
        map.upsert("large", vec![i; 500_000])?;
    }
    assert_eq!(db.recovery_progress().state, RecoveryState::Idle);
    let before = db.stats()?.space;
    assert!(before.unswept > DEAD, "{before:?}");

    assert_eq!(db.recover().state, RecoveryState::Done);
    let space = db.stats()?.space;
    assert_eq!(space.unswept, 0);
    assert!(space.free > before.free + DEAD, "{space:?}, before {before:?}");
    let check = db.check()?;
    assert!(check.is_clean(), "{check:?}");
    assert_eq!(map.count()?, 3);
    assert_eq!(map.get(0u64.to_be_bytes())?, Some(vec![1; 1000]));
    assert_eq!(map.get("often")?, Some(199_999u64.to_be_bytes().repeat(25)));
    assert_eq!(map.get("large")?, Some(vec![39; 500_000]));
    Ok(())
}
