//! The program of the tutorial, `docs/crash-tutorial.md`: a bank whose transfers are atomic by a redo log, two ways to
//! get it wrong, and the kit's report on each.

use pmem::{Offset, PWord, PersistBatch, Pool, Purpose, persist_scope};
use wollemi_crashkit::{Crash, Failure, Random, Report, Subject, Verdict, torture};

const DOCUMENT: &str = include_str!("../../../docs/crash-tutorial.md");

/// The bug that the bank has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    Nothing,
    /// The mark is persisted together with what it vouches for.
    MarkWithRecord,
    /// Opening acts on a mark that a killed process may have left in the cache.
    OpeningTrusts,
}

struct Bank(Bug);

const ACCOUNTS: usize = 4;

/// The words of the pool: the mark, the record and each balance lie in lines of their own, of 64 bytes.
struct Words<'p> {
    mark: &'p PWord,
    /// From, to, and their new balances.
    record: [&'p PWord; 4],
    balances: [&'p PWord; ACCOUNTS],
}

const START: u64 = 64 << 10;

fn words(pool: &Pool<Crash>) -> Words<'_> {
    let word = |at: u64| {
        let offset = Offset::new(START + at).expect("a multiple of 16");
        // SAFETY: there is no allocator here, and these bytes hold words only.
        unsafe { pool.at(offset) }.expect("in the pool")
    };
    Words {
        mark: word(0),
        record: [64, 80, 96, 112].map(word),
        balances: [128, 192, 256, 320].map(word),
    }
}

/// Changes words, and waits until they are durable.
fn persist<'p>(pool: &'p Pool<Crash>, change: impl FnOnce(&PersistBatch<'_, 'p, Crash>)) {
    persist_scope(pool.media(), Purpose::Log, |batch| {
        change(&batch);
        let _durable = batch.fence().durable();
    });
}

impl Bank {
    fn transfer(&self, pool: &Pool<Crash>, from: usize, to: usize, amount: u64) {
        let words = words(pool);
        let balance = |account: usize| words.balances[account].load(pool.media());
        let after = [
            balance(from).wrapping_sub(amount),
            balance(to).wrapping_add(amount),
        ];
        let record = [from as u64, to as u64, after[0], after[1]];
        persist(pool, |batch| {
            for (word, value) in words.record.iter().zip(record) {
                word.store(value, batch);
            }
            if self.0 == Bug::MarkWithRecord {
                words.mark.store(1, batch);
            }
        });
        if self.0 != Bug::MarkWithRecord {
            persist(pool, |batch| words.mark.store(1, batch));
        }
        self.carry_out(pool);
    }

    /// Carries out the record. Doing so twice has the effect of once.
    fn carry_out(&self, pool: &Pool<Crash>) {
        let words = words(pool);
        let [from, to, of_from, of_to] = words.record.map(|word| word.load(pool.media()));
        persist(pool, |batch| {
            words.balances[from as usize % ACCOUNTS].store(of_from, batch);
            words.balances[to as usize % ACCOUNTS].store(of_to, batch);
        });
        persist(pool, |batch| words.mark.store(0, batch));
    }

    fn recover(&self, pool: &Pool<Crash>) {
        let mark = words(pool).mark;
        if self.0 != Bug::OpeningTrusts {
            persist(pool, |batch| mark.persist_seen(batch));
        }
        if mark.load(pool.media()) != 0 {
            self.carry_out(pool);
        }
    }
}

/// From, to, amount.
type Transfer = (usize, usize, u64);

impl Subject for Bank {
    type Op = Transfer;
    type Answer = ();
    type State = [u64; ACCOUNTS];
    type Live = Pool<Crash>;

    fn name(&self) -> String {
        "bank".into()
    }

    fn create(&self, pool: Pool<Crash>) -> Result<Pool<Crash>, String> {
        Ok(pool)
    }

    fn open(&self, pool: Pool<Crash>) -> Result<Option<Pool<Crash>>, String> {
        self.recover(&pool);
        Ok(Some(pool))
    }

    fn apply(&self, pool: &Pool<Crash>, &(from, to, amount): &Transfer) -> Result<(), String> {
        self.transfer(pool, from, to, amount);
        Ok(())
    }

    fn specify(&self, balances: &mut [u64; ACCOUNTS], &(from, to, amount): &Transfer) {
        balances[from] = balances[from].wrapping_sub(amount);
        balances[to] = balances[to].wrapping_add(amount);
    }

    fn judge(&self, pool: &Pool<Crash>, verdict: Verdict<'_, Bank>) -> Result<usize, String> {
        let found = words(pool).balances.map(|word| word.load(pool.media()));
        let which = verdict.allowed.iter().position(|balances| **balances == found);
        which.ok_or_else(|| format!("it holds {found:?} instead of one of {:?}", verdict.allowed))
    }

    fn follow_up(&self, _: &[u64; ACCOUNTS], _: &[&Transfer], random: &mut Random) -> Vec<Transfer> {
        vec![transfer(random), transfer(random)]
    }
}

fn transfer(random: &mut Random) -> Transfer {
    let from = random.below(ACCOUNTS as u64) as usize;
    let to = (from + 1 + random.below(ACCOUNTS as u64 - 1) as usize) % ACCOUNTS;
    (from, to, 1 + random.below(9))
}

fn run(bug: Bug) -> Result<Report, Box<Failure>> {
    torture(Bank(bug), transfer)
        .seeds(1..=20)
        .operations(10)
        .threads(1..=1)
        .run()
}

/// The correct bank fails in no image; the kit judges many, also after second crashes.
#[test]
fn the_bank_is_sound() {
    let report = run(Bug::Nothing).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(report.states > 500 && report.again > 20, "{report}");
}

/// One fence for the record and its mark: the mark may become durable first.
#[test]
fn a_mark_persisted_with_its_record_is_found() {
    let failure = run(Bug::MarkWithRecord).expect_err("it is wrong");
    assert!(failure.message.contains("instead of one of"), "{failure}");
    assert_eq!((failure.crashes, failure.operations.len()), (1, 1), "{failure}");
    assert!(!failure.missing.is_empty(), "{failure}");
}

/// Opening must persist what it acts on. Only a killed process followed by a loss of power shows it.
#[test]
fn an_opening_that_trusts_is_found() {
    let failure = run(Bug::OpeningTrusts).expect_err("it is wrong");
    assert!(failure.message.contains("instead of one of"), "{failure}");
    let killed = failure
        .earlier
        .iter()
        .any(|earlier| earlier.message.contains("killed"));
    assert!(killed, "{failure}");
}

/// The document quotes this program as it stands.
#[test]
fn the_documents_code_is_this() {
    let source = include_str!("tutorial.rs");
    for (from, to) in [
        ("    fn transfer(", "\n    /// Carries out"),
        ("    /// Carries out the record", "\n    fn recover"),
        ("    fn recover(", "\n}\n\n/// From, to"),
        ("    torture(Bank", "\n}\n\n/// The correct bank"),
    ] {
        let begin = source.find(from).expect("it is there");
        let code = &source[begin..];
        let code = &code[..code.find(to).expect("it ends")];
        assert!(
            DOCUMENT.contains(code.trim_end()),
            "docs/crash-tutorial.md should quote:\n{code}"
        );
    }
}
