//! The worked example of `docs/crash-testing.md`: a persistent list with a missing fence, the kit's report on it, and
//! the mended list.

use pmem::{Offset, PWord, Pool, Purpose, persist_scope};
use wollemi_crashkit::{Crash, Explorer, Failure, History, Random, Settings, Subject, Verdict};

const DOCUMENT: &str = include_str!("../../../docs/crash-testing.md");

/// A list. If it is mended, its push has the fence between the node and the head.
struct List {
    mended: bool,
}

/// The offset of the head. Node `n` is `n` lines after it: a value and the number of the next node.
const HEAD: u64 = 64 << 10;

fn word(pool: &Pool<Crash>, at: u64) -> &PWord {
    // SAFETY: there are no drafts here.
    unsafe { pool.at(Offset::new(at).expect("aligned")) }.expect("in the pool")
}

fn node(pool: &Pool<Crash>, number: u64) -> (&PWord, &PWord) {
    let at = HEAD + 64 * number;
    (word(pool, at), word(pool, at + 16))
}

impl List {
    fn push(&self, pool: &Pool<Crash>, value: u64) {
        let (media, head) = (pool.media(), word(pool, HEAD));
        let old = head.load(media);
        let (of_node, next) = node(pool, old + 1);
        persist_scope(media, Purpose::Node, |batch| {
            of_node.store(value, &batch);
            next.store(old, &batch);
            if self.mended {
                let _durable = batch.fence().durable();
            }
        });
        persist_scope(media, Purpose::Node, |batch| {
            head.store(old + 1, &batch);
            let _durable = batch.fence().durable();
        });
    }

    fn values(&self, pool: &Pool<Crash>) -> Vec<u64> {
        let media = pool.media();
        let (mut values, mut number) = (Vec::new(), word(pool, HEAD).load(media));
        while number != 0 {
            let (value, next) = node(pool, number);
            values.push(value.load(media));
            number = next.load(media);
        }
        values
    }
}

impl Subject for List {
    type Op = u64;
    type Answer = ();
    type State = Vec<u64>;
    type Live = Pool<Crash>;

    fn name(&self) -> String {
        "list".into()
    }

    fn create(&self, pool: Pool<Crash>) -> Result<Pool<Crash>, String> {
        Ok(pool)
    }

    fn open(&self, pool: Pool<Crash>) -> Result<Option<Pool<Crash>>, String> {
        Ok(Some(pool))
    }

    fn apply(&self, pool: &Pool<Crash>, value: &u64) -> Result<(), String> {
        self.push(pool, *value);
        Ok(())
    }

    fn specify(&self, values: &mut Vec<u64>, value: &u64) {
        values.insert(0, *value);
    }

    fn judge(&self, pool: &Pool<Crash>, verdict: Verdict<'_, List>) -> Result<usize, String> {
        let found = self.values(pool);
        let which = verdict.allowed.iter().position(|values| **values == found);
        which.ok_or_else(|| format!("it holds {found:?} instead of one of {:?}", verdict.allowed))
    }

    fn follow_up(&self, _values: &Vec<u64>, _in_flight: &[&u64], random: &mut Random) -> Vec<u64> {
        vec![random.below(100)]
    }
}

fn explore(mended: bool) -> Result<(), Box<Failure>> {
    let settings = Settings {
        memory: 2 << 20,
        ..Settings::default()
    };
    let mut explorer = Explorer::new(List { mended }, settings).expect("memory");
    let history = History {
        seed: 1,
        ops: vec![10, 20, 30],
        ..History::default()
    };
    match explorer.explore(&history) {
        Ok(()) => Ok(()),
        Err(failure) => Err(explorer.shrink(&history, failure, 100).1),
    }
}

/// Without its fence the list fails as the document says, and with it does not fail.
#[test]
fn the_documents_example_is_true() {
    let failure = explore(false).expect_err("the fence is missing").to_string();
    assert!(
        DOCUMENT.contains(&failure),
        "docs/crash-testing.md should quote:\n{failure}"
    );
    assert!(explore(true).is_ok());
}

/// The document quotes the push as it stands here.
#[test]
fn the_documents_code_is_this() {
    let source = include_str!("list.rs");
    let (_, push) = source.split_once("impl List {\n").expect("it is there");
    let (push, _) = push.split_once("\n\n").expect("it ends");
    assert!(
        DOCUMENT.contains(push),
        "docs/crash-testing.md should quote:\n{push}"
    );
}
