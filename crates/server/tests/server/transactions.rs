//! Redis's transactions: their own view of their changes, and what remains of one that fails.

use crate::pool::Pool;
use crate::support::Running;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use wollemi::Error;

/// Returns the error of a failed commit.
fn no_room() -> Error {
    let what = "no room";
    heap::Error::Damaged { what, offset: 0 }.into()
}

/// Returns a server whose transactions commit, unless they are made to fail, and counts the commits.
fn server(fails: &Arc<AtomicBool>, committed: &Arc<AtomicUsize>) -> Running {
    let pool = Pool::new();
    let (fails, committed) = (fails.clone(), committed.clone());
    pool.db().before_commits(move || {
        if fails.load(Ordering::Relaxed) {
            return Err(no_room());
        }
        committed.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    let config = pool.config();
    Running::over_this(pool, config)
}

/// Reads within a transaction see its writes: by key, together, in order, and counted; across databases, including
/// flushes and renames. Nothing is committed before its end, and then everything by one call.
#[test]
fn a_transaction_sees_what_it_has_written() {
    let committed = Arc::default();
    let server = server(&Arc::default(), &committed);
    let mut client = server.connect_redis();
    client.ask("mset a 1 b 2 d 4\r\n", "+OK\r\n");
    assert_eq!(committed.load(Ordering::Relaxed), 1);
    let commands = [
        ("set c 3", "+OK\r\n"),
        ("del b", ":1\r\n"),
        ("append a x", ":2\r\n"),
        ("mget a b c", "*3\r\n$2\r\n1x\r\n$-1\r\n$1\r\n3\r\n"),
        ("keys *", "*3\r\n$1\r\na\r\n$1\r\nc\r\n$1\r\nd\r\n"),
        ("krange + - rev limit 2", "*2\r\n$1\r\nd\r\n$1\r\nc\r\n"),
        ("dbsize", ":3\r\n"),
        ("rename c e", "+OK\r\n"),
        ("exists c e", ":1\r\n"),
        ("incr d", ":5\r\n"),
        ("incr a", "-ERR value is not an integer or out of range\r\n"),
        ("select 5", "+OK\r\n"),
        ("set a other", "+OK\r\n"),
        ("get a", "$5\r\nother\r\n"),
        ("select 0", "+OK\r\n"),
        ("flushdb", "+OK\r\n"),
        ("dbsize", ":0\r\n"),
        ("get d", "$-1\r\n"),
        ("set f 6", "+OK\r\n"),
        ("keys *", "*1\r\n$1\r\nf\r\n"),
    ];
    let mut request = "multi\r\n".to_owned();
    let mut answer = "+OK\r\n".to_owned();
    for (command, _) in commands {
        request += &format!("{command}\r\n");
        answer += "+QUEUED\r\n";
    }
    answer += &format!("*{}\r\n", commands.len());
    commands.iter().for_each(|(_, reply)| answer += reply);
    client.ask(&(request + "exec\r\n"), &answer);
    assert_eq!(committed.load(Ordering::Relaxed), 2);
    client.ask(
        "mget a d f\r\ndbsize\r\n",
        "*3\r\n$-1\r\n$-1\r\n$1\r\n6\r\n:1\r\n",
    );
    client.ask("select 5\r\nget a\r\n", "+OK\r\n$5\r\nother\r\n");
}

/// A transaction that is committed but not completed is not answered as one that changed nothing: its error has a code
/// of its own, and the database that it selected stays selected.
#[test]
fn a_transaction_that_is_unfinished_is_told_as_committed() {
    let pool = Pool::new();
    let unfinished = || Error::Unfinished(Box::new(no_room()));
    pool.db().before_commits(move || Err(unfinished()));
    let config = pool.config();
    let server = Running::over_this(pool, config);
    let mut client = server.connect_redis();
    client.ask("set a 1\r\n", "+OK\r\n");
    let queued = "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n";
    client.ask(
        "multi\r\nselect 2\r\nset b 1\r\nset c 2\r\nexec\r\n",
        &format!("{queued}-UNFINISHED {}\r\n", unfinished()),
    );
    // Database 2, which the transaction has selected, has no key `a`.
    client.ask("get a\r\nselect 0\r\nget a\r\n", "$-1\r\n+OK\r\n$1\r\n1\r\n");
}

/// A transaction that cannot commit changes nothing, neither items nor their metadata, and succeeds when it is sent
/// again.
#[test]
fn a_transaction_that_fails_has_changed_nothing() {
    let (fails, committed) = (Arc::new(AtomicBool::new(false)), Arc::default());
    let server = server(&fails, &committed);
    let mut client = server.connect_redis();
    client.ask("mset a 1 b 2\r\n", "+OK\r\n");
    fails.store(true, Ordering::Relaxed);
    let why = no_room();
    let multi = "multi\r\nset c 3\r\nflushall\r\nselect 2\r\nset c 4\r\n";
    let queued = "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n";
    client.ask(&format!("{multi}exec\r\n"), &format!("{queued}-ERR {why}\r\n"));
    // The list of clients shows the database that was selected before the transaction.
    client.send(b"client info\r\n");
    client.line();
    let info = String::from_utf8(client.until(b"\n\r\n")).expect("text");
    assert!(info.contains(" db=0 "), "{info}");
    client.ask(
        "mset a 8 b 9\r\ndel a b\r\nrename a c\r\n",
        &format!("-ERR {why}\r\n").repeat(3),
    );
    client.ask(
        "mget a b c\r\ndbsize\r\n",
        "*3\r\n$1\r\n1\r\n$1\r\n2\r\n$-1\r\n:2\r\n",
    );
    client.ask("flushdb\r\ndbsize\r\n", &format!("-ERR {why}\r\n:2\r\n"));
    // One key is too long: none of them is set.
    let long = "k".repeat(65_536);
    client.ask(
        &format!("multi\r\nmset a 8 {long} 9\r\nget a\r\nexec\r\n"),
        "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n-ERR key of 65536 bytes: the longest key is 65535 bytes\r\n$1\r\n1\r\n",
    );
    fails.store(false, Ordering::Relaxed);
    client.ask(
        &format!("{multi}exec\r\ndbsize\r\nselect 0\r\ndbsize\r\n"),
        &format!("{queued}*4\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n:1\r\n+OK\r\n:0\r\n"),
    );
}

/// A transaction that fails is no change for a client that watches a key, which it has set and removed, in each way
/// that notes a removal.
#[test]
fn a_transaction_that_fails_is_not_seen_by_watchers() {
    let fails = Arc::new(AtomicBool::new(true));
    let server = server(&fails, &Arc::default());
    let (mut watcher, mut other) = (server.connect_redis(), server.connect_redis());
    for removal in ["del k", "getdel k", "pexpireat k 1", "rename k moved"] {
        watcher.ask("watch k\r\n", "+OK\r\n");
        other.ask(
            &format!("multi\r\nset k x\r\n{removal}\r\nset other x\r\nexec\r\n"),
            &format!("+OK\r\n{}-ERR {}\r\n", "+QUEUED\r\n".repeat(3), no_room()),
        );
        // Nothing is written, so this commits.
        watcher.ask("multi\r\nping\r\nexec\r\n", "+OK\r\n+QUEUED\r\n*1\r\n+PONG\r\n");
    }
    server.stop();
}

/// A transaction that fails leaves its connection as it was: the selected database, the protocol, and the names.
#[test]
fn a_transaction_that_fails_leaves_its_connection_as_it_was() {
    let fails = Arc::new(AtomicBool::new(true));
    let server = server(&fails, &Arc::default());
    let mut client = server.connect_redis();
    client.ask(
        "client setname old\r\nclient setinfo lib-name old-lib\r\n",
        "+OK\r\n+OK\r\n",
    );
    let transaction =
        "multi\r\nselect 2\r\nhello 3 setname new\r\nclient setinfo lib-name new-lib\r\nset c 4\r\nexec\r\n";
    let queued = format!("+OK\r\n{}", "+QUEUED\r\n".repeat(4));
    client.ask(transaction, &format!("{queued}-ERR {}\r\n", no_room()));
    client.send(b"client info\r\n");
    let info = String::from_utf8(client.until(b"\n\r\n")).expect("text");
    assert!(info.starts_with('$'), "{info}");
    for part in [
        " name=old ",
        " db=0 ",
        " flags=N ",
        " multi=-1 ",
        " resp=2 ",
        " lib-name=old-lib ",
    ] {
        assert!(info.contains(part), "{part}: {info}");
    }

    fails.store(false, Ordering::Relaxed);
    client.ask(transaction, &format!("{queued}*4\r\n+OK\r\n%7\r\n"));
    client.until(b"modules\r\n*0\r\n+OK\r\n+OK\r\n");
    client.send(b"client info\r\n");
    let info = String::from_utf8(client.until(b"\n\r\n")).expect("text");
    assert!(info.starts_with('='), "{info}");
    for part in [" name=new ", " db=2 ", " resp=3 ", " lib-name=new-lib "] {
        assert!(info.contains(part), "{part}: {info}");
    }
}

/// A transaction that exceeds its limit is refused as a whole, even if later removals would bring it below the limit
/// again, since a change before them was not kept.
#[test]
fn too_large_a_transaction_is_refused_whatever_it_removes() {
    let committed = Arc::default();
    let server = server(&Arc::default(), &committed);
    let mut client = server.connect_redis();
    client.ask("multi\r\n", "+OK\r\n");
    for key in ["a", "b", "c", "d", "e"] {
        client.ask(&format!("setrange {key} 60000000 x\r\n"), "+QUEUED\r\n");
    }
    client.ask("set foo bar\r\n", "+QUEUED\r\n");
    client.ask("del a b c\r\n", "+QUEUED\r\n");
    client.ask(
        "exec\r\n",
        "-ERR the transaction changes more than 256 MiB of one database\r\n",
    );
    client.ask("exists a b c d e foo\r\n", ":0\r\n");
    client.ask("dbsize\r\n", ":0\r\n");
    assert_eq!(committed.load(Ordering::Relaxed), 0);
}

/// A transaction that fails during its commands leaves everything unchanged, including the selected database.
#[test]
fn a_transaction_that_fails_selects_nothing() {
    let committed = Arc::default();
    let server = server(&Arc::default(), &committed);
    let mut client = server.connect_redis();
    let large = "setrange large 1048575 x\r\n";
    client.ask(
        &format!("set a zero\r\n{large}select 3\r\nset a three\r\n"),
        "+OK\r\n:1048576\r\n+OK\r\n+OK\r\n",
    );
    let gets = "get large\r\n".repeat(64);
    client.ask(
        &format!("multi\r\nset a 3\r\nselect 0\r\nset a 0\r\n{gets}exec\r\nget a\r\n"),
        &format!(
            "+OK\r\n{}-ERR the reply would be longer than 64 MiB: ask for less at a time\r\n$5\r\nthree\r\n",
            "+QUEUED\r\n".repeat(67)
        ),
    );
    client.ask("select 0\r\nget a\r\n", "+OK\r\n$4\r\nzero\r\n");
}

/// A watched key that was absent, set and removed has changed, however it was removed; one that was never set has not.
#[test]
fn a_watched_key_that_came_and_went_is_noticed() {
    let server = Running::over_pool();
    let (mut watcher, mut other) = (server.connect_redis(), server.connect_redis());
    for (changes, answer, end) in [
        ("set k x\r\ndel k\r\n", "+OK\r\n:1\r\n", "*-1\r\n"),
        ("set k x\r\nflushdb\r\n", "+OK\r\n+OK\r\n", "*-1\r\n"),
        (
            "set k x\r\nflushall\r\nget k\r\n",
            "+OK\r\n+OK\r\n$-1\r\n",
            "*-1\r\n",
        ),
        ("set k x\r\nrename k other\r\n", "+OK\r\n+OK\r\n", "*-1\r\n"),
        (
            "multi\r\nset k x\r\ndel k\r\nexec\r\n",
            "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n:1\r\n",
            "*-1\r\n",
        ),
        (
            "multi\r\nset k x\r\nflushdb\r\nexec\r\n",
            "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n+OK\r\n",
            "*-1\r\n",
        ),
        ("flushall\r\ndel k\r\n", "+OK\r\n:0\r\n", "*1\r\n+PONG\r\n"),
        ("get k\r\nset other x\r\n", "$-1\r\n+OK\r\n", "*1\r\n+PONG\r\n"),
    ] {
        watcher.ask("watch k\r\n", "+OK\r\n");
        other.ask(changes, answer);
        watcher.ask("multi\r\nping\r\nexec\r\n", &format!("+OK\r\n+QUEUED\r\n{end}"));
    }
    assert_eq!(server.stop().failures, 0);
}
