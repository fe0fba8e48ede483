//! Accounting: used + free + unswept = reserved, and no byte is counted twice.

mod toy;

use pmem::{Counting, Hardware, Media, Offset, PWord, Pool, PoolOptions, Purpose, persist_scope, persistent};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use toy::{Random, seed, settle};
use wollemi_heap::{Error, Heap, HeapStats, footprint, pin};

const PAGE: u64 = 64 << 10;

/// Upper bound on any wait for other threads; beyond it the test counts as hung.
const PATIENCE: Duration = Duration::from_secs(120);

persistent! {
    struct Blob [size: 8] {
        mark: PWord,
    }
}

fn anonymous<M: Media>(max_size: u64, media: M) -> Heap<M> {
    let options = PoolOptions {
        page_size: PAGE,
        max_size,
        ..PoolOptions::default()
    };
    Heap::new(Pool::anonymous(&options, media).unwrap()).unwrap()
}

/// Allocates an object of `len` bytes that stays, all of its bytes set to `mark`.
fn allocate<M: Media>(heap: &Heap<M>, len: usize, mark: u8) -> Result<Offset, Error> {
    persist_scope(heap.media(), Purpose::Node, |batch| {
        let blob = Blob {
            mark: PWord::new(u64::from_ne_bytes([mark; 8])),
        };
        let mut draft = heap.draft(blob, len - 8, &batch)?;
        draft.tail_mut().fill(mark);
        let offset = draft.offset();
        std::mem::forget(draft);
        Ok(offset)
    })
}

/// The `len` bytes of the object at `offset`.
fn bytes<M: Media>(heap: &Heap<M>, offset: Offset, len: usize) -> &[u8] {
    // SAFETY: a test reads objects that it has allocated and not retired, or that a guard of its own still protects.
    unsafe { heap.access() }.bytes(offset, len).unwrap()
}

fn retire<M: Media>(heap: &Heap<M>, offset: Offset, len: usize) {
    let len = footprint::<Blob>(len - 8).unwrap();
    // SAFETY: nothing has ever led to the object, and only the test that drafted it uses it. (Where a test retires one
    // twice, nothing uses the chunk in between.)
    unsafe { heap.retire(&pin(), offset, len) };
}

