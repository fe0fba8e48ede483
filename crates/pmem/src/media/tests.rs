//! What an observing media gets to see.

use crate::toy::Toy;
use crate::watched::{ObservedStep, Observer, StepKind};
use crate::{
    Contended, Counting, Delaying, Hardware, Latency, LinkAndPersist, Media, PSlot, PWord, Purpose, Tag,
    VWord, Watched, persist_scope,
};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

/// Records the calls other than loads, non-temporal stores and volatile exchanges, with the caller's line.
#[derive(Clone, Default)]
struct CallRecorder(Arc<Mutex<Vec<(&'static str, u32)>>>);

impl CallRecorder {
    fn media(&self) -> Watched<CallRecorder> {
        Watched::around(Hardware::detect(), self.clone())
    }

    fn take(&self) -> Vec<(&'static str, u32)> {
        std::mem::take(&mut *self.0.lock().expect("no panic"))
    }

    fn names(&self) -> Vec<&'static str> {
        self.take().into_iter().map(|(what, _)| what).collect()
    }
}

impl Observer for CallRecorder {
    fn before(&self, step: &ObservedStep) {
        let what = match step.what {
            StepKind::Store => "store",
            StepKind::StoreUnpersisted => "store unpersisted",
            StepKind::Exchange => "exchange",
            StepKind::ExchangeUnpersisted => "exchange unpersisted",
            StepKind::Touch => {
                assert!(step.len > 0);
                "touched"
            }
            StepKind::Draft => "drafting",
            StepKind::Drafted => "drafted",
            StepKind::Join => "joined",
            StepKind::WriteBack(_) => "write back",
            StepKind::WriteBackJoined(_) => "write back joined",
            StepKind::Fence(_) => "fence",
            StepKind::StoreVolatile => "volatile",
            StepKind::Load
            | StepKind::Peek
            | StepKind::StoreNt
            | StepKind::Sync
            | StepKind::LoadVolatile
            | StepKind::ExchangeVolatile => return,
        };
        self.0.lock().expect("no panic").push((what, step.site.line()));
    }
}

/// The media learns when a draft begins and ends. The report that a line joins names the call that joined it; a
/// batch's write-backs and fence name the caller of the fence; and the steps of a publication, of which only the
/// clearing of the mark is not persisted, name its calls.
#[test]
fn a_publication_is_told_step_by_step() {
    let recorder = CallRecorder::default();
    let toy = Toy::with(recorder.media());
    let slot = PSlot::null();
    recorder.take();
    let here = line!();
    let _durable = persist_scope(toy.media(), Purpose::Node, |batch| {
        let node = toy.draft(1, &batch).flush(&batch);
        let fenced = batch.fence();
        let link = slot.publish::<LinkAndPersist, _, _>(toy.media(), node.persisted(&fenced), Tag::default());
        link.commit()
    });
    let calls = recorder.take();
    let names: Vec<_> = calls.iter().map(|&(name, _)| name).collect();
    assert_eq!(
        names,
        [
            "drafting",
            "drafted",
            "joined",
            "write back joined",
            "fence",
            "store",
            "write back",
            "fence",
            "store unpersisted"
        ]
    );
    let lines: Vec<_> = calls[1..].iter().map(|&(_, line)| line - here).collect();
    assert_eq!(lines, [2, 2, 3, 3, 4, 5, 5, 5]);
}

/// The media learns of each mark that is cleared, by any caller, and of metadata that is persisted after all.
#[test]
fn what_recovery_ignores_is_told_as_such() {
    let recorder = CallRecorder::default();
    let toy = Toy::with(recorder.media());
    let slot = PSlot::null();
    let persisted = || {
        persist_scope(toy.media(), Purpose::Node, |batch| {
            let node = toy.draft(1, &batch).flush(&batch);
            let fenced = batch.fence();
            node.persisted(&fenced)
        })
    };
    let _uncommitted = slot.publish::<LinkAndPersist, _, _>(toy.media(), persisted(), Tag::default());
    recorder.take();
    let link = slot.settle(toy.media());
    assert_eq!(recorder.names(), ["write back", "fence", "exchange unpersisted"]);
    let node = persisted();
    recorder.take();
    let published = slot
        .publish_if(toy.media(), link, node, Tag::default())
        .expect("settled");
    let _durable = published.commit();
    assert_eq!(
        recorder.names(),
        ["exchange", "write back", "fence", "exchange unpersisted"]
    );
    fn marks<P: crate::Publication>() -> bool {
        P::MARKS
    }
    assert!(marks::<Contended>());
    let (word, volatile) = (PWord::new(1), VWord::new(1));
    persist_scope(toy.media(), Purpose::Node, |batch| {
        volatile.store_persistent(2, &batch);
        volatile.store(3, batch.media());
        word.store_unpersisted(4, batch.media());
        let _durable = batch.fence().durable();
    });
    assert_eq!(
        recorder.names(),
        [
            "store",
            "joined",
            "volatile",
            "store unpersisted",
            "write back joined",
            "fence"
        ]
    );
}

/// Bytes are announced before they are read; an object made of words is not.
#[test]
fn plain_loads_are_announced() {
    let recorder = CallRecorder::default();
    let toy = Toy::with(recorder.media());
    recorder.take();
    let place = toy.pool.directory().0;
    toy.at::<PWord>(place);
    assert_eq!(recorder.names(), [""; 0]);
    toy.at::<[u64; 8]>(place);
    // SAFETY: nothing was drafted yet.
    unsafe { toy.pool.bytes(place, 3) }.expect("backed");
    assert_eq!(recorder.names(), ["touched", "touched"]);
}

/// Media around another media forward all calls.
#[test]
fn media_around_others_pass_everything_on() {
    let recorder = CallRecorder::default();
    let media = Delaying::new(Counting::new(recorder.media()), Latency::default());
    let word = AtomicU64::new(1);
    let at = word.as_ptr().cast_const().cast::<u8>();
    media.store_unpersisted(&word, 2);
    assert_eq!(media.compare_exchange_unpersisted(&word, 2, 3), Ok(2));
    media.touched(at, 8);
    media.drafting(at, 8);
    media.drafted(at, 8);
    media.joined(at, 8);
    // SAFETY: the word is there.
    unsafe { media.write_back_joined(at, Purpose::Log) };
    assert_eq!(
        recorder.names(),
        [
            "store unpersisted",
            "exchange unpersisted",
            "touched",
            "drafting",
            "drafted",
            "joined",
            "write back joined"
        ]
    );
    let counts = media.inner().counts();
    assert_eq!((counts.log.write_backs, counts.bytes), (1, 8 + 8 + 8));
}
