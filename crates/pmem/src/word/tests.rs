use super::*;
use crate::{Counting, Counts, Hardware, Purpose, persist_scope};

/// A persistent word's store costs one write-back and one fence, a store past the cache a fence alone, and a word of
/// the current generation nothing.
#[test]
fn words_cost_what_they_say() {
    fn cost<'m>(media: &'m Counting, store: impl FnOnce(&PersistBatch<'_, 'm, Counting>)) -> Counts {
        let before = media.counts();
        persist_scope(media, Purpose::Node, |batch| {
            store(&batch);
            let _durable = batch.fence().durable();
        });
        media.counts() - before
    }
    let media = Counting::new(Hardware::detect());
    let (word, volatile) = (PWord::new(1), VWord::new(1));
    let stored = cost(&media, |batch| word.store(2, batch));
    assert_eq!(
        (
            stored.node.write_backs,
            stored.node.fences,
            stored.bytes,
            word.load(&media)
        ),
        (1, 1, 8, 2)
    );
    let past = cost(&media, |batch| word.store_nt(3, batch));
    assert_eq!(
        (
            past.node.write_backs,
            past.non_temporal,
            past.node.lines,
            word.load(&media)
        ),
        (0, 1, 1, 3)
    );
    let free = cost(&media, |batch| volatile.store(4, batch.media()));
    assert_eq!(
        (free.node.write_backs, free.bytes, volatile.load(&media)),
        (0, 0, 4)
    );
    let selective = cost(&media, |batch| volatile.store_persistent(5, batch));
    assert_eq!((selective.node.write_backs, volatile.load(&media)), (1, 5));
}