/// Checks the sum. Epochs belong to the process, so a thread of another test may be freeing objects that this heap
/// has retired: between two accounts such an object is in neither, so a failed check is repeated.
fn assert_adds_up<M: Media>(heap: &Heap<M>, why: &str) {
    const ATTEMPTS: usize = 1000;
    let adds_up = |stats: &HeapStats| stats.used + stats.free + stats.unswept == stats.reserved;
    let mut stats = heap.stats();
    for _ in 1..ATTEMPTS {
        if adds_up(&stats) {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
        stats = heap.stats();
    }
    assert_eq!(
        stats.used + stats.free + stats.unswept,
        stats.reserved,
        "{why}: {stats:?}"
    );
    assert_eq!(stats.reserved, heap.pool().len());
}

/// Objects in use: start, and (length, mark).
type Model = BTreeMap<u64, (usize, u8)>;

fn insert(model: &mut Model, offset: Offset, len: usize, mark: u8) {
    let start = offset.get();
    let end = start + len as u64;
    let before = model.range(..end).next_back();
    if let Some((&other, &(other_len, _))) = before {
        assert!(
            other + other_len as u64 <= start,
            "{start:#x}..{end:#x} was handed out inside {other_len} bytes at {other:#x}"
        );
    }
    model.insert(start, (len, mark));
}

/// Takes a random object out of the model, and checks that no other thread wrote to it.
fn take<M: Media>(heap: &Heap<M>, model: &mut Model, random: &mut Random) -> Option<(Offset, usize)> {
    let (&last, _) = model.last_key_value()?;
    let (&start, &(len, mark)) = model.range(random.below(last + 1)..).next()?;
    model.remove(&start);
    let offset = Offset::new(start).unwrap();
    let bytes = bytes(heap, offset, len);
    assert!(
        bytes.iter().all(|&byte| byte == mark),
        "{len} bytes at {start:#x} were overwritten"
    );
    Some((offset, len))
}

fn random_len(random: &mut Random) -> usize {
    8 + match random.below(100) {
        0..=69 => random.below(120),
        70..=94 => random.below(3000),
        95..=97 => random.below(33_000),
        _ => random.below(5 * PAGE),
    } as usize
}

fn churn<M: Media>(heap: &Heap<M>, model: &Mutex<Model>, mut random: Random, turns: usize, keep: usize) {
    for _ in 0..turns {
        let mark = random.next() as u8;
        if random.below(2) == 0 && model.lock().unwrap().len() < keep {
            let len = random_len(&mut random);
            let offset = allocate(heap, len, mark).unwrap();
            insert(&mut model.lock().unwrap(), offset, len, mark);
        } else {
            let taken = take(heap, &mut model.lock().unwrap(), &mut random);
            if let Some((offset, len)) = taken {
                retire(heap, offset, len);
            }
        }
    }
}

/// Under random allocation and retirement by threads that come and go, no two objects overlap, nothing in use is
/// overwritten, and the accounts add up whenever all threads are idle. At the end everything is free, as one run.
#[test]
fn accounts_add_up_across_threads_that_end() {
    let seed = seed();
    let mut random = Random(seed);
    let heap = anonymous(4 << 30, Hardware::detect());
    let model = Mutex::new(Model::new());
    for round in 0..12 {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    let random = Random(random.next() | 1);
                    scope.spawn(|| churn(&heap, &model, random, 3000, 2000))
                })
                .collect();
            for thread in threads {
                thread.join().unwrap();
            }
        });
        let why = format!("seed {seed}, round {round}");
        assert_adds_up(&heap, &why);
        settle(&heap);
        assert_adds_up(&heap, &why);
        assert_eq!(heap.stats().objects, model.lock().unwrap().len() as u64, "{why}");
    }
    let model = model.into_inner().unwrap();
    for (&start, &(len, _)) in &model {
        retire(&heap, Offset::new(start).unwrap(), len);
    }
    settle(&heap);
    let stats = heap.stats();
    assert_eq!((stats.objects, stats.used), (0, PAGE), "seed {seed}: {stats:?}");
    assert_eq!(stats.free, stats.reserved - PAGE);
    assert_eq!(stats.free_runs, 1, "free pages are one run: {stats:?}");
}

/// Drafts that are dropped give their chunks back.
#[test]
fn dropped_drafts_leave_nothing() {
    let heap = anonymous(1 << 30, Hardware::detect());
    let mut random = Random(3);
    for _ in 0..5000 {
        persist_scope(heap.media(), Purpose::Node, |batch| {
            let len = random_len(&mut random);
            let kept = heap.draft(Blob { mark: PWord::new(0) }, len, &batch).unwrap();
            let flushed = heap
                .draft(Blob { mark: PWord::new(0) }, len, &batch)
                .unwrap()
                .flush(&batch);
            let pair = heap
                .draft_pair(
                    Blob { mark: PWord::new(0) },
                    8,
                    Blob { mark: PWord::new(0) },
                    20,
                    &batch,
                )
                .unwrap();
            drop((kept, flushed, pair));
        });
    }
    let stats = heap.stats();
    assert_eq!(stats.objects, 0, "{stats:?}");
    assert_adds_up(&heap, "after dropped drafts");
    assert!(stats.reserved < 32 << 20, "{stats:?}");
}

