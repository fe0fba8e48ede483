use super::AnomalyKind::*;
use super::{ABSENT, AnomalyKind, Committed, check};

mod removals;

type Done = Committed<u8>;

fn at(began: u64, ended: u64) -> Done {
    Committed::between(began, ended)
}

/// Keys 1 and 2, as 10 and 20.
fn setup() -> Done {
    at(0, 1).wrote(1, ABSENT, 10).wrote(2, ABSENT, 20)
}

/// The history of the setup and these operations shows exactly this anomaly, by operations at these positions.
#[track_caller]
fn shows(kind: AnomalyKind, positions: &[usize], operations: &[Done]) {
    let all = [&[setup()], operations].concat();
    let anomaly = check(&all).expect_err("an anomaly");
    assert_eq!(anomaly.kind, kind, "{anomaly}");
    let mut found = anomaly.operations.clone();
    found.sort_unstable();
    assert_eq!(found, positions, "{anomaly}");
    let text = anomaly.to_string();
    assert!(text.starts_with(&kind.to_string()), "{text}");
    for position in positions {
        assert!(text.contains(&format!("operation {position}: ")), "{text}");
    }
}

#[track_caller]
fn passes(operations: &[Done]) {
    let all = [&[setup()], operations].concat();
    assert_eq!(check(&all), Ok(()));
}

/// The example of write skew, with the second transaction after the first.
#[test]
fn transactions_in_turn_pass() {
    let one = at(2, 5).read(1, 10).read(2, 20).wrote(1, 10, 11);
    let two = at(6, 7).read(1, 11).read(2, 20).wrote(2, 20, 21);
    let early = at(3, 8).read(1, 10).read(2, 20);
    passes(&[early.clone(), one.clone(), two.clone()]);
    passes(&[two, one, early]);
}

/// Concurrent operations may take effect in any order that explains what they saw.
#[test]
fn concurrent_operations_may_take_either_order() {
    let writer = at(2, 9).wrote(1, 10, 11).wrote(2, 20, 21);
    for (one, two) in [(10, 20), (11, 21)] {
        let point = at(3, 4).read(1, one).read(2, two);
        let scan = at(3, 4).scanned(0..9, [(1, one), (2, two)]);
        passes(&[writer.clone(), point, scan]);
    }
}

/// An operation may read its own write, or the value before it, and may write a key twice.
#[test]
fn an_operation_does_not_depend_on_itself() {
    let done = at(2, 3).read(1, 10).read(1, 11).wrote(1, 10, 11).wrote(1, 11, 12);
    passes(&[done, at(4, 5).read(1, 12)]);
}

/// A read of a range says that the other keys in it were absent, and says nothing about keys outside.
#[test]
fn range_reads_end_at_their_bounds() {
    let add = at(2, 3).wrote(5, ABSENT, 50);
    passes(&[add.clone(), at(4, 5).scanned(..5, [(1, 10), (2, 20)])]);
    passes(&[add.clone(), at(4, 5).scanned(1..=5, [(1, 10), (2, 20), (5, 50)])]);
    shows(
        RealTime,
        &[1, 2],
        &[add, at(4, 5).scanned(1..=5, [(1, 10), (2, 20)])],
    );
}

#[test]
fn lost_updates_are_found() {
    let one = at(2, 5).read(1, 10).wrote(1, 10, 11);
    let two = at(3, 4).read(1, 10).wrote(1, 10, 12);
    shows(LostUpdate, &[1, 2], &[one, two]);
    let inserts = [at(2, 5).wrote(3, ABSENT, 30), at(3, 4).wrote(3, ABSENT, 31)];
    shows(LostUpdate, &[1, 2], &inserts);
}

/// A value that an operation has read, found in a range or replaced must have been written.
#[test]
fn dirty_reads_are_found() {
    shows(DirtyRead, &[1], &[at(2, 3).read(1, 99)]);
    shows(DirtyRead, &[1], &[at(2, 3).scanned(.., [(1, 99), (2, 20)])]);
    shows(DirtyRead, &[1], &[at(2, 3).wrote(1, 99, 11)]);
}

#[test]
fn intermediate_reads_are_found() {
    let writer = at(2, 5).wrote(1, 10, 11).wrote(1, 11, 12);
    shows(IntermediateRead, &[1, 2], &[writer, at(3, 4).read(1, 11)]);
}

#[test]
fn write_cycles_are_found() {
    let one = at(2, 5).wrote(1, 10, 11).wrote(2, 21, 22);
    let two = at(3, 4).wrote(1, 11, 12).wrote(2, 20, 21);
    shows(WriteCycle, &[1, 2], &[one.clone(), two.clone()]);
    // Information that flows in a circle elsewhere is not reported.
    let three = at(2, 5).read(1, 10).wrote(3, ABSENT, 30).read(4, 40);
    let four = at(3, 4).wrote(4, ABSENT, 40).read(3, 30);
    shows(WriteCycle, &[3, 4], &[three, four, one, two]);
}

#[test]
fn circular_information_is_found() {
    let one = at(2, 5).wrote(1, 10, 11).read(2, 21);
    let two = at(3, 4).wrote(2, 20, 21).read(1, 11);
    shows(CircularInformation, &[1, 2], &[one, two]);
}

