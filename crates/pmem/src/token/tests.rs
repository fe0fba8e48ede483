use super::*;
use crate::toy::{Node, Toy};
use crate::watched::{ObservedStep, Observer, StepKind};
use crate::{
    Counting, Counts, GenerationLock, LINE, Link, Offset, PEither, PSlot, PWord, Purpose, Tag, VWord, Watched,
};

fn cost<R>(toy: &Toy, f: impl FnOnce(&Counting) -> R) -> (Counts, R) {
    let before = toy.media().counts();
    let result = f(toy.media());
    (toy.media().counts() - before, result)
}

fn persist(toy: &Toy, key: u64) -> Persisted<'_, Node> {
    persist_scope(toy.media(), Purpose::Node, |batch| {
        let node = toy.draft(key, &batch).flush(&batch);
        node.persisted(&batch.fence())
    })
}

fn key(toy: &Toy, link: Link) -> u64 {
    let node = toy.at::<Node>(link.offset().expect("not null"));
    node.key.load(toy.media())
}

fn given_back(toy: &Toy) -> usize {
    toy.given_back.lock().expect("no panic").len()
}

/// Adding an object of one line costs two write-backs and two fences: the object, then the link to it.
#[test]
fn adding_an_object_costs_two_persists() {
    let toy = Toy::new();
    let slot = PSlot::null();
    let (counts, durable) = cost(&toy, |media| {
        let node = persist(&toy, 7);
        slot.publish::<LinkAndPersist, _, _>(media, node, Tag::new(2 << 48))
            .commit()
    });
    let Durable(()) = durable;
    assert_eq!((counts.node.write_backs, counts.node.fences), (2, 2));
    let link = slot.load(toy.media());
    assert_eq!((key(&toy, link), link.tag()), (7, Tag::new(2 << 48)));
    assert_eq!(given_back(&toy), 0);
}

/// However many lines an object has, each is written back once, and all before one fence.
#[test]
fn each_line_is_written_back_once() {
    for lines in 1..40 {
        let toy = Toy::new();
        let (counts, ()) = cost(&toy, |media| {
            persist_scope(media, Purpose::Node, |batch| {
                let draft = Draft::new(toy.chunk(lines * LINE), Node::default(), &batch);
                drop(draft.flush(&batch).persisted(&batch.fence()));
            });
        });
        let lines = lines as u64;
        assert_eq!(
            (counts.node.write_backs, counts.node.lines, counts.node.fences),
            (lines, lines, 1)
        );
    }
}

/// Several changes of one line before a fence need one write-back, however they are made.
#[test]
fn changes_of_a_line_are_merged() {
    let toy = Toy::new();
    let node = toy.at::<Node>(persist(&toy, 1).offset());
    let lock = VWord::new(0);
    let (counts, ()) = cost(&toy, |media| {
        persist_scope(media, Purpose::Log, |batch| {
            node.key.store(2, &batch);
            node.rest[0].store(3, &batch);
            node.rest[1].persist_seen(&batch);
            node.key.store(4, &batch);
            lock.store_persistent(1, &batch);
            let _durable = batch.fence().durable();
        });
    });
    assert_eq!((counts.log.write_backs, counts.log.fences), (2, 1));
}

/// Records the contents of lines as written back.
#[derive(Default)]
struct Durability(std::sync::Mutex<std::collections::HashMap<usize, [u64; 8]>>);

impl Observer for Durability {
    fn before(&self, step: &ObservedStep) {
        if let StepKind::WriteBack(_) | StepKind::WriteBackJoined(_) = step.what {
            let line = step.start.addr() / LINE * LINE;
            // SAFETY: the test writes back lines of its pool only, and from one thread.
            let words = unsafe { std::ptr::with_exposed_provenance::<[u64; 8]>(line).read_volatile() };
            self.0.lock().expect("no panic").insert(line, words);
        }
    }
}

/// Everything stored through a batch is in the lines as they were last written back, even if a line was written back
/// early, because the batch was full, and was stored into again.
#[test]
fn nothing_stored_is_left_behind() {
    let toy = Toy::with(Watched::machine(Durability::default()));
    let (start, len) = toy.pool.directory();
    toy.pool.base().as_ptr().expose_provenance();
    let words: Vec<&PWord> = (0..40 * 8)
        .map(|i| {
            assert!(i * 16 < len);
            toy.at(Offset::new(start.get() + 16 * i as u64).expect("a multiple of 16"))
        })
        .collect();
    persist_scope(toy.media(), Purpose::Node, |batch| {
        for round in 1..=3 {
            for (i, word) in words.iter().enumerate() {
                word.store(1000 * round + i as u64, &batch);
            }
        }
        let _durable = batch.fence().durable();
    });
    let written = toy.media().watch().0.lock().expect("no panic");
    for (i, &word) in words.iter().enumerate() {
        let at = std::ptr::from_ref(word).addr();
        let durable = written[&(at / LINE * LINE)][at % LINE / 8];
        assert_eq!(durable, 3000 + i as u64, "word {i}");
    }
}