/// Large objects lie in contiguous pages; their space is reused for large and small objects, and coalesces.
#[test]
fn large_objects_reuse_and_coalesce() {
    let heap = anonymous(1 << 30, Hardware::detect());
    let sizes: Vec<usize> = (1..=64).map(|pages| (pages * PAGE) as usize - 17).collect();
    let objects: Vec<Offset> = sizes
        .iter()
        .map(|&len| allocate(&heap, len, 5).unwrap())
        .collect();
    let allocated = heap.pool().allocated().load(heap.media());
    for (&offset, &len) in objects.iter().zip(&sizes) {
        assert_eq!(offset.get() % PAGE, 0);
        assert!(bytes(&heap, offset, len).iter().all(|&byte| byte == 5));
    }
    // Free every other one: as many runs. Their space serves small objects, and large ones that fit.
    for (&offset, &len) in objects.iter().zip(&sizes).step_by(2) {
        retire(&heap, offset, len);
    }
    settle(&heap);
    assert_eq!(heap.stats().free_runs, 32);
    let again: Vec<Offset> = sizes
        .iter()
        .step_by(2)
        .rev()
        .map(|&len| allocate(&heap, len, 6).unwrap())
        .collect();
    assert_eq!(heap.stats().free_runs, 0);
    for (&offset, &len) in again.iter().zip(sizes.iter().step_by(2).rev()) {
        retire(&heap, offset, len);
    }
    for (&offset, &len) in objects.iter().zip(&sizes).skip(1).step_by(2) {
        retire(&heap, offset, len);
    }
    settle(&heap);
    let stats = heap.stats();
    assert_eq!((stats.free_runs, stats.objects), (1, 0), "{stats:?}");
    let all = allocate(&heap, (allocated - PAGE) as usize, 9).unwrap();
    assert_eq!(all.get(), PAGE, "the whole is one run again");
    assert_eq!(heap.pool().allocated().load(heap.media()), allocated);
    assert_adds_up(&heap, "with one object of all pages");
}

/// A large object that does not fit the last run takes it and new pages behind it.
#[test]
fn the_last_run_is_lengthened() {
    let heap = anonymous(1 << 30, Hardware::detect());
    let first = allocate(&heap, 3 * PAGE as usize, 1).unwrap();
    retire(&heap, first, 3 * PAGE as usize);
    settle(&heap);
    let second = allocate(&heap, 5 * PAGE as usize, 2).unwrap();
    assert_eq!(first, second);
    assert_eq!(heap.pool().allocated().load(heap.media()), 6 * PAGE);
}

/// A full pool gives an error that says so, for small and large objects, and for several threads at once; retired
/// space becomes available again.
#[test]
fn a_full_pool_is_an_error_and_space_comes_back() {
    let heap = anonymous(16 * PAGE, Hardware::detect());
    let fill = || {
        let mut mine = Vec::new();
        loop {
            match allocate(&heap, 500, 4) {
                Ok(offset) => mine.push(offset),
                Err(Error::Full { bytes, source, .. }) => {
                    assert_eq!(bytes, 512);
                    assert!(source.to_string().contains("size limit"), "{source}");
                    return mine;
                }
                Err(other) => panic!("{other}"),
            }
        }
    };
    let mut counts = Vec::new();
    for _ in 0..5 {
        let all: Vec<Offset> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(fill)).collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap())
                .collect()
        });
        assert_adds_up(&heap, "full");
        assert!(matches!(
            allocate(&heap, 8 * PAGE as usize, 1),
            Err(Error::Full { .. })
        ));
        assert!(matches!(allocate(&heap, 1 << 40, 1), Err(Error::Full { .. })));
        // Other operations go on: existing objects can be read and retired.
        counts.push(all.len());
        for offset in all {
            assert_eq!(bytes(&heap, offset, 500), [4; 500]);
            retire(&heap, offset, 500);
        }
        settle(&heap);
        let large = allocate(&heap, 15 * PAGE as usize, 1).unwrap();
        retire(&heap, large, 15 * PAGE as usize);
        settle(&heap);
    }
    assert!(
        counts.iter().all(|&count| count >= 15 * 128 - 3 * 64),
        "{counts:?}"
    );
    let absurd = persist_scope(heap.media(), Purpose::Node, |batch| {
        heap.draft(Blob { mark: PWord::new(0) }, usize::MAX - 4, &batch)
            .map(drop)
    });
    assert!(matches!(absurd, Err(Error::Full { .. })));
}

/// In a full pool the last free chunks are available, however few of them a page has.
#[test]
fn a_full_pool_gives_its_last_chunks() {
    let heap = anonymous(6 * PAGE, Hardware::detect());
    let fill = || std::iter::from_fn(|| allocate(&heap, 64, 5).ok());
    let all: Vec<Offset> = fill().collect();
    assert_eq!(all.len() as u64, 5 * PAGE / 64);
    // 16 of a page's 1024: too few to claim from it while there are other pages.
    let few: BTreeSet<Offset> = all.into_iter().step_by(61).collect();
    for &offset in &few {
        retire(&heap, offset, 64);
    }
    settle(&heap);
    assert_eq!(fill().collect::<BTreeSet<Offset>>(), few);
    assert_adds_up(&heap, "full again");
}