/// One half of a write is visible and the other is not; or two reads of a key differ.
#[test]
fn read_skew_is_found() {
    let writer = at(2, 7).wrote(1, 10, 11).wrote(2, 20, 21);
    shows(
        ReadSkew,
        &[1, 2],
        &[writer.clone(), at(3, 4).read(1, 11).read(2, 20)],
    );
    shows(
        ReadSkew,
        &[1, 2],
        &[writer.clone(), at(3, 4).scanned(.., [(1, 10), (2, 21)])],
    );
    shows(ReadSkew, &[1, 2], &[writer, at(3, 4).read(1, 10).read(1, 11)]);
}

#[test]
fn write_skew_is_found() {
    let one = at(2, 5).read(1, 10).read(2, 20).wrote(1, 10, 11);
    let two = at(3, 4).read(1, 10).read(2, 20).wrote(2, 20, 21);
    shows(WriteSkew, &[1, 2], &[one, two]);
}

/// Two readers see two writes in different orders.
#[test]
fn long_forks_are_found() {
    let writes = [at(2, 9).wrote(1, 10, 11), at(3, 8).wrote(2, 20, 21)];
    let reads = [at(4, 7).read(1, 11).read(2, 20), at(5, 6).read(1, 10).read(2, 21)];
    shows(LongFork, &[1, 2, 3, 4], &[writes, reads].concat());
}

/// Each of two operations counts a range and adds a key to it.
#[test]
fn phantoms_are_found() {
    let found = [(1, 10), (2, 20)];
    let one = at(2, 5).scanned(1..9, found).wrote(3, ABSENT, 30);
    let two = at(3, 4).scanned(1..9, found).wrote(4, ABSENT, 40);
    shows(Phantom, &[1, 2], &[one.clone(), two]);
    let informed = at(3, 4).scanned(1..9, found).wrote(4, ABSENT, 40);
    let outside = at(2, 5).scanned(5..9, []).wrote(3, ABSENT, 30);
    passes(&[outside, informed]);
}

/// A value that was read had been replaced before the read began.
#[test]
fn stale_reads_are_found() {
    shows(
        RealTime,
        &[1, 2],
        &[at(2, 3).wrote(1, 10, 11), at(4, 5).read(1, 10)],
    );
    // At the same instant the operations are concurrent.
    passes(&[at(2, 3).wrote(1, 10, 11), at(3, 4).read(1, 10)]);
    passes(&[at(2, 2).wrote(1, 10, 11), at(2, 2).read(1, 10)]);
}

/// The check reports a short cycle, though a long one contains it, and the most basic of several anomalies.
#[test]
fn the_shortest_and_most_basic_cycle_is_told() {
    // A long chain of writes, whose last operation read key 2 before the first one wrote it.
    let mut operations = vec![at(2, 999).wrote(2, 20, 21).wrote(1, 10, 11)];
    operations.extend((11..60).map(|version| at(2, 999).wrote(1, version, version + 1)));
    operations.push(at(2, 999).read(1, 60).read(2, 20));
    operations.push(at(2, 999).read(1, 11).read(2, 20));
    let all = [&[setup()], &operations[..]].concat();
    let anomaly = check(&all).expect_err("read skew");
    assert_eq!(
        (anomaly.kind, anomaly.operations.len()),
        (ReadSkew, 2),
        "{anomaly}"
    );

    let one = at(2, 5).read(1, 10).wrote(2, 20, 21).wrote(3, 30, 31);
    let two = at(3, 4).read(2, 20).wrote(1, 10, 11).wrote(3, 31, 32);
    let three = at(2, 9).wrote(3, 32, 33).wrote(4, ABSENT, 40);
    let four = at(2, 9).wrote(3, ABSENT, 30).wrote(4, 40, 41);
    shows(WriteCycle, &[1, 2, 3, 4], &[one, two, three, four]);
}

/// Of two cycles through an operation, the one with fewer anti-dependencies is reported, though it is longer.
#[test]
fn read_skew_goes_before_write_skew() {
    let one = at(2, 9).read(1, 10).read(3, 30).wrote(2, 20, 21);
    let two = at(2, 9).read(2, 20).wrote(1, 10, 11);
    let three = at(2, 9).read(1, 11).wrote(3, ABSENT, 30);
    let alone = at(2, 9).read(1, 10).wrote(2, 20, 21);
    shows(WriteSkew, &[1, 2], &[alone, two.clone()]);
    shows(ReadSkew, &[1, 2, 3], &[one, two, three]);
}

/// A phantom is reported even where another cycle, by the clock, is as short.
#[test]
fn phantoms_go_before_stale_reads() {
    let one = at(2, 5).scanned(3..9, []).wrote(3, ABSENT, 30);
    let two = at(3, 4).scanned(3..9, []).wrote(4, ABSENT, 40);
    let stale = [at(10, 11).wrote(1, 10, 11), at(12, 13).read(1, 10)];
    shows(Phantom, &[3, 4], &[&stale[..], &[one, two]].concat());
}

/// Times need not be dense: instants between them cost nothing.
#[test]
fn clocks_may_count_nanoseconds() {
    let far = u64::MAX / 2;
    passes(&[
        at(far, far + 9).wrote(1, 10, 11),
        at(far + 7, u64::MAX).read(1, 10),
    ]);
    shows(
        RealTime,
        &[1, 2],
        &[
            at(far, far + 9).wrote(1, 10, 11),
            at(far + 10, u64::MAX).read(1, 10),
        ],
    );
}

#[test]
#[should_panic(expected = "1 was written as 11 twice")]
fn wrong_records_panic() {
    _ = check(&[setup(), at(2, 3).wrote(1, 10, 11), at(4, 5).wrote(1, 11, 11)]);
}
