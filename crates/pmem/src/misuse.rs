//! Misuses of tokens, pools and persistent structs, none of which compiles.
//!
//! Each stands below a correct use that compiles, and differs from it in the misuse only, so that it cannot fail for
//! another reason. (The compiler checks the error codes when its unstable features are on.)

macro_rules! misuse {
    ($(#[doc = $what:literal])* $name:ident $code:literal { $right:literal } not { $wrong:literal }) => {
        $(#[doc = $what])*
        #[doc = concat!("```\n", include_str!("toy.rs"), misuse!(@prelude), $right, "\n```")]
        #[doc = concat!("```compile_fail", $code, "\n", include_str!("toy.rs"), misuse!(@prelude), $wrong, "\n```")]
        mod $name {}
    };
    (@prelude) => {
        "
        use wollemi_pmem::*;
        let toy = Toy::new();
        let slot = PSlot::null();
        type Policy = LinkAndPersist;
        "
    };
}

misuse! {
    /// A draft is not durable.
    publish_a_draft ",E0308" {
        "persist_scope(toy.media(), Purpose::Node, |batch| {
            let node = toy.draft(1, &batch).flush(&batch);
            let fenced = batch.fence();
            let node = node.persisted(&fenced);
            let _durable = slot.publish::<Policy, _, _>(toy.media(), node, Tag::default()).commit();
        });"
    } not {
        "persist_scope(toy.media(), Purpose::Node, |batch| {
            let node = toy.draft(1, &batch);
            let fenced = batch.fence();
            let _durable = slot.publish::<Policy, _, Node>(toy.media(), node, Tag::default()).commit();
        });"
    }
}

misuse! {
    /// A flushed object is not durable before its fence.
    publish_without_a_fence ",E0308" {
        "persist_scope(toy.media(), Purpose::Node, |batch| {
            let node = toy.draft(1, &batch).flush(&batch);
            let fenced = batch.fence();
            let node = node.persisted(&fenced);
            let _durable = slot.publish::<Policy, _, Node>(toy.media(), node, Tag::default()).commit();
        });"
    } not {
        "persist_scope(toy.media(), Purpose::Node, |batch| {
            let node = toy.draft(1, &batch).flush(&batch);
            let fenced = batch.fence();
            let _durable = slot.publish::<Policy, _, Node>(toy.media(), node, Tag::default()).commit();
        });"
    }
}

misuse! {
    /// The fence of another batch does not make a link durable.
    take_another_fence_for_a_link ",E0521" {
        "persist_scope(toy.media(), Purpose::Node, |batch| {
            let node = toy.draft(1, &batch).flush(&batch);
            let fenced = batch.fence();
            let published = slot.publish::<Policy, _, _>(toy.media(), node.persisted(&fenced), Tag::default());
            persist_scope(toy.media(), Purpose::Node, |links| {
                let joined = published.join(&links);
                let _durable = joined.durable(&links.fence());
            });
        });"
    } not {
        "persist_scope(toy.media(), Purpose::Node, |batch| {
            let node = toy.draft(1, &batch).flush(&batch);
            let fenced = batch.fence();
            let published = slot.publish::<Policy, _, _>(toy.media(), node.persisted(&fenced), Tag::default());
            persist_scope(toy.media(), Purpose::Node, |links| {
                let joined = published.join(&links);
                let _durable = joined.durable(&fenced);
            });
        });"
    }
}

misuse! {
    /// A flushed object can no longer be written.
    write_after_flush ",E0382" {
        "persist_scope(toy.media(), Purpose::Node, |batch| {
            let mut node = toy.draft(1, &batch);
            node.key = PWord::new(2);
            let node = node.flush(&batch);
            drop(node.persisted(&batch.fence()));
        });"
    } not {
        "persist_scope(toy.media(), Purpose::Node, |batch| {
            let mut node = toy.draft(1, &batch);
            let flushed = node.flush(&batch);
            node.key = PWord::new(2);
            drop(flushed.persisted(&batch.fence()));
        });"
    }
}

misuse! {
    /// The token of a flushed object gives no access to it.
    write_what_was_flushed ",E0609" {
        "persist_scope(toy.media(), Purpose::Node, |batch| {
            let mut node = toy.draft(1, &batch);
            node.key = PWord::new(2);
            drop(node.flush(&batch));
        });"
    } not {
        "persist_scope(toy.media(), Purpose::Node, |batch| {
            let mut node = toy.draft(1, &batch).flush(&batch);
            node.key = PWord::new(2);
            drop(node);
        });"
    }
}

