//! A snapshot's memory, as counted by the program's allocator. A program of its own, so that no other test allocates.

use cap::Cap;
use std::alloc::System;
use wollemi::{Db, Options};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

const KEYS: u32 = 2000;
const VALUE: usize = 4000;

/// Minimum bytes of all copies.
const COPIES: usize = KEYS as usize * VALUE;
/// Maximum bytes that may remain when all snapshots are dropped.
const MAX_LEFT: usize = COPIES / 16;

/// Each snapshot uses as much memory for later changes as it reports, and frees it when it is dropped: also if other
/// snapshots still exist, if some of it was being read, and if it was outgrown.
#[test]
fn a_dropped_snapshot_gives_its_memory_back() -> Result<(), Box<dyn std::error::Error>> {
    let db: Db = Options::new().recovery_threads(0).anonymous()?;
    let map = db.map("m")?;
    let change = |value: u8| map.load((0..KEYS).map(|i| (i.to_be_bytes(), vec![value; VALUE])));
    change(1)?;
    change(2)?;
    let before = ALLOCATOR.allocated();
    let taken = || ALLOCATOR.allocated().saturating_sub(before);

    for round in 0..3 {
        let first = db.snapshot()?;
        change(3)?;
        let of_first = taken();
        assert!((COPIES..COPIES * 2).contains(&of_first), "{of_first}");
        assert!((COPIES..COPIES * 2).contains(&(first.memory() as usize)));

        let (second, bounded) = (db.snapshot()?, db.snapshot_within(COPIES as u64 / 2)?);
        change(4)?;
        // Two snapshots share the images of one change; the third has only its own entries.
        let of_all = taken() - of_first;
        assert!((COPIES..COPIES * 2).contains(&of_all), "{of_all}");
        assert!(bounded.view(&map)?.get([]).is_err());
        drop(bounded);

        let view = first.view(&map)?;
        let half: Vec<_> = view.iter().take(KEYS as usize / 2).collect::<Result<_, _>>()?;
        assert!(
            half.iter()
                .all(|(_, value)| *value == [if round == 0 { 2 } else { 4 }; VALUE])
        );
        drop(half);
        drop(first);
        assert!(taken() >= COPIES, "its view still shows what was there");
        drop(view);
        let left = taken();
        assert!((COPIES..COPIES + COPIES / 2).contains(&left), "{left}");
        drop(second);
        assert!(taken() < MAX_LEFT, "{} bytes are left", taken());
    }
    Ok(())
}
