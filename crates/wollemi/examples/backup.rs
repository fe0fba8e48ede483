//! Backs up a database at one moment while other threads write to it, and restores the backup into a new one.
//!
//! `cargo run -p wollemi --example backup`

use std::error::Error;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use wollemi::Db;

const ACCOUNTS: u32 = 1000;

/// Returns the sum of all accounts.
fn total(db: &Db) -> Result<u64, Box<dyn Error>> {
    let mut total = 0;
    for entry in &db.map("accounts")? {
        total += u64::from_le_bytes(entry?.1.as_slice().try_into()?);
    }
    Ok(total)
}

/// Moves money between accounts until `stop` is set; the sum stays the same.
fn transfer(db: &Db, stop: &AtomicBool) -> Result<u64, wollemi::Error> {
    let accounts = db.map("accounts")?;
    let cents = |bytes: Option<Vec<u8>>| {
        bytes.map_or(0, |bytes| {
            u64::from_le_bytes(bytes.try_into().unwrap_or_default())
        })
    };
    let mut transfers = 0;
    while !stop.load(Relaxed) {
        let number = transfers as u32;
        let (from, to) = (number * 7 % ACCOUNTS, (number * 13 + 1) % ACCOUNTS);
        db.transact(|tx| {
            let (has, gets) = (
                cents(tx.get(&accounts, from.to_be_bytes())?),
                cents(tx.get(&accounts, to.to_be_bytes())?),
            );
            if from == to || has == 0 {
                return Ok(());
            }
            tx.upsert(&accounts, from.to_be_bytes(), (has - 1).to_le_bytes())?;
            tx.upsert(&accounts, to.to_be_bytes(), (gets + 1).to_le_bytes())
        })?;
        transfers += 1;
    }
    Ok(transfers)
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let db = Db::open(dir.path().join("bank.pool"))?;
    let accounts = db.map("accounts")?;
    accounts.load((0..ACCOUNTS).map(|number| (number.to_be_bytes(), 100u64.to_le_bytes())))?;

    let (stop, copy) = (AtomicBool::new(false), dir.path().join("bank.backup"));
    let (transfers, copied) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| transfer(&db, &stop));
        let backup = || -> Result<_, Box<dyn Error>> {
            let mut file = BufWriter::new(File::create(&copy)?);
            let copied = db.snapshot()?.backup(&mut file, |_| {})?;
            file.flush()?;
            file.get_ref().sync_all()?;
            Ok(copied)
        };
        let copied = backup();
        stop.store(true, Relaxed);
        Ok::<_, Box<dyn Error>>((writer.join().expect("no panic")?, copied?))
    })?;
    println!(
        "{} entries were copied beside {transfers} transfers",
        copied.entries
    );

    let restored = Db::open(dir.path().join("restored.pool"))?;
    restored.restore(&mut BufReader::new(File::open(&copy)?), |_| {})?;
    assert_eq!(total(&restored)?, u64::from(ACCOUNTS) * 100);
    assert_eq!(total(&db)?, u64::from(ACCOUNTS) * 100);
    assert!(restored.check()?.is_clean());
    Ok(())
}

#[cfg(test)]
mod tests {
    /// Runs the example, whose assertions check it.
    #[test]
    fn runs() {
        super::main().expect("it runs");
    }
}