misuse! {
    /// A fence proves durability for its own batch only.
    another_batch_s_fence ",E0521" {
        "persist_scope(toy.media(), Purpose::Node, |one| {
            persist_scope(toy.media(), Purpose::Node, |_other| {
                let node = toy.draft(1, &one).flush(&one);
                let fenced = one.fence();
                drop(node.persisted(&fenced));
            });
        });"
    } not {
        "persist_scope(toy.media(), Purpose::Node, |one| {
            persist_scope(toy.media(), Purpose::Node, |other| {
                let node = toy.draft(1, &one).flush(&one);
                let fenced = other.fence();
                drop(node.persisted(&fenced));
            });
        });"
    }
}

misuse! {
    /// A draft joins the batch it was made for.
    another_batch_s_draft ",E0521" {
        "persist_scope(toy.media(), Purpose::Node, |one| {
            persist_scope(toy.media(), Purpose::Node, |_other| {
                drop(toy.draft(1, &one).flush(&one));
            });
        });"
    } not {
        "persist_scope(toy.media(), Purpose::Node, |one| {
            persist_scope(toy.media(), Purpose::Node, |other| {
                drop(toy.draft(1, &one).flush(&other));
            });
        });"
    }
}

misuse! {
    /// A draft adopts only what its own batch will have made durable.
    adopt_from_another_batch ",E0521" {
        "persist_scope(toy.media(), Purpose::Node, |one| {
            persist_scope(toy.media(), Purpose::Node, |_other| {
                let child = toy.draft(1, &one).flush(&one);
                let mut parent = toy.draft(2, &one);
                parent.adopt(|node| &mut node.child, child, Tag::default());
            });
        });"
    } not {
        "persist_scope(toy.media(), Purpose::Node, |one| {
            persist_scope(toy.media(), Purpose::Node, |other| {
                let child = toy.draft(1, &other).flush(&other);
                let mut parent = toy.draft(2, &one);
                parent.adopt(|node| &mut node.child, child, Tag::default());
            });
        });"
    }
}

misuse! {
    /// A draft does not adopt a draft: the child could still be written after the parent's flush.
    adopt_a_draft ",E0308" {
        "persist_scope(toy.media(), Purpose::Node, |batch| {
            let child = toy.draft(1, &batch);
            let mut parent = toy.draft(2, &batch);
            parent.adopt(|node| &mut node.child, child.flush(&batch), Tag::default());
        });"
    } not {
        "persist_scope(toy.media(), Purpose::Node, |batch| {
            let child = toy.draft(1, &batch);
            let mut parent = toy.draft(2, &batch);
            parent.adopt::<Node>(|node| &mut node.child, child, Tag::default());
        });"
    }
}

misuse! {
    /// A draft links ahead only to what its own batch will make durable.
    link_ahead_to_another_batch ",E0521" {
        "persist_scope(toy.media(), Purpose::Node, |one| {
            persist_scope(toy.media(), Purpose::Node, |_other| {
                let child = toy.draft(1, &one);
                let mut parent = toy.draft(2, &one);
                parent.link_ahead(|node| &mut node.child, &child, Tag::default());
            });
        });"
    } not {
        "persist_scope(toy.media(), Purpose::Node, |one| {
            persist_scope(toy.media(), Purpose::Node, |other| {
                let child = toy.draft(1, &other);
                let mut parent = toy.draft(2, &one);
                parent.link_ahead(|node| &mut node.child, &child, Tag::default());
            });
        });"
    }
}

misuse! {
    /// A batch accepts nothing after its fence.
    flush_after_the_fence ",E0382" {
        "persist_scope(toy.media(), Purpose::Node, |batch| {
            let node = toy.draft(1, &batch);
            let node = node.flush(&batch);
            let fenced = batch.fence();
            drop(node.persisted(&fenced));
        });"
    } not {
        "persist_scope(toy.media(), Purpose::Node, |batch| {
            let node = toy.draft(1, &batch);
            let fenced = batch.fence();
            let node = node.flush(&batch);
            drop(node.persisted(&fenced));
        });"
    }
}

misuse! {
    /// A batch accepts no store of a word after its fence.
    store_after_the_fence ",E0382" {
        "let word = PWord::new(0);
        persist_scope(toy.media(), Purpose::Node, |batch| {
            word.store(1, &batch);
            let _durable = batch.fence().durable();
        });"
    } not {
        "let word = PWord::new(0);
        persist_scope(toy.media(), Purpose::Node, |batch| {
            let fenced = batch.fence();
            word.store(1, &batch);
            let _durable = fenced.durable();
        });"
    }
}

