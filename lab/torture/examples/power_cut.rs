//! Runs transactions at level `disk` until the power fails, and judges the database afterwards. `contrib/power/disk.sh`
//! runs it in its guest.
//!
//!     power_cut write POOL ROUND    prints committed transactions on the console, without end
//!     power_cut judge POOL LAST     LAST: each thread's last acknowledged transaction on the console, as
//!                                   ROUND.THREAD.COUNT,…
//!
//! A transaction moves an amount from one account to another, and stores its number in another map. So after a power
//! cut the sum of the accounts is unchanged, and each thread's number is that of its last acknowledged transaction or
//! of a later one.

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;
use wollemi::{Db, Level, Map, Options, Retry};

const ACCOUNTS: u64 = 16;

/// The initial balance of an account.
const INITIAL: u64 = 1 << 32;

const THREADS: u64 = 3;

/// The number of the first thread. The other clients of a round have lower numbers.
const FIRST_THREAD: u64 = 10;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["write", pool, round] => write(pool, round),
        ["judge", pool, acknowledged] => judge(pool, acknowledged),
        _ => Err("usage: power_cut write POOL ROUND, or power_cut judge POOL LAST".into()),
    };
    match done {
        Ok(text) => {
            println!("ok {text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("BAD program: {error}");
            ExitCode::FAILURE
        }
    }
}

type Done = Result<String, Box<dyn Error + Send + Sync>>;

fn open(pool: &str) -> Result<(Db, Map, Map), wollemi::Error> {
    let db = Options::new().level(Level::Disk).open(pool)?;
    let (accounts, notes) = (db.map("accounts")?, db.map("notes")?);
    Ok((db, accounts, notes))
}

fn number(bytes: Option<Vec<u8>>) -> Option<u64> {
    bytes?.try_into().ok().map(u64::from_le_bytes)
}

/// Runs transactions on several threads, and takes checkpoints on this one.
fn write(pool: &str, round: &str) -> Done {
    let (db, accounts, notes) = open(pool)?;
    // Creates all accounts or none.
    let mut batch = db.batch();
    for account in 0..ACCOUNTS {
        batch.expect(&accounts, account.to_le_bytes(), None::<&[u8]>);
        batch.upsert(&accounts, account.to_le_bytes(), INITIAL.to_le_bytes());
    }
    batch.commit()?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (FIRST_THREAD..FIRST_THREAD + THREADS)
            .map(|thread| {
                let (db, accounts, notes) = (&db, &accounts, &notes);
                scope.spawn(move || transfer(db, accounts, notes, &format!("{round}.{thread}"), thread))
            })
            .collect();
        let mut checkpoints = 0u64;
        while threads.iter().all(|thread| !thread.is_finished()) {
            db.checkpoint(checkpoints % 4 == 3)?;
            checkpoints += 1;
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(ended) => ended,
            Err(_) => Err("a thread panicked".into()),
        })?;
        Err("the threads ended before the power cut".into())
    })
}

fn transfer(
    db: &Db,
    accounts: &Map,
    notes: &Map,
    name: &str,
    seed: u64,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let retry = Retry::new().tries(u32::MAX);
    let mut random = seed;
    for count in 1u64.. {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(count);
        let (from, amount) = ((random >> 33) % ACCOUNTS, (random >> 40) % 100);
        let to = (from + 1 + (random >> 50) % (ACCOUNTS - 1)) % ACCOUNTS;
        db.transact_with(&retry, |tx| {
            let [from, to] = [from, to].map(u64::to_le_bytes);
            let left = number(tx.get(accounts, from)?).unwrap_or(0).wrapping_sub(amount);
            let more = number(tx.get(accounts, to)?).unwrap_or(0).wrapping_add(amount);
            tx.upsert(accounts, from, left.to_le_bytes())?;
            tx.upsert(accounts, to, more.to_le_bytes())?;
            tx.upsert(notes, name, count.to_le_bytes())
        })?;
        writeln!(std::io::stdout().lock(), "acknowledged {name}.{count}")?;
    }
    Ok(())
}

fn judge(pool: &str, acknowledged: &str) -> Done {
    let (db, accounts, notes) = open(pool)?;
    let (mut sum, mut found) = (0u64, 0);
    for entry in accounts.iter() {
        sum = sum.wrapping_add(number(Some(entry?.1)).ok_or("an account does not hold a number")?);
        found += 1;
    }
    if found > 0 && (found, sum) != (ACCOUNTS, ACCOUNTS * INITIAL) {
        return Err(format!("{found} accounts hold {sum} in total").into());
    }
    let (mut threads, mut more) = (0, 0);
    for entry in acknowledged.split(',') {
        let Some((name, count)) = entry.rsplit_once('.') else {
            continue;
        };
        let thread: u64 = name.rsplit('.').next().unwrap_or_default().parse()?;
        if thread < FIRST_THREAD {
            continue;
        }
        let (count, noted) = (count.parse()?, number(notes.get(name)?).unwrap_or(0));
        if noted < count || found == 0 {
            return Err(format!("thread {name}: {count} acknowledged, {noted} found").into());
        }
        (threads, more) = (threads + 1, more + noted - count);
    }
    if !db.check()?.is_clean() {
        return Err("the check is not clean".into());
    }
    Ok(format!(
        "program: the accounts add up, all acknowledged transactions of {threads} threads are present, and {more} more"
    ))
}
