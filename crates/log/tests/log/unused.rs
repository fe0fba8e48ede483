//! What an interrupted creation leaves, and files of other programs.

use super::*;
use wollemi_log::Remains;

/// The leftovers of an interrupted creation are distinguished from a log that has records, and both from files of
/// other programs.
#[test]
fn an_unused_log_is_recognised() {
    let directory = tempfile::tempdir().expect("a directory");
    let disk = disk(directory.path());
    let trace = || Log::trace(&*disk);
    assert_eq!(trace().expect("a directory"), Remains::Nothing);
    drop(Log::create(disk.clone(), ID, small()).expect("a log"));
    assert_eq!(trace().expect("a log"), Remains::Unused);
    let log = Log::open(disk.clone(), ID, from(Lsn(4096)), small()).expect("the log again");
    assert_eq!(trace().expect("a log"), Remains::Unused);
    let before = names(directory.path());
    let first = log.append(&[put(b"key", b"value")]).expect("room");
    log.append(&[put(b"key", b"value")]).expect("room");
    assert_eq!(trace().expect("a log"), Remains::Used("log-00000000".into()));
    // Earlier damage hides no later record.
    let path = directory.path().join("log-00000000");
    let mut bytes = std::fs::read(&path).expect("there");
    bytes[4096..first.0 as usize].fill(0x55);
    std::fs::write(&path, bytes).expect("written");
    assert_eq!(trace().expect("a log"), Remains::Used("log-00000000".into()));
    assert_eq!(names(directory.path()), before);
}

/// A crash may leave any part of a spare's header. Such a file belongs to an interrupted creation.
#[test]
fn a_spare_with_a_part_of_its_header_is_a_trace() {
    let directory = tempfile::tempdir().expect("a directory");
    let disk = disk(directory.path());
    drop(Log::create(disk.clone(), ID, small()).expect("a log"));
    let mut header = std::fs::read(directory.path().join("log-00000000")).expect("there");
    header.truncate(64);
    let middle = header.len() / 2;
    for written in (0..=header.len()).flat_map(|at| [0..at, at..middle.max(at)]) {
        let mut bytes = vec![0; 1 << 16];
        bytes[written.clone()].copy_from_slice(&header[written.clone()]);
        std::fs::write(directory.path().join("spare-00000001"), bytes).expect("written");
        let trace = Log::trace(&*disk);
        assert_eq!(
            trace.expect("a spare"),
            Remains::Unused,
            "bytes {written:?} of the header"
        );
    }
}

/// A file that has the name of a segment or of a spare, but is neither, is an error, so that it is not removed.
#[test]
fn files_of_others_are_no_trace() {
    for name in ["log-00000000", "log-00000001", "spare-00000001"] {
        let directory = tempfile::tempdir().expect("a directory");
        let disk = disk(directory.path());
        drop(Log::create(disk.clone(), ID, small()).expect("a log"));
        std::fs::write(directory.path().join(name), "another's").expect("written");
        assert!(matches!(Log::trace(&*disk), Err(Error::NotALog { .. })), "{name}");
    }
}
