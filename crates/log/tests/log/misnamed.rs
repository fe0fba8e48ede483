//! Files behind the end of a log that have the header of another segment.

use super::failing::Failing;
use super::*;
use rustix::io::Errno;
use std::os::unix::fs::MetadataExt as _;

/// What a crash leaves of the segment that is made of the file that was segment 2.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Other {
    /// Its header, without a name of its own.
    Unnamed,
    /// A part of the segment is used.
    Begun,
    /// All of it is used.
    Full,
}

fn two_spares() -> LogOptions {
    LogOptions { spares: 2, ..small() }
}

/// Makes a log whose segment 2 has become a spare, and then segment 1; segment 3 has been removed. The sync of the
/// directory has failed in between, and a crash brings the old names back. Returns the position up to which the log is
/// durable, and its records.
fn bring_a_name_back(path: &Path, other: Other) -> (Lsn, Vec<(Lsn, String)>) {
    let file = |name: &str| path.join(name);
    let disk = Failing::new(path);
    let log = Log::create(disk.clone(), ID, two_spares()).expect("a log");
    let begin = log.begin();
    log.prepare_for(3 * 8192).expect("room");
    drop(log);
    std::fs::hard_link(file("log-00000003"), file("third")).expect("a second name");
    let number = |name| std::fs::metadata(file(name)).expect("a file").ino();
    let second = number("log-00000002");

    let open = || Log::open(disk.clone(), ID, from(begin), two_spares());
    disk.fail(Some((&["fsync of the directory"], Errno::IO)));
    open().expect_err("the sync fails");
    // The next one cannot make segment 1 of the first spare, and removes it.
    disk.fail(Some((&["rename"], Errno::NOSPC)));
    let log = open().expect("the names are as the last process has seen them");
    let append = |bytes| log.append(&[put(b"key", &vec![7; bytes])]).expect("room");
    append(1000);
    let found = match other {
        Other::Unnamed => {
            disk.fail(Some((&["rename", "remove"], Errno::IO)));
            log.sync().expect("the record has a segment");
            assert!(log.failure().is_some(), "the next segment has no name");
            "spare-00000002"
        }
        Other::Begun | Other::Full => {
            disk.fail(None);
            while append(1000) < Lsn(8192) {}
            if other == Other::Full {
                // The record has 36 bytes besides the value.
                let left = 2 * 8192 - log.appended().0;
                assert_eq!(append(left as usize - 36), Lsn(2 * 8192));
            }
            // The sync makes no segment ahead, which would take the name.
            disk.fail(Some((&["create"], Errno::NOSPC)));
            log.sync().expect("a sync");
            "log-00000001"
        }
    };
    let records = records(&log, begin);
    let durable = log.durable();
    assert_eq!(durable, log.appended());
    drop(log);
    assert_eq!(number(found), second, "the file that was segment 2");
    std::fs::hard_link(file(found), file("log-00000002")).expect("a second name");
    std::fs::rename(file("third"), file("log-00000003")).expect("a rename");
    (durable, records)
}

/// After a failed sync of the directory, a crash may bring back a segment's name behind the end of the log, though its
/// file is another segment. Nothing in the file is missing, so the log opens, and goes on without the name.
#[test]
fn a_name_that_comes_back_is_ignored() {
    for other in [Other::Unnamed, Other::Begun, Other::Full] {
        for from_the_end in [false, true] {
            let case = format!("{other:?}, checked from the end: {from_the_end}");
            let directory = tempfile::tempdir().expect("a directory");
            let (durable, mut expected) = bring_a_name_back(directory.path(), other);
            let begin = Lsn(4096);
            let needs = Needs {
                keep: begin,
                check: if from_the_end { durable } else { begin },
                reach: durable,
                durable: begin,
            };
            let disk = disk(directory.path());
            let log = Log::open(disk.clone(), ID, needs, two_spares());
            let log = log.unwrap_or_else(|error| panic!("{case}: {error}"));
            assert_eq!(records(&log, begin), expected, "{case}");
            for n in 0..12u32 {
                let key = n.to_le_bytes();
                let change = put(&key, &[8; 1000]);
                let end = log.append(&[change]).expect("room");
                expected.push((end, format!("{:?}", [change])));
            }
            log.sync().expect("a sync");
            drop(log);
            let log = Log::open(disk, ID, from(begin), two_spares()).expect("the log again");
            assert_eq!(records(&log, begin), expected, "{case}");
        }
    }
}

/// The name that came back is removed before any other file behind the end is: after a crash in between, the file's own
/// name still shows that it is harmless.
#[test]
fn a_misnamed_file_goes_first() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    bring_a_name_back(path, Other::Unnamed);
    let mut expected = names(path);
    expected.retain(|name| name != "log-00000002");
    let disk = Failing::new(path);
    disk.fail(Some((&["fsync of the directory"], Errno::IO)));
    let opened = Log::open(disk, ID, from(Lsn(4096)), two_spares());
    assert!(matches!(opened, Err(Error::Disk(_))));
    assert_eq!(names(path), expected);
}

/// Damages a log's files.
type Damage<'d> = &'d dyn Fn(&Path);

/// A file with the header of another segment is damage if it, or a file behind it, has records that may be missing from
/// the log, though no record says that they were durable. So is any file behind the end whose header is damaged.
#[test]
fn records_in_a_misnamed_file_are_missed() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = Log::create(disk(directory.path()), ID, small()).expect("a log");
    let begin = log.begin();
    let mut end = begin;
    for n in 0..20u32 {
        end = log.append(&[put(&n.to_le_bytes(), &[7; 1000])]).expect("room");
    }
    log.sync().expect("a sync");
    drop(log);
    let last = (end.0 - 1) / 8192;
    assert!(last > 2, "{end}");
    let name = |number: u64| format!("log-{number:08x}");

    let damage: [(u64, Damage<'_>); 4] = [
        (last + 1, &|path: &Path| {
            std::fs::rename(path.join(name(last)), path.join(name(last + 1))).expect("a rename");
        }),
        (last, &|path: &Path| {
            let mut bytes = std::fs::read(path.join(name(last))).expect("a segment");
            let other = std::fs::read(path.join(name(0))).expect("a segment");
            bytes[..64].copy_from_slice(&other[..64]);
            std::fs::write(path.join(name(last)), bytes).expect("written");
        }),
        (2, &|path: &Path| {
            std::fs::copy(path.join(name(1)), path.join(name(2))).expect("a copy");
        }),
        (last + 1, &|path: &Path| {
            let mut bytes = std::fs::read(path.join(name(last + 1))).expect("a segment that was made ahead");
            bytes[32] ^= 1;
            std::fs::write(path.join(name(last + 1)), bytes).expect("written");
        }),
    ];
    for (which, (number, damage)) in damage.into_iter().enumerate() {
        let copy = tempfile::tempdir().expect("a directory");
        let path = copy.path();
        for name in names(directory.path()) {
            std::fs::copy(directory.path().join(&name), path.join(&name)).expect("a copy");
        }
        damage(path);
        let before = names(path);
        let opened = Log::open(disk(path), ID, from(begin), small());
        let Err(Error::Damaged { file, .. }) = &opened else {
            panic!("damage {which}: {opened:?}");
        };
        assert_eq!(*file, name(number), "damage {which}");
        assert_eq!(names(path), before, "damage {which}");
    }
}