misuse! {
    /// A word that has joined a batch must live until the fence, which writes its line back.
    word_gone_before_the_fence ",E0505" {
        "let word = Box::new(PWord::new(0));
        persist_scope(toy.media(), Purpose::Node, |batch| {
            word.store(1, &batch);
            let _durable = batch.fence().durable();
        });
        drop(word);"
    } not {
        "let word = Box::new(PWord::new(0));
        persist_scope(toy.media(), Purpose::Node, |batch| {
            word.store(1, &batch);
            drop(word);
            let _durable = batch.fence().durable();
        });"
    }
}

misuse! {
    /// A slot that has joined a batch must live until the fence, as a word must.
    slot_gone_before_the_fence ",E0505" {
        "let slot = Box::new(PSlot::null());
        persist_scope(toy.media(), Purpose::Node, |links| {
            let _joined = slot.publish_link::<Policy, _>(toy.media(), Link::NULL).join(&links);
            let _durable = links.fence().durable();
        });
        drop(slot);"
    } not {
        "let slot = Box::new(PSlot::null());
        persist_scope(toy.media(), Purpose::Node, |links| {
            let _joined = slot.publish_link::<Policy, _>(toy.media(), Link::NULL).join(&links);
            drop(slot);
            let _durable = links.fence().durable();
        });"
    }
}

misuse! {
    /// The pool of a flushed draft must live until the fence, too; it need not be the pool of the batch's media.
    pool_of_a_draft_gone_before_the_fence ",E0505" {
        "let other = Toy::new();
        persist_scope(toy.media(), Purpose::Node, |batch| {
            drop(other.draft(1, &batch).flush(&batch));
            let _durable = batch.fence().durable();
        });
        drop(other);"
    } not {
        "let other = Toy::new();
        persist_scope(toy.media(), Purpose::Node, |batch| {
            drop(other.draft(1, &batch).flush(&batch));
            drop(other);
            let _durable = batch.fence().durable();
        });"
    }
}

misuse! {
    /// A line is written back through a word in it, or by a promise that it is mapped.
    write_back_without_a_promise ",E0133" {
        "let word = std::sync::atomic::AtomicU64::new(0);
        toy.media().write_back(&word, Purpose::Node);
        // SAFETY: the word is there.
        unsafe { toy.media().write_back_joined(word.as_ptr().cast(), Purpose::Node) };"
    } not {
        "let word = std::sync::atomic::AtomicU64::new(0);
        toy.media().write_back(&word, Purpose::Node);
        toy.media().write_back_joined(word.as_ptr().cast(), Purpose::Node);"
    }
}

misuse! {
    /// A fence orders the write-backs of its own thread.
    fence_on_another_thread ",E0277" {
        "std::thread::scope(|threads| {
            threads.spawn(|| {
                persist_scope(toy.media(), Purpose::Node, |batch| {
                    let _fenced = batch.fence();
                });
            });
        });"
    } not {
        "std::thread::scope(|threads| {
            persist_scope(toy.media(), Purpose::Node, |batch| {
                threads.spawn(move || {
                    let _fenced = batch.fence();
                });
            });
        });"
    }
}

misuse! {
    /// The witness of a fence stays on the thread that issued it.
    witness_on_another_thread ",E0277" {
        "persist_scope(toy.media(), Purpose::Node, |batch| {
            let fenced = batch.fence();
            std::thread::scope(|threads| {
                threads.spawn(|| ());
            });
            let _durable = fenced.durable();
        });"
    } not {
        "persist_scope(toy.media(), Purpose::Node, |batch| {
            let fenced = batch.fence();
            std::thread::scope(|threads| {
                threads.spawn(move || {
                    let _durable = fenced.durable();
                });
            });
        });"
    }
}

misuse! {
    /// A flushed object does not leave its scope before the fence.
    flushed_leaves_its_scope "" {
        "let _persisted = persist_scope(toy.media(), Purpose::Node, |batch| {
            let node = toy.draft(1, &batch).flush(&batch);
            let fenced = batch.fence();
            node.persisted(&fenced)
        });"
    } not {
        "let _flushed = persist_scope(toy.media(), Purpose::Node, |batch| {
            let node = toy.draft(1, &batch).flush(&batch);
            let _fenced = batch.fence();
            node
        });"
    }
}

