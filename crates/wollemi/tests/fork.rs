//! A forked child that drops a database and its sweeper: it does not have their threads, and must not wait for them.

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};
use std::time::Duration;
use wollemi::{Expiring, Level, Options, Rebuilding};

// SAFETY: the C library, which the standard library links, has all three with these types; none takes a pointer. A
// child of `fork` has only the calling thread: the test's child makes no call that could wait for another.
unsafe extern "C" {
    safe fn fork() -> i32;
    safe fn alarm(seconds: u32) -> u32;
    safe fn _exit(code: i32) -> !;
}

#[test]
fn a_forked_child_drops_the_database_without_its_threads() -> Result<(), Box<dyn std::error::Error>> {
    fork_at(Level::Process)
}

#[test]
fn a_forked_child_drops_the_database_without_the_threads_of_its_log() -> Result<(), Box<dyn std::error::Error>>
{
    fork_at(Level::Disk)
}

/// The child ends, and the parent's later writes are present when the pool is reopened.
fn fork_at(level: Level) -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("pool");
    let open = || Options::new().level(level).open(&path);
    let db = open()?;
    let map = Expiring::new(db.map("m")?);
    map.upsert("before", "1", None)?;
    // The sweeper's thread has a handle to the database, so the child's drop is not the last one.
    let sweeper = match level {
        Level::Process => Some(map.sweeper(Duration::from_micros(1))?),
        _ => None,
    };

    let mut handles = Some((sweeper, map, db));
    let child = fork();
    if child == 0 {
        alarm(120);
        drop(handles.take());
        _exit(0);
    }
    let child = Pid::from_raw(child).ok_or("no child")?;
    let (_, status) = waitpid(Some(child), WaitOptions::empty())?.ok_or("the child has not ended")?;
    assert_eq!(status.exit_status(), Some(0), "{status:?}");

    let (sweeper, map, db) = handles.take().ok_or("the child has its own")?;
    map.upsert("after", "2", None)?;
    drop((sweeper, map));
    drop(db);
    let db = open()?;
    assert!(db.check()?.is_clean());
    let map = Expiring::new(db.map("m")?);
    assert_eq!(map.get("before")?.as_deref(), Some(&b"1"[..]));
    assert_eq!(map.get("after")?.as_deref(), Some(&b"2"[..]));
    Ok(())
}

/// A child that another thread forks while a pool of level `disk` is being rebuilt does not keep the pool locked.
#[test]
fn a_child_forked_amid_an_opening_keeps_no_lock() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("pool");
    let options = || Options::new().level(Level::Disk);
    options().open(&path)?.map("m")?.upsert("key", "value")?;
    std::fs::remove_file(&path)?;
    let child = Arc::new(AtomicI32::new(0));
    let forked = child.clone();
    let fork_once = move |_: &Rebuilding| {
        if forked.load(SeqCst) == 0 {
            let child = fork();
            if child == 0 {
                // Until it is killed.
                alarm(120);
                loop {
                    std::thread::sleep(Duration::from_secs(1000));
                }
            }
            forked.store(child, SeqCst);
        }
    };
    drop(options().on_rebuild(fork_once).open(&path)?);
    let reopened = options().lock_wait(Duration::ZERO).open(&path);
    let child = Pid::from_raw(child.load(SeqCst)).ok_or("no child")?;
    kill_process(child, Signal::KILL)?;
    waitpid(Some(child), WaitOptions::empty())?;
    assert_eq!(reopened?.map("m")?.get("key")?.as_deref(), Some(&b"value"[..]));
    Ok(())
}
