// A minimal heap for the tests of tokens and for their documentation: it hands out the bytes of an anonymous pool in
// order, and records what was given back.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use wollemi_pmem::{
    Chunk, Counting, Draft, Hardware, Lender, Media, Offset, PSlot, PWord, PersistBatch, Persistent, Pool,
    PoolOptions,
};

wollemi_pmem::persistent! {
    /// A node of one line.
    #[derive(Debug, Default)]
    pub struct Node [size: 64, align: 64] {
        pub key: PWord,
        pub child: PSlot,
        pub sibling: PSlot,
        pub rest: [PWord; 5],
    }
}

pub struct Toy<M: Media = Counting> {
    pub pool: Pool<M>,
    next: AtomicU64,
    pub given_back: Mutex<Vec<(Offset, usize)>>,
}

impl Toy {
    pub fn new() -> Toy {
        Toy::with(Counting::new(Hardware::detect()))
    }
}

impl<M: Media> Toy<M> {
    pub fn with(media: M) -> Toy<M> {
        let pool = Pool::anonymous(&PoolOptions::default(), media).expect("memory");
        let next = AtomicU64::new(pool.directory().0.get());
        let given_back = Mutex::new(Vec::new());
        Toy {
            pool,
            next,
            given_back,
        }
    }

    pub fn media(&self) -> &M {
        self.pool.media()
    }

    /// The object at `offset`.
    pub fn at<T: Persistent>(&self, offset: Offset) -> &T {
        // SAFETY: the toy uses no byte twice, and a test reads no object of which it holds a draft.
        unsafe { self.pool.at(offset) }.expect("inside")
    }

    pub fn chunk(&self, len: usize) -> Chunk<'_> {
        let offset = self
            .next
            .fetch_add(len.next_multiple_of(64) as u64, Ordering::Relaxed);
        let offset = Offset::new(offset).expect("a multiple of 64");
        let start = self.pool.chunk_start(offset, len).expect("room");
        // SAFETY: these bytes of the pool are handed out only once.
        unsafe { Chunk::new(start, offset, len, self) }
    }

    pub fn draft<'e>(&self, key: u64, batch: &PersistBatch<'e, '_, M>) -> Draft<'e, '_, Node> {
        let node = Node {
            key: PWord::new(key),
            ..Node::default()
        };
        Draft::new(self.chunk(size_of::<Node>()), node, batch)
    }
}

impl<M: Media> Lender for Toy<M> {
    fn give_back(&self, offset: Offset, len: usize) {
        self.given_back.lock().expect("no panic").push((offset, len));
    }
}
