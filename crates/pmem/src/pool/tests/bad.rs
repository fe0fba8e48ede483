//! Files that are not pools, or no longer: each is refused with an error that says what is wrong, and left unchanged.

use super::files::Place;
use super::*;
use crate::pool::checked::seal;
use crate::pool::version::VERSION;
use std::os::unix::fs::PermissionsExt;

/// Opens `bytes` as a pool, which must be refused and left unchanged; returns the error.
fn refused(place: &Place, bytes: &[u8]) -> String {
    std::fs::write(&place.path, bytes).expect("a file");
    let text = place.refusal();
    assert_eq!(
        std::fs::read(&place.path).expect("a file"),
        bytes,
        "a refused file is left as it was"
    );
    text
}

fn with_word(bytes: &[u8], at: usize, value: u64) -> Vec<u8> {
    let mut bytes = bytes.to_owned();
    bytes[at..at + 8].copy_from_slice(&seal(value).to_le_bytes());
    bytes
}

#[test]
fn foreign_files_are_told() {
    let place = Place::new();
    let elf = [b"\x7fELF".as_slice(), &[2; 10_000]].concat();
    assert_eq!(
        refused(&place, &elf),
        "not a Wollemi pool (first bytes 7f 45 4c 46)"
    );
    assert_eq!(
        refused(&place, &[0; 8192]),
        "not a Wollemi pool (first bytes 00 00 00 00)"
    );
    assert_eq!(refused(&place, b"x\n"), "not a Wollemi pool (first bytes 78 0a)");
    assert_eq!(refused(&place, b""), "not a Wollemi pool (the file is empty)");
}

/// A pool cut off anywhere is refused.
#[test]
fn truncated_pools_are_told() {
    let (place, bytes) = Place::with_pool();
    for len in [1, 7, 8, 64, 4095, 4096, 4097, bytes.len() - 1] {
        let text = refused(&place, &bytes[..len]);
        assert!(
            text.starts_with(&format!("truncated: the file has {len} bytes of at least ")),
            "{text}"
        );
    }
    let grown = with_word(&bytes, 128, 2 * bytes.len() as u64);
    let needed = 2 * bytes.len();
    assert_eq!(
        refused(&place, &grown),
        format!(
            "truncated: the file has {} bytes of at least {needed}; restore it from a copy",
            bytes.len()
        )
    );
}

#[test]
fn newer_pools_are_told() {
    let (place, bytes) = Place::with_pool();
    for version in [VERSION + 1, 1000] {
        // A newer format may use all bytes behind the version otherwise.
        let mut newer = with_word(&bytes, 8, version);
        newer[16..HEADER].fill(0x5a);
        assert_eq!(
            refused(&place, &newer),
            format!(
                "written in format {version}, and this program reads formats up to 1: use a newer Wollemi"
            )
        );
    }
    assert_eq!(
        refused(&place, &with_word(&bytes, 8, 0)),
        "damaged header (format version); restore the file from a copy"
    );
}

/// Any single flipped bit of the header is detected.
#[test]
fn flipped_bits_are_told() {
    let (_, bytes) = Place::with_pool();
    assert!(header::read(&bytes[..HEADER], bytes.len() as u64).is_ok());
    let mut damaged = bytes[..HEADER].to_vec();
    for at in 0..HEADER {
        for bit in 0..8 {
            damaged[at] ^= 1 << bit;
            let error = header::read(&damaged, bytes.len() as u64).expect_err("damaged");
            match error {
                ErrorKind::Foreign { .. } => assert!(at < 8),
                ErrorKind::Damaged { .. } => assert!(at >= 8),
                other => panic!("bit {bit} of byte {at}: {other}"),
            }
            damaged[at] ^= 1 << bit;
        }
    }
}

/// Fields with a valid checksum and an invalid value are detected too.
#[test]
fn impossible_fields_are_told() {
    let (place, bytes) = Place::with_pool();
    for (at, value, what) in [
        (16, 12345, "page size"),
        (16, 1 << 30, "page size"),
        (64, 0, "state"),
        (40, 1 << 40, "uuid"),
        (88, 1 << 40, "boot id"),
        (128, 0, "end of the allocated pages"),
        (128, 12345, "end of the allocated pages"),
    ] {
        let text = refused(&place, &with_word(&bytes, at, value));
        assert_eq!(
            text,
            format!("damaged header ({what}); restore the file from a copy")
        );
    }
}

/// After the last generation an opening is refused; the first generation is not used again.
#[test]
fn generations_do_not_wrap() {
    let (place, bytes) = Place::with_pool();
    let last = with_word(&bytes, 64, u64::from(u32::MAX) | 1 << 32);
    assert_eq!(
        refused(&place, &last),
        "the open counter is exhausted: restore a backup into a new pool"
    );
}

#[test]
fn other_things_are_told() {
    let place = Place::new();
    assert_eq!(place.refusal(), "no such file");
    std::fs::create_dir(&place.path).expect("a directory");
    assert_eq!(place.refusal(), "not a regular file");
    std::fs::remove_dir(&place.path).expect("removed");
    std::os::unix::fs::symlink("/dev/null", &place.path).expect("a link");
    assert_eq!(place.refusal(), "not a regular file");
}

/// A FIFO is an error of its own, and the opening does not wait for its other end.
#[cfg(target_os = "linux")]
#[test]
fn a_fifo_is_told() {
    let place = Place::new();
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::from(0o600));
    rustix::fs::mknodat(rustix::fs::CWD, &place.path, kind, mode, 0).expect("a FIFO");
    assert_eq!(place.refusal(), "not a regular file");
    let to_read = PoolOptions {
        read_only: true,
        ..small()
    };
    let opened = Pool::open(&place.path, &to_read, Hardware::detect()).map(drop);
    let refused = opened.expect_err("a FIFO");
    assert!(matches!(refused.kind, ErrorKind::NotAFile), "{refused}");
}

/// A second opener gets an error that names the process which has the pool, even if that is itself.
#[test]
fn second_opener_is_told() {
    let (place, _) = Place::with_pool();
    let pool = place.open().expect("the pool");
    let text = place.refusal();
    let holder = format!("opened by process {}", std::process::id());
    // Some systems do not report which process holds a lock.
    assert!(text == holder || text == "opened by another process", "{text}");
    drop(pool);
    assert!(place.open().is_ok());
}

/// A pool that cannot be written is refused.
#[test]
fn read_only_files_are_told() {
    let (place, _) = Place::with_pool();
    let allow = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("permissions");
    };
    allow(&place.path, 0o444);
    allow(place.path.parent().expect("a directory"), 0o755);
    if let Some(text) = unprivileged(|| place.refusal()) {
        assert_eq!(
            text,
            "permission denied: a pool must be readable, and writable unless it is opened read-only"
        );
    }
}