/// A page that was full is claimed from again when a sixteenth of its chunks is free, and not before.
#[test]
fn a_page_opens_when_a_sixteenth_is_free() {
    const CHUNKS: usize = PAGE as usize / 64;
    let heap = anonymous(1 << 30, Hardware::detect());
    let page = |offset: Offset| offset.get() / PAGE;
    let first: Vec<Offset> = (0..CHUNKS).map(|_| allocate(&heap, 64, 7).unwrap()).collect();
    assert!(first.iter().all(|&offset| page(offset) == page(first[0])));
    let (last, few) = first[..CHUNKS / 16].split_last().unwrap();
    for &offset in few {
        retire(&heap, offset, 64);
    }
    settle(&heap);
    let second: Vec<Offset> = (0..CHUNKS).map(|_| allocate(&heap, 64, 7).unwrap()).collect();
    assert!(second.iter().all(|&offset| page(offset) == page(second[0])));
    assert_ne!(page(first[0]), page(second[0]));
    retire(&heap, *last, 64);
    settle(&heap);
    let third: BTreeSet<Offset> = (0..CHUNKS / 16)
        .map(|_| allocate(&heap, 64, 7).unwrap())
        .collect();
    assert_eq!(third, first[..CHUNKS / 16].iter().copied().collect());
}

/// Where objects are replaced for long, the pool grows by a sixteenth, and by the objects that wait for their epoch.
#[test]
fn replacing_grows_a_pool_by_little() {
    const ROUND: usize = 1000;
    let seed = seed();
    let mut random = Random(seed);
    let heap = anonymous(1 << 30, Hardware::detect());
    let mut live: Vec<Offset> = (0..20 * 1024).map(|_| allocate(&heap, 64, 6).unwrap()).collect();
    let before = heap.stats().reserved;
    for _ in 0..100 {
        for _ in 0..ROUND {
            let i = random.below(live.len() as u64) as usize;
            let old = std::mem::replace(&mut live[i], allocate(&heap, 64, 6).unwrap());
            retire(&heap, old, 64);
        }
        settle(&heap);
    }
    let bound = before + before / 16 + 64 * ROUND as u64 + 2 * PAGE;
    let stats = heap.stats();
    assert!(
        stats.reserved <= bound,
        "seed {seed}: {before} bytes became {stats:?}"
    );
    assert_eq!(stats.objects, live.len() as u64, "seed {seed}");
}

/// Pairs fill the page that was carved for them, although it lies below the class's other open pages.
#[test]
fn pairs_fill_the_page_carved_for_them() {
    const FREE: u64 = 40;
    let heap = anonymous(1 << 30, Hardware::detect());
    let len = (FREE * PAGE) as usize;
    let large = allocate(&heap, len, 1).unwrap();
    // Pages above, in which every second chunk is free.
    let chunks: Vec<Offset> = (0..8 * PAGE / 32)
        .map(|_| allocate(&heap, 32, 2).unwrap())
        .collect();
    for &chunk in chunks.iter().filter(|chunk| chunk.get() % 64 == 0) {
        retire(&heap, chunk, 32);
    }
    retire(&heap, large, len);
    settle(&heap);
    assert!(heap.stats().longest_free_run >= FREE * PAGE);
    let blob = || Blob { mark: PWord::new(3) };
    // As many as fill a page and a half.
    for _ in 0..PAGE * 3 / 2 / 64 {
        persist_scope(heap.media(), Purpose::Node, |batch| {
            std::mem::forget(heap.draft_pair(blob(), 24, blob(), 24, &batch).unwrap());
        });
    }
    let left = heap.stats().longest_free_run;
    assert!(
        left >= (FREE - 3) * PAGE,
        "{left} bytes are left of {}",
        FREE * PAGE
    );
}

/// Retirement waits for the guards held at that time.
#[test]
fn retired_objects_stay_while_a_guard_is_held() {
    let heap = anonymous(1 << 30, Hardware::detect());
    let objects: Vec<Offset> = (0..1000).map(|_| allocate(&heap, 100, 8).unwrap()).collect();
    let reader = pin();
    for &offset in &objects {
        retire(&heap, offset, 100);
    }
    for _ in 0..5000 {
        allocate(&heap, 100, 9).unwrap();
        pin().flush();
    }
    for &offset in &objects {
        assert_eq!(bytes(&heap, offset, 100), [8; 100]);
    }
    drop(reader);
    settle(&heap);
    assert_eq!(heap.stats().objects, 5000);
}