/// An object that is dropped before it is reachable gives its chunk back, once and whole; a published or adopted one
/// does not.
#[test]
fn what_is_dropped_is_given_back() {
    let toy = Toy::new();
    let slot = PSlot::null();
    persist_scope(toy.media(), Purpose::Node, |batch| {
        let draft = toy.draft(1, &batch);
        let first = (draft.offset(), 64);
        drop(draft);
        assert_eq!(*toy.given_back.lock().expect("no panic"), [first]);
        drop(toy.draft(2, &batch).flush(&batch));
        assert_eq!(given_back(&toy), 2);
        let flushed = toy.draft(3, &batch).flush(&batch).erased();
        let adopted = toy.draft(4, &batch).flush(&batch);
        let mut parent = toy.draft(5, &batch);
        parent.adopt(|node| &mut node.child, adopted, Tag::default());
        parent.adopt_persisted(|node| &mut node.sibling, persist(&toy, 6), Tag::default());
        let parent = parent.flush(&batch);
        let fenced = batch.fence();
        drop(flushed.persisted(&fenced));
        assert_eq!(given_back(&toy), 3);
        let parent = parent.persisted(&fenced);
        let _durable = slot
            .publish::<LinkAndPersist, _, _>(toy.media(), parent, Tag::default())
            .commit();
    });
    assert_eq!(given_back(&toy), 3);
    let parent = toy.at::<Node>(slot.load(toy.media()).offset().expect("not null"));
    assert_eq!(key(&toy, parent.child.load(toy.media())), 4);
    assert_eq!(key(&toy, parent.sibling.load(toy.media())), 6);
}

/// A list is written from its first object to its last: a link ahead leads to its object, which still belongs to its
/// own token.
#[test]
fn a_link_ahead_does_not_own() {
    let toy = Toy::new();
    let (counts, (first, second)) = cost(&toy, |media| {
        persist_scope(media, Purpose::Node, |batch| {
            let mut first = toy.draft(1, &batch);
            let mut second = toy.draft(2, &batch);
            first.link_ahead(|node| &mut node.sibling, &second, Tag::new(3 << 48));
            let first = first.flush(&batch);
            second.key = PWord::new(3);
            let second = second.flush(&batch);
            let fenced = batch.fence();
            (first.persisted(&fenced), second.persisted(&fenced))
        })
    });
    assert_eq!((counts.node.write_backs, counts.node.fences), (2, 1));
    let sibling = toy.at::<Node>(first.offset()).sibling.load(toy.media());
    assert_eq!(
        (sibling.offset(), sibling.tag()),
        (Some(second.offset()), Tag::new(3 << 48))
    );
    assert_eq!((key(&toy, sibling), given_back(&toy)), (3, 0));
    drop(first);
    assert_eq!(given_back(&toy), 1);
    drop(second);
    assert_eq!(given_back(&toy), 2);
}

