//! Room that writes make for those that come later. A program of its own: guards of other tests would keep it back.

use std::ops::ControlFlow;
use wollemi::{Action, Edit, Edits, Error, IndexError, Options};

/// Gives each key the same large value.
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

/// One after the other: the guards of each would keep the other's back.
#[test]
fn what_is_replaced_makes_room() -> Result<(), Error> {
    what_several_writes_replace_makes_room()?;
    what_batches_replace_makes_room()
}

/// The space that they free serves later ones, as it does where they are written one by one.
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

/// What batches replace serves those that come later, too.
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