misuse! {
    /// An object is published once.
    publish_twice ",E0382" {
        "persist_scope(toy.media(), Purpose::Node, |batch| {
            let node = toy.draft(1, &batch).flush(&batch);
            let node = node.persisted(&batch.fence());
            let _durable = slot.publish::<Policy, _, _>(toy.media(), node, Tag::default()).commit();
        });"
    } not {
        "persist_scope(toy.media(), Purpose::Node, |batch| {
            let node = toy.draft(1, &batch).flush(&batch);
            let node = node.persisted(&batch.fence());
            let _durable = slot.publish::<Policy, _, _>(toy.media(), node, Tag::default()).commit();
            let _durable = slot.publish::<Policy, _, _>(toy.media(), node, Tag::default()).commit();
        });"
    }
}

misuse! {
    /// A placed link counts only after its fence.
    count_before_the_fence ",E0308" {
        "let word = CommitWord::new(0);
        persist_scope(toy.media(), Purpose::Node, |batch| {
            let node = toy.draft(1, &batch).flush(&batch);
            let placed = slot.place::<Policy, _, _>(node, Tag::default(), &batch);
            let fenced = batch.fence();
            let _durable = placed.publish(&fenced, &word, 2).commit();
        });"
    } not {
        "let word = CommitWord::new(0);
        persist_scope(toy.media(), Purpose::Node, |batch| {
            let node = toy.draft(1, &batch).flush(&batch);
            let placed = slot.place::<Policy, _, _>(node, Tag::default(), &batch);
            let _durable = placed.publish(&batch, &word, 2).commit();
        });"
    }
}

misuse! {
    /// A proof cannot be made up.
    made_up_proof ",E0423" {
        "let _durable: Durable = slot.publish_link::<Policy, _>(toy.media(), Link::NULL).commit();"
    } not {
        "let _durable: Durable = Durable(());"
    }
}

misuse! {
    /// A slot that other threads can reach changes only by a publication.
    store_into_a_slot ",E0616" {
        "let _durable = slot.publish_link::<Policy, _>(toy.media(), Link::NULL).commit();"
    } not {
        "slot.0.store(0, std::sync::atomic::Ordering::Release);"
    }
}

misuse! {
    /// Reading bytes that may be reused or written requires the caller's promise.
    look_without_a_promise ",E0133" {
        "persist_scope(toy.media(), Purpose::Node, |batch| {
            let node = toy.draft(1, &batch).flush(&batch).persisted(&batch.fence());
            // SAFETY: the toy uses no byte twice.
            let _node: &Node = unsafe { toy.pool.at(node.offset()) }.unwrap();
        });"
    } not {
        "persist_scope(toy.media(), Purpose::Node, |batch| {
            let node = toy.draft(1, &batch).flush(&batch).persisted(&batch.fence());
            let _node: &Node = toy.pool.at(node.offset()).unwrap();
        });"
    }
}

misuse! {
    /// Giving back blocks requires the caller's promise that nothing refers to their bytes.
    give_back_without_a_promise ",E0133" {
        "// SAFETY: nothing is there.
        unsafe { toy.pool.give_back(0..0) }.unwrap();"
    } not {
        "toy.pool.give_back(0..0).unwrap();"
    }
}

misuse! {
    /// Setting the end of the allocated pages requires the caller's promise that no object lies beyond it.
    end_of_pages_without_a_promise ",E0133" {
        "persist_scope(toy.media(), Purpose::Alloc, |batch| {
            // SAFETY: it stays where it is.
            unsafe { toy.pool.set_allocated(toy.pool.allocated().load(toy.media()), &batch) };
        });"
    } not {
        "persist_scope(toy.media(), Purpose::Alloc, |batch| {
            toy.pool.set_allocated(toy.pool.allocated().load(toy.media()), &batch);
        });"
    }
}

misuse! {
    /// The author of a policy promises that it stores what is published.
    policy_without_a_promise ",E0200" {
        "struct Mine;
        // SAFETY: as for `LinkAndPersist`.
        unsafe impl Publication for Mine {
            const MARKS: bool = true;
            fn store<M: Media>(media: &M, slot: &PSlot, word: u64) {
                LinkAndPersist::store(media, slot, word);
            }
            fn settle<M: Media>(media: &M, slot: &PSlot, word: u64) {
                LinkAndPersist::settle(media, slot, word);
            }
        }"
    } not {
        "struct Mine;
        impl Publication for Mine {
            const MARKS: bool = true;
            fn store<M: Media>(media: &M, slot: &PSlot, word: u64) {
                LinkAndPersist::store(media, slot, word);
            }
            fn settle<M: Media>(media: &M, slot: &PSlot, word: u64) {
                LinkAndPersist::settle(media, slot, word);
            }
        }"
    }
}