/// Allocation persists the end of the allocated pages, with one write-back and one fence for each new page or run of
/// pages, and nothing else; freeing persists nothing.
#[test]
fn only_new_pages_are_persisted() {
    let media = Counting::new(Hardware::detect());
    let heap = anonymous(4 << 30, media.clone());
    let mut random = Random(11);
    let mut model = Model::new();
    let mut taken = 0;
    let before = media.counts();
    for _ in 0..20_000 {
        let allocated = heap.pool().allocated().load(heap.media());
        let len = random_len(&mut random);
        let offset = allocate(&heap, len, 1).unwrap();
        taken += u64::from(heap.pool().allocated().load(heap.media()) != allocated);
        insert(&mut model, offset, len, 1);
        if random.below(3) == 0 {
            let (offset, len) = take(&heap, &mut model, &mut random).unwrap();
            retire(&heap, offset, len);
        }
    }
    let counts = media.counts() - before;
    assert!(taken > 50);
    assert_eq!((counts.alloc.write_backs, counts.alloc.fences), (taken, taken));
    assert_eq!((counts.node.write_backs, counts.log.write_backs), (0, 0));
    assert_eq!(counts.total().fences, taken);
}

/// A pool that is closed and opened again has all of its pages to sweep, and the accounts add up before, during and
/// after; without roots, everything is free then.
#[test]
fn accounts_add_up_across_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let options = PoolOptions {
        page_size: PAGE,
        max_size: 1 << 30,
        ..PoolOptions::default()
    };
    let mut random = Random(5);
    for round in 0..4 {
        let heap = Heap::new(Pool::open_or_create(&path, &options, Hardware::detect()).unwrap()).unwrap();
        assert_adds_up(&heap, "opened");
        let stats = heap.stats();
        assert_eq!(stats.unswept + PAGE, heap.pool().allocated().load(heap.media()));
        let model = Mutex::new(Model::new());
        churn(&heap, &model, Random(random.next() | 1), 2000, 500);
        assert_adds_up(&heap, "used before recovery");
        heap.recover(vec![], 2).unwrap();
        churn(&heap, &model, Random(random.next() | 1), 2000, 500);
        heap.wait_recovered();
        churn(&heap, &model, Random(random.next() | 1), 2000, 500);
        settle(&heap);
        assert_adds_up(&heap, "recovered");
        let stats = heap.stats();
        assert_eq!(
            (stats.unswept, stats.objects),
            (0, model.lock().unwrap().len() as u64),
            "{stats:?}"
        );
        assert!(round == 0 || stats.reserved < 200 << 20, "{stats:?}");
        heap.close().unwrap();
    }
}

/// One thread may use several heaps in turn: each keeps its own chunks and its own accounts.
#[test]
fn heaps_do_not_mix() {
    let heaps: Vec<_> = (0..5).map(|_| anonymous(1 << 30, Hardware::detect())).collect();
    let mut models = vec![Model::new(); heaps.len()];
    let mut random = Random(13);
    for _ in 0..5000 {
        let which = random.below(heaps.len() as u64) as usize;
        let len = random_len(&mut random);
        let mark = random.next() as u8;
        insert(
            &mut models[which],
            allocate(&heaps[which], len, mark).unwrap(),
            len,
            mark,
        );
    }
    for (heap, mut model) in heaps.iter().zip(models) {
        assert_eq!(heap.stats().objects, model.len() as u64);
        while let Some((offset, len)) = take(heap, &mut model, &mut random) {
            retire(heap, offset, len);
        }
        settle(heap);
        assert_eq!(heap.stats().objects, 0);
        assert_adds_up(heap, "all retired");
    }
}

