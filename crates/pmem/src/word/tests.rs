use super::*;
use crate::{Counting, Counts, Hardware, Purpose, persist_scope};

/// An offset is a multiple of 16 below 2^48 and not zero; nothing else is one.
#[test]
fn offsets_are_checked() {
    for bytes in [16, 32, 4096, (1 << 48) - 16] {
        assert_eq!(Offset::new(bytes).map(Offset::get), Some(bytes));
    }
    for bytes in [0, 1, 8, 15, 17, (1 << 48) - 1, 1 << 48, u64::MAX, !15] {
        assert_eq!(Offset::new(bytes), None);
    }
}

/// Offset, tag and mark share a word without touching each other, at every bit.
#[test]
fn links_keep_their_parts_apart() {
    for bit in 0..64 {
        let word = 1u64 << bit;
        let link = Link::from_word(word);
        let offset = link.offset().map_or(0, Offset::get);
        assert_eq!(
            offset | link.tag().get(),
            if word == Link::MARK { 0 } else { word }
        );
        assert!(offset == 0 || link.tag() == Tag::default());
        assert_eq!(link.is_null(), word == Link::MARK);
        let tagged = link.with_tag(Tag::new(u64::MAX));
        assert_eq!(tagged.offset(), link.offset());
        assert_eq!(tagged.tag().get(), 0xffff_0000_0000_000e);
        assert_eq!(tagged.with_tag(link.tag()).bits(), link.bits());
    }
}

/// A persistent word's store is durable by one write-back and one fence, a store past the cache by a fence alone, and
/// a word of the generation costs nothing.
#[test]
fn words_cost_what_they_say() {
    let media = Counting::new(Hardware::detect());
    let (word, volatile) = (PWord::new(1), VWord::new(1));
    let cost = |store: &dyn Fn(&Batch<'_, '_, Counting>)| -> Counts {
        let before = media.counts();
        persist_scope(&media, Purpose::Node, |batch| {
            store(&batch);
            let _durable = batch.fence().durable();
        });
        media.counts() - before
    };
    let stored = cost(&|batch| word.store(2, batch));
    assert_eq!(
        (
            stored.node.write_backs,
            stored.node.fences,
            stored.bytes,
            word.load(&media)
        ),
        (1, 1, 8, 2)
    );
    let past = cost(&|batch| word.store_nt(3, batch));
    assert_eq!(
        (
            past.node.write_backs,
            past.non_temporal,
            past.node.lines,
            word.load(&media)
        ),
        (0, 1, 1, 3)
    );
    let free = cost(&|batch| volatile.store(4, batch.media()));
    assert_eq!(
        (free.node.write_backs, free.bytes, volatile.load(&media)),
        (0, 0, 4)
    );
    let selective = cost(&|batch| volatile.store_persistent(5, batch));
    assert_eq!((selective.node.write_backs, volatile.load(&media)), (1, 5));
}