misuse! {
    /// A persistent struct has persistent fields: a reference means nothing in the next process.
    field_that_is_not_persistent ",E0277" {
        "persistent! {
            struct Leaf [size: 16] { key: PWord, value: PWord }
        }"
    } not {
        "persistent! {
            struct Leaf [size: 16] { key: PWord, value: &'static u64 }
        }"
    }
}

misuse! {
    /// A persistent struct has no field of a type for which some bytes are not a valid value.
    field_that_is_not_any_bytes ",E0277" {
        "persistent! {
            struct Leaf [size: 8] { key: u32, there: u32 }
        }"
    } not {
        "persistent! {
            struct Leaf [size: 8] { key: u32, there: bool }
        }"
    }
}

misuse! {
    /// A persistent struct has no field that changes otherwise than through a word.
    field_that_is_a_cell ",E0277" {
        "persistent! {
            struct Leaf [size: 16] { key: PWord, value: PWord }
        }"
    } not {
        "persistent! {
            struct Leaf [size: 16] { key: PWord, value: std::cell::Cell<u64> }
        }"
    }
}

misuse! {
    /// A persistent struct has no padding between its fields.
    padding_between_fields ",E0080" {
        "persistent! {
            struct Leaf [size: 16] { len: u32, unused: u32, value: PWord }
        }"
    } not {
        "persistent! {
            struct Leaf [size: 16] { len: u32, value: PWord }
        }"
    }
}

misuse! {
    /// A persistent struct has no padding at its end.
    padding_at_the_end ",E0080" {
        "persistent! {
            struct Leaf [size: 64, align: 64] { key: PWord, value: [PWord; 7] }
        }"
    } not {
        "persistent! {
            struct Leaf [size: 64, align: 64] { key: PWord, value: [PWord; 6] }
        }"
    }
}

misuse! {
    /// A persistent struct has the size that its declaration states.
    another_size ",E0080" {
        "persistent! {
            struct Leaf [size: 24] { key: PWord, value: [PWord; 2] }
        }"
    } not {
        "persistent! {
            struct Leaf [size: 16] { key: PWord, value: [PWord; 2] }
        }"
    }
}

misuse! {
    /// A persistent struct is aligned to a line at most: pools guarantee no more.
    alignment_above_a_line ",E0080" {
        "persistent! {
            struct Leaf [size: 64, align: 64] { words: [PWord; 8] }
        }"
    } not {
        "persistent! {
            struct Leaf [size: 128, align: 128] { words: [PWord; 16] }
        }"
    }
}

misuse! {
    /// A persistent struct is aligned to no less than its words.
    packed ",E0080" {
        "persistent! {
            struct Leaf [size: 16] { key: PWord, value: PWord }
        }"
    } not {
        "persistent! {
            #[repr(packed)]
            struct Leaf [size: 16] { key: PWord, value: PWord }
        }"
    }
}

misuse! {
    /// A struct with parameters is checked where one of its instances is drafted.
    padding_of_a_parameter "" {
        "persistent! {
            struct Table<const N: usize> [size: 8 + 8 * N, align: 16] { count: PWord, slots: [PSlot; N] }
        }
        persist_scope(toy.media(), Purpose::Node, |batch| {
            let table = Table { count: PWord::new(0), slots: [const { PSlot::null() }; 1] };
            drop(Draft::new(toy.chunk(16), table, &batch));
        });"
    } not {
        "persistent! {
            struct Table<const N: usize> [size: 8 + 8 * N, align: 16] { count: PWord, slots: [PSlot; N] }
        }
        persist_scope(toy.media(), Purpose::Node, |batch| {
            let table = Table { count: PWord::new(0), slots: [const { PSlot::null() }; 2] };
            drop(Draft::new(toy.chunk(32), table, &batch));
        });"
    }
}

misuse! {
    /// Without the macro, a struct is persistent by a promise.
    persistent_without_a_promise ",E0200" {
        "#[repr(C)]
        struct Leaf(PWord);
        // SAFETY: one word.
        unsafe impl Persistent for Leaf {}"
    } not {
        "#[repr(C)]
        struct Leaf(PWord);
        impl Persistent for Leaf {}"
    }
}
