//! A job queue: jobs wait for their time, a worker leases one, and a job whose worker died is leased again.
//!
//! Waiting jobs are ordered by their times. A lease is an entry that expires. A worker that finishes its job removes
//! both; the next worker that looks finds the jobs whose leases have expired.
//!
//! `cargo run -p wollemi --features derive --example job_queue`

use serde::{Deserialize, Serialize};
use std::error::Error;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wollemi::{Db, Expiring, Key, TypedMap};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Job {
    what: String,
}

/// Jobs, ordered by due time.
#[derive(Clone, Debug, PartialEq, Key)]
struct Due {
    at_ms: u64,
    id: u64,
}

struct Queue {
    db: Db,
    jobs: TypedMap<Due, Job>,
    leases: Expiring,
}

#[expect(clippy::disallowed_methods, reason = "a job is due at a time of the day")]
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl Queue {
    fn open(db: Db) -> Result<Queue, wollemi::Error> {
        Ok(Queue {
            jobs: TypedMap::new(db.map("jobs")?),
            leases: Expiring::new(db.map("leases")?),
            db,
        })
    }

    fn add(&self, id: u64, what: &str) -> Result<(), wollemi::Error> {
        let job = Job {
            what: what.to_owned(),
        };
        self.jobs.upsert(&Due { at_ms: now_ms(), id }, &job)
    }

    /// Leases to this worker, for `life`, the first due job that no living worker has.
    fn lease(&self, worker: &str, life: Duration) -> Result<Option<(Due, Job)>, wollemi::Error> {
        self.db.transact(|tx| {
            let until = Due {
                at_ms: now_ms(),
                id: u64::MAX,
            };
            let mut free = None;
            for entry in self.jobs.range_in(tx, ..=until)? {
                let (due, job) = entry?;
                if self.leases.get_in(tx, due.id.to_be_bytes())?.is_none() {
                    free = Some((due, job));
                    break;
                }
            }
            if let Some((due, _)) = &free {
                self.leases
                    .upsert_in(tx, due.id.to_be_bytes(), worker, Some(life))?;
            }
            Ok(free)
        })
    }

    /// Ends a job and its lease; returns `false` if another worker has the job by now.
    fn end(&self, worker: &str, due: &Due) -> Result<bool, wollemi::Error> {
        self.db.transact(|tx| {
            let holder = self.leases.get_in(tx, due.id.to_be_bytes())?;
            if holder.is_none_or(|(name, _)| name != worker.as_bytes()) {
                return Ok(false);
            }
            self.leases.remove_in(tx, due.id.to_be_bytes())?;
            self.jobs.remove_in(tx, due)
        })
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let queue = Queue::open(Db::anonymous()?)?;
    for id in 0..10 {
        queue.add(id, &format!("job {id}"))?;
    }

    // This worker dies with its job, which no other worker gets before the lease has expired.
    let (lost, _) = queue
        .lease("unlucky", Duration::from_millis(50))?
        .expect("ten are due");
    assert_eq!(lost.id, 0);

    let worker = |name: String| -> Result<u64, wollemi::Error> {
        let mut done = 0;
        while !queue.jobs.map().is_empty()? {
            match queue.lease(&name, Duration::from_secs(60))? {
                Some((due, _)) => done += u64::from(queue.end(&name, &due)?),
                None => thread::sleep(Duration::from_millis(5)),
            }
        }
        Ok(done)
    };
    let done = thread::scope(|scope| {
        let workers: Vec<_> = (0..3)
            .map(|i| scope.spawn(move || worker(format!("worker {i}"))))
            .collect();
        workers
            .into_iter()
            .map(|handle| handle.join().expect("no panic"))
            .sum::<Result<u64, _>>()
    })?;
    println!("three workers did {done} jobs, the lost one among them");
    assert_eq!(done, 10);
    assert!(
        !queue.end("unlucky", &lost)?,
        "the dead worker has lost its lease"
    );
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