/// A panic during an operation gives back its drafts.
#[test]
fn a_panic_gives_drafts_back() {
    let toy = Toy::new();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        persist_scope(toy.media(), Purpose::Node, |batch| {
            let _draft = toy.draft(1, &batch);
            let _flushed = toy.draft(2, &batch).flush(&batch);
            panic!("on purpose");
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(given_back(&toy), 2);
}

/// A draft's tail is the rest of its chunk.
#[test]
fn the_tail_is_the_rest_of_the_chunk() {
    let toy = Toy::new();
    persist_scope(toy.media(), Purpose::Node, |batch| {
        let mut draft = Draft::new(toy.chunk(100), Node::default(), &batch);
        draft.tail_mut().fill(0xab);
        assert_eq!(draft.tail_mut().len(), 36);
        let after = Offset::new(draft.offset().get() + 64).expect("a multiple of 16");
        assert_eq!(draft.key.private(), 0);
        drop(draft.flush(&batch));
        // SAFETY: the draft is gone, and the toy uses no byte twice.
        let found = unsafe { toy.pool.bytes(after, 37) };
        assert_eq!(found, Ok([&[0xab; 36][..], &[0]].concat().as_slice()));
    });
}

/// A thread that loads a link that may not be durable yet persists it, with a write-back and a fence, until the
/// publisher has committed.
#[test]
fn a_reader_helps() {
    let toy = Toy::new();
    let slot = PSlot::null();
    let node = persist(&toy, 9);
    let published = slot.publish::<LinkAndPersist, _, _>(toy.media(), node, Tag::new(6));
    let (peek, link) = cost(&toy, |media| slot.peek(media));
    assert_eq!((peek, key(&toy, link)), (Counts::default(), 9));
    let (first, link) = cost(&toy, |media| slot.load(media));
    assert_eq!((first.node.write_backs, first.node.fences), (1, 1));
    assert_eq!((key(&toy, link), link.tag()), (9, Tag::new(6)));
    let (second, again) = cost(&toy, |media| slot.load(media));
    assert_eq!((second.node.write_backs, second.node.fences, again), (1, 1, link));
    let (commit, Durable(())) = cost(&toy, |_| published.commit());
    assert_eq!((commit.node.write_backs, commit.node.fences), (1, 1));
    assert_eq!(cost(&toy, |media| slot.load(media)), (Counts::default(), link));
}

/// Settling a slot clears a mark that a crash left in it.
#[test]
fn a_mark_left_by_a_crash_is_settled() {
    let toy = Toy::new();
    let slot = PSlot::null();
    let _uncommitted = slot.publish::<LinkAndPersist, _, _>(toy.media(), persist(&toy, 9), Tag::default());
    let (counts, link) = cost(&toy, |media| slot.settle(media));
    assert_eq!((counts.node.write_backs, key(&toy, link)), (1, 9));
    assert_eq!(cost(&toy, |media| slot.settle(media)), (Counts::default(), link));
    assert_eq!(cost(&toy, |media| slot.load(media)), (Counts::default(), link));
}

/// A store past the cache needs no write-back, and readers need not persist it.
#[test]
fn non_temporal_stores_need_no_help() {
    let toy = Toy::new();
    let slot = PSlot::null();
    let node = persist(&toy, 9);
    let (counts, Durable(())) = cost(&toy, |media| {
        slot.publish::<NonTemporal, _, _>(media, node, Tag::default())
            .commit()
    });
    assert_eq!(
        (counts.non_temporal, counts.node.write_backs, counts.node.fences),
        (1, 0, 1)
    );
    let (read, link) = cost(&toy, |media| slot.load(media));
    assert_eq!((read, key(&toy, link)), (Counts::default(), 9));
}

/// A conditional publication that comes too late hands its object back; one that was overtaken before its commit
/// leaves its successor alone.
#[test]
fn conditional_publications_do_not_overwrite() {
    let toy = Toy::new();
    let media = toy.media();
    let slot = PSlot::null();
    let first = slot
        .publish_if(media, Link::NULL, persist(&toy, 1), Tag::default())
        .expect("null");
    // Until the first is durable, no thread can replace it, since only durable links may be replaced.
    let early = slot.publish_if(media, slot.peek(media), persist(&toy, 2), Tag::default());
    let early = early.map(drop).expect_err("not durable yet");
    let late = slot
        .publish_if(media, Link::NULL, early, Tag::default())
        .map(drop)
        .expect_err("not null");
    let second = slot
        .publish_if(media, slot.settle(media), late, Tag::default())
        .expect("settled");
    let Durable(()) = first.commit();
    assert_eq!(key(&toy, slot.peek(media)), 2);
    let (help, _) = cost(&toy, |media| slot.load(media));
    assert_eq!(
        help.node.write_backs, 1,
        "the first one's commit must not take away the second one's mark"
    );
    let Durable(()) = second.commit();
    assert_eq!(key(&toy, slot.load(media)), 2);
    assert_eq!(given_back(&toy), 0);
}

/// Many threads publish into one slot under its lock, and many read: each reader sees one thread's keys in order, and
/// in the end no mark is left.
#[test]
fn publications_are_seen_in_order() {
    const TURNS: u64 = 500;
    let toy = Toy::new();
    let toy = &toy;
    let (slot, lock) = (&PSlot::null(), &GenerationLock::new(1));
    std::thread::scope(|threads| {
        for writer in 0..2 {
            threads.spawn(move || {
                for turn in 1..=TURNS {
                    let node = persist(toy, writer << 32 | turn);
                    let _locked = lock.lock(toy.media(), 1).expect("never obsolete");
                    let _durable = slot
                        .publish::<LinkAndPersist, _, _>(toy.media(), node, Tag::default())
                        .commit();
                }
            });
        }
        for _ in 0..2 {
            threads.spawn(move || {
                let mut last = [0; 2];
                // The very last link is one of a last turn.
                while last.iter().all(|&turn| turn < TURNS) {
                    let link = slot.load(toy.media());
                    if link.is_null() {
                        std::thread::yield_now();
                        continue;
                    }
                    let key = key(toy, link);
                    let last = &mut last[(key >> 32) as usize];
                    let turn = key & u64::from(u32::MAX);
                    assert!(turn >= *last, "an old link has come back");
                    *last = turn;
                }
            });
        }
    });
}

/// If only parts of an object were written, only their lines are written back.
#[test]
fn parts_are_written_back_alone() {
    let toy = Toy::new();
    let (counts, link) = cost(&toy, |media| {
        persist_scope(media, Purpose::Node, |batch| {
            let mut draft = Draft::new(toy.chunk(20 * LINE), Node::default(), &batch);
            draft.tail_mut()[10 * LINE..][..8].fill(0xab);
            let from = size_of::<Node>() + 10 * LINE;
            let flushed = draft.flush_parts([0..size_of::<Node>(), from..from + 8], &batch);
            flushed.persisted(&batch.fence()).into_link(Tag::new(2))
        })
    });
    let lines = size_of::<Node>().div_ceil(LINE) as u64 + 1;
    assert_eq!((counts.node.write_backs, counts.node.fences), (lines, 1));
    assert_eq!((key(&toy, link), link.tag()), (0, Tag::new(2)));
    assert_eq!(given_back(&toy), 0);
}

/// A dormant slot, and a word that holds a value or a link, take links and join a batch: one line, one write-back.
#[test]
fn links_join_a_batch() {
    let toy = Toy::new();
    let link = persist(&toy, 9).into_link(Tag::new(4));
    let node = toy.at::<Node>(persist(&toy, 1).offset());
    let either = PEither::value(5);
    assert_eq!(either.load(toy.media()), 5);
    let (counts, ()) = cost(&toy, |media| {
        persist_scope(media, Purpose::Log, |batch| {
            node.child.store(link, &batch);
            node.sibling.store(Link::NULL, &batch);
            let _durable = batch.fence().durable();
        });
    });
    assert_eq!((counts.log.write_backs, counts.log.fences), (1, 1));
    assert_eq!(key(&toy, node.child.load(toy.media())), 9);
    persist_scope(toy.media(), Purpose::Log, |batch| {
        either.store_link(link, &batch);
        let _durable = batch.fence().durable();
    });
    assert_eq!(either.load_link(toy.media()), link);
}

/// Links that join a batch cost one write-back per line and one fence; readers persist them until they are known to
/// be durable. Stores past the cache cost the fence alone.
#[test]
fn publications_join_a_batch() {
    fn publish_two<P: Publication>(toy: &Toy) -> (Counts, Counts) {
        let nodes = [persist(toy, 1), persist(toy, 2)];
        // Two slots of one object, and so in one line.
        let holder = toy.at::<Node>(persist(toy, 3).offset());
        let slots = [&holder.child, &holder.sibling];
        let mut helped = Counts::default();
        let (all, ()) = cost(toy, |media| {
            persist_scope(media, Purpose::Node, |batch| {
                let joined = nodes
                    .into_iter()
                    .zip(slots)
                    .map(|(node, slot)| slot.publish::<P, _, _>(media, node, Tag::default()).join(&batch));
                let joined: Vec<_> = joined.collect();
                let fenced = batch.fence();
                (helped, _) = cost(toy, |media| slots.map(|slot| slot.load(media)));
                for link in joined {
                    let Durable(()) = link.durable(&fenced);
                }
            });
        });
        let (after, links) = cost(toy, |media| slots.map(|slot| slot.load(media)));
        assert_eq!(after, Counts::default());
        assert_eq!(links.map(|link| key(toy, link)), [1, 2]);
        (all - helped, helped)
    }
    let toy = Toy::new();
    let (own, helped) = publish_two::<LinkAndPersist>(&toy);
    assert_eq!((own.node.write_backs, own.node.fences), (1, 1));
    assert_eq!((helped.node.write_backs, helped.node.fences), (2, 2));
    let (own, helped) = publish_two::<NonTemporal>(&toy);
    assert_eq!(
        (own.node.write_backs, own.non_temporal, own.node.fences),
        (0, 2, 1)
    );
    assert_eq!(helped, Counts::default());
}
