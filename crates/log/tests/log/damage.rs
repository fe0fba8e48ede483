//! Directories without a log or with a damaged one.

use super::*;
use std::os::unix::fs::FileExt as _;

/// A directory with no log, with another log, or with only a part of one is refused, with the reason.
#[test]
fn what_is_wrong_with_a_directory_is_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let disk = disk(path);
    let open = |needs| Log::open(disk.clone(), ID, needs, small()).expect_err("a refusal");
    assert!(matches!(open(from(Lsn(4096))), Error::Missing { .. }));
    let log = Log::create(disk.clone(), ID, small()).expect("a log");
    assert!(matches!(
        Log::create(disk.clone(), ID, small()),
        Err(Error::Exists { .. })
    ));
    let (begin, value) = (log.begin(), [1; 1000]);
    for _ in 0..20 {
        log.append(&[put(b"key", &value)]).expect("an append");
    }
    log.sync().expect("a sync");
    let end = log.appended();
    drop(log);

    let other = Log::open(disk.clone(), ID + 1, from(begin), small());
    assert!(matches!(other, Err(Error::Foreign { .. })), "{other:?}");
    let beyond = Needs {
        reach: Lsn(end.0 + 800),
        ..from(begin)
    };
    assert!(matches!(open(beyond), Error::Ends { .. }));
    assert!(matches!(open(from(Lsn(begin.0 + 8))), Error::Position { .. }));

    let aside = path.join("aside");
    for name in names(path).iter().filter(|name| name.starts_with("log-")) {
        std::fs::rename(path.join(name), &aside).expect("a rename");
        if *name < format!("log-{:08x}", (end.0 - 1) / 8192 + 1) {
            // If the last segment with records is missing, only `reach` says that the log went on. Segments that are
            // not checked now must still exist.
            for check in [begin, end] {
                let refusal = open(Needs {
                    keep: begin,
                    check,
                    reach: end,
                    durable: begin,
                });
                assert!(
                    matches!(refusal, Error::Missing { .. }),
                    "without {name}, from {check}: {refusal}"
                );
            }
        }
        std::fs::rename(&aside, path.join(name)).expect("a rename");
    }

    let swap = |a: &str, b: &str| {
        std::fs::rename(path.join(a), &aside).expect("a rename");
        std::fs::rename(path.join(b), path.join(a)).expect("a rename");
        std::fs::rename(&aside, path.join(b)).expect("a rename");
    };
    swap("log-00000001", "log-00000002");
    assert!(matches!(open(from(begin)), Error::Damaged { at: 32, .. }));
    swap("log-00000001", "log-00000002");

    let mut bytes = std::fs::read(path.join("log-00000000")).expect("a segment");
    bytes[8] = 2;
    std::fs::write(path.join("log-00000000"), &bytes).expect("a segment");
    assert!(matches!(open(from(begin)), Error::Newer { version: 2, .. }));
    bytes[0] = b'w';
    std::fs::write(path.join("log-00000000"), &bytes).expect("a segment");
    assert!(matches!(open(from(begin)), Error::NotALog { .. }));
    Log::remove(&*disk).expect("a removal");
    assert_eq!(names(path), [""; 0]);
}

/// A record that was durable and has a wrong checksum is damaged, even if no position states the length of the log:
/// later records prove that it was durable.
#[test]
fn damage_is_no_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let log = Log::create(disk(path), ID, small()).expect("a log");
    let begin = log.begin();
    let ends: Vec<_> = (0..20u8)
        .map(|n| {
            let end = log.append(&[put(&[n], &[n; 700])]).expect("an append");
            log.wait_durable(end).expect("a sync");
            end
        })
        .collect();
    drop(log);
    // The last record is left out: a crash may leave one with a wrong checksum at the end.
    for end in &ends[..19] {
        let (file, at) = (
            path.join(format!("log-{:08x}", (end.0 - 1) / 8192)),
            (end.0 - 100) % 8192,
        );
        let mut bytes = std::fs::read(&file).expect("a segment");
        bytes[at as usize] ^= 1;
        std::fs::write(&file, &bytes).expect("a segment");
        let opened = Log::open(disk(path), ID, from(begin), small());
        assert!(matches!(opened, Err(Error::Damaged { .. })), "{end}: {opened:?}");
        bytes[at as usize] ^= 1;
        std::fs::write(&file, &bytes).expect("a segment");
    }
    let log = Log::open(disk(path), ID, from(begin), small()).expect("the log is intact again");
    assert_eq!(records(&log, begin).len(), 20);
}

/// A scan skips the records before its first, and does not compare their checksums. A flipped bit in one of them makes
/// the scan fail, or changes nothing: the scan never misses a record.
#[test]
fn damage_in_skipped_records_hides_no_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = Log::create(disk(directory.path()), ID, small()).expect("a log");
    let begin = log.begin();
    // A record takes 64 bytes, so that one with 64 more ends where another does. They reach into the next segment.
    let append = |_| log.append(&[put(b"key", &[7; 25])]).expect("an append");
    let ends: Vec<_> = (0..70).map(append).collect();
    assert!(
        ends[..60].iter().zip(&ends[1..]).all(|(a, b)| b.0 - a.0 == 64),
        "{ends:?}"
    );
    let from = ends[3];
    let expected = records(&log, from);
    assert_eq!(expected.len(), 66);
    let path = directory.path().join("log-00000000");
    let file = std::fs::File::options().read(true).write(true).open(path);
    let file = file.expect("the segment");
    let mut outcomes = [0, 0];
    for at in begin.0..from.0 {
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).expect("a byte");
        for bit in 0..8 {
            file.write_all_at(&[byte[0] ^ 1 << bit], at).expect("written");
            let mut scan = log.scan(from..log.appended()).expect("a scan");
            let mut ends = Vec::new();
            let done = loop {
                match scan.next() {
                    Ok(Some(record)) => ends.push(record.end),
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            match done {
                Ok(()) => assert!(
                    ends.iter().eq(expected.iter().map(|(end, _)| end)),
                    "bit {bit} of {at}"
                ),
                Err(Error::Damaged { .. }) => assert!(ends.is_empty(), "bit {bit} of {at}"),
                Err(error) => panic!("bit {bit} of {at}: {error}"),
            }
            outcomes[usize::from(ends.is_empty())] += 1;
        }
        file.write_all_at(&byte, at).expect("written");
    }
    assert!(outcomes.iter().all(|&count| count > 0), "{outcomes:?}");
}

/// No bit of a segment's header can change unnoticed.
#[test]
fn damage_in_a_header_is_noticed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let log = Log::create(disk(path), ID, small()).expect("a log");
    let begin = log.begin();
    let end = log.append(&[put(b"key", b"value")]).expect("an append");
    log.wait_durable(end).expect("a sync");
    drop(log);
    let file = path.join("log-00000000");
    let intact = std::fs::read(&file).expect("a segment");
    for bit in 0..64 * 8 {
        let mut bytes = intact.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&file, &bytes).expect("a segment");
        let opened = Log::open(disk(path), ID, from(begin), small());
        assert!(opened.is_err(), "bit {bit}: {opened:?}");
    }
    std::fs::write(&file, &intact).expect("a segment");
    let log = Log::open(disk(path), ID, from(begin), small()).expect("the log is intact again");
    assert_eq!(records(&log, begin).len(), 1);
}