/// A thread may allocate while its thread-local values are being dropped, before and after its claims were given
/// back.
#[test]
fn threads_may_allocate_while_they_end() {
    struct Late(Heap);
    impl Drop for Late {
        fn drop(&mut self) {
            for _ in 0..100 {
                allocate(&self.0, 40, 2).unwrap();
            }
        }
    }
    thread_local! {
        static LATE: std::cell::RefCell<Option<Late>> = const { std::cell::RefCell::new(None) };
    }
    let heap = anonymous(1 << 30, Hardware::detect());
    for early in [true, false] {
        let mine = heap.clone();
        let thread = std::thread::spawn(move || {
            let put_late = || LATE.set(Some(Late(mine.clone())));
            if early {
                put_late();
            }
            allocate(&mine, 40, 1).unwrap();
            if !early {
                put_late();
            }
        });
        thread.join().unwrap();
    }
    assert_eq!(heap.stats().objects, 202);
    assert_adds_up(&heap, "after late allocations");
    // The threads' claims serve others: 202 chunks of 64 bytes fit a page.
    assert_eq!(heap.pool().allocated().load(heap.media()), 2 * PAGE);
    for _ in 202..PAGE / 64 {
        allocate(&heap, 40, 3).unwrap();
    }
    assert_eq!(heap.pool().allocated().load(heap.media()), 2 * PAGE);
}

/// A chunk that is freed twice, as two links to it in a damaged pool would cause, is a fault, not a panic; and it is
/// handed out once.
#[test]
fn what_is_freed_twice_is_a_fault() {
    for len in [100, 3 * PAGE as usize] {
        let heap = anonymous(1 << 30, Hardware::detect());
        heap.recover(Vec::new(), 1).unwrap();
        heap.wait_recovered();
        let object = allocate(&heap, len, 1).unwrap();
        retire(&heap, object, len);
        settle(&heap);
        assert_eq!(heap.audit(&Vec::new(), 1).unwrap().faults, [""; 0]);
        retire(&heap, object, len);
        settle(&heap);
        assert_eq!(heap.audit(&Vec::new(), 1).unwrap().faults.len(), 1);
        assert_ne!(allocate(&heap, len, 2).unwrap(), allocate(&heap, len, 3).unwrap());
    }
}

/// A pool that cannot grow keeps the blocks of the free pages at its end.
#[test]
fn what_cannot_grow_keeps_its_last_pages() {
    let heap = anonymous(8 * PAGE, Hardware::detect());
    let one = PAGE as usize - 64;
    let mut last = None;
    while let Ok(offset) = allocate(&heap, one, 1) {
        last = last.max(Some(offset));
    }
    retire(&heap, last.expect("room for one"), one);
    settle(&heap);
    let two = allocate(&heap, 2 * one, 2);
    assert!(matches!(two, Err(Error::Full { .. })), "{two:?}");
    allocate(&heap, one, 3).expect("a page is free");
    assert_adds_up(&heap, "after a growth that failed");
}

/// Allocates objects and retires all of them under one guard, as a commit does.
fn retire_together(heap: &Heap<Hardware>, count: usize) -> Result<(), Error> {
    let guard = pin();
    for _ in 0..count {
        let offset = allocate(heap, 64, 1)?;
        let len = footprint::<Blob>(64 - 8).unwrap();
        // SAFETY: nothing has ever led to the object, and only this function uses it.
        unsafe { heap.retire(&guard, offset, len) };
    }
    Ok(())
}

/// Threads that retire thousands of objects under each guard do not let the garbage grow.
#[test]
fn garbage_of_long_guards_is_freed() {
    const TOGETHER: usize = 4000;
    let heap = anonymous(1 << 30, Hardware::detect());
    let begin = Instant::now();
    // Guards of other tests in this process may delay it.
    loop {
        for _ in 0..20 {
            retire_together(&heap, TOGETHER).expect("room");
        }
        let retired = heap.stats().retired;
        if retired < 10 * TOGETHER as u64 {
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "{retired} objects wait to be freed");
    }
}

/// Large objects that are retired one by one do not pile up either.
#[test]
fn large_garbage_is_freed() {
    const LARGE: usize = 4 << 20;
    let begin = Instant::now();
    // Guards of other tests in this process may delay it.
    loop {
        let heap = anonymous(2 << 30, Hardware::detect());
        for _ in 0..200 {
            let offset = allocate(&heap, LARGE, 1).expect("room");
            retire(&heap, offset, LARGE);
        }
        let len = heap.pool().len();
        if len < 32 * LARGE as u64 {
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "{len} bytes for one object");
    }
}
