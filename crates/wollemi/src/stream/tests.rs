//! A stream reads back as written, and everything else is an error.

use super::*;
use proptest::prelude::*;

type Entries = Vec<(Vec<u8>, Option<Vec<u8>>)>;

fn write(maps: &[(&str, Entries)]) -> Vec<u8> {
    let mut writer = Writer::new(0, Vec::new()).expect("memory");
    for (name, entries) in maps {
        writer.map(name, "roart").expect("memory");
        for (key, value) in entries {
            writer.entry(key, value.as_deref()).expect("memory");
        }
    }
    let (bytes, totals) = writer.finish().expect("memory");
    assert_eq!(totals.bytes, bytes.len() as u64);
    bytes
}

fn read(mut bytes: &[u8]) -> Result<Vec<(String, Entries)>, StreamError> {
    let mut reader = StreamReader::new(&mut bytes)?;
    let mut maps = Vec::<(String, Entries)>::new();
    while let Some(item) = reader.next()? {
        match item {
            Item::Map { name, index } => {
                assert_eq!(index, "roart");
                maps.push((name.to_owned(), Vec::new()));
            }
            Item::Entry { key, value } => {
                let (_, entries) = maps.last_mut().expect("behind a map");
                entries.push((key.to_vec(), value.map(<[u8]>::to_vec)));
            }
        }
    }
    assert!(reader.next()?.is_none(), "the end stays the end");
    Ok(maps)
}

fn some() -> Vec<(&'static str, Entries)> {
    let letters = (0..3000u32).map(|i| (format!("{i:08}").into_bytes(), Some(i.to_le_bytes().to_vec())));
    let removed = [
        (Vec::new(), None),
        (vec![0], Some(Vec::new())),
        (vec![0, 0], None),
    ];
    let large = [(
        vec![7],
        Some((0..300_000u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect()),
    )];
    vec![
        ("letters", letters.collect()),
        ("", removed.into()),
        ("nothing", Vec::new()),
        ("large", large.into()),
    ]
}

fn owned(maps: Vec<(&str, Entries)>) -> Vec<(String, Entries)> {
    maps.into_iter()
        .map(|(name, entries)| (name.to_owned(), entries))
        .collect()
}

#[test]
fn what_is_written_is_read() {
    assert_eq!(read(&write(&some())).expect("sound"), owned(some()));
}

/// Repetitive entries take less space than their bytes.
#[test]
fn blocks_are_compressed() {
    let letters = some().swap_remove(0);
    let raw: usize = letters.1.iter().map(|(key, _)| key.len() + 4).sum();
    assert!(write(&[letters]).len() < raw);
}

/// Nothing after the end record is read.
#[test]
fn what_follows_is_left() {
    let mut bytes = write(&some());
    let len = bytes.len();
    bytes.extend(b"more");
    let mut rest = &bytes[..];
    let mut reader = StreamReader::new(&mut rest).expect("sound");
    while reader.next().expect("sound").is_some() {}
    assert_eq!(reader.totals.bytes, len as u64);
    assert_eq!(rest, b"more");
}

#[test]
fn other_files_are_told() {
    assert!(matches!(read(b"PK\x03\x04 and so on"), Err(StreamError::Foreign)));
    assert!(matches!(read(b"WOLL"), Err(StreamError::Foreign)));
    assert!(matches!(
        read(b"WOLLEMIB\x09\0\0\0"),
        Err(StreamError::Version(9))
    ));
}

/// A stream that is truncated anywhere, or has any bit flipped, is refused.
#[test]
fn damage_is_noticed_everywhere() {
    let few = ("few", vec![(b"a".to_vec(), Some(vec![1; 40]))]);
    let bytes = write(&[some().swap_remove(1), few]);
    for at in 0..bytes.len() {
        assert!(read(&bytes[..at]).is_err(), "cut at {at}");
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            assert!(read(&damaged).is_err(), "bit {bit} of byte {at}");
        }
    }
}

/// Blocks that are swapped, duplicated or missing are detected.
#[test]
fn records_have_their_places() {
    let stream = |keys: &[u8]| {
        let entries = keys.iter().map(|&key| (vec![key], Some(vec![key; FULL])));
        write(&[("m", entries.collect())])
    };
    // All begin with the same bytes, so the lengths tell where the records are.
    let (none, one, both) = (stream(&[]), stream(&[1]), stream(&[1, 2]));
    let end = 17;
    let (start, first, second) = (none.len() - end, one.len() - end, both.len() - end);
    let (head, tail) = (&both[..start], &both[second..]);
    let (a, b) = (&both[start..first], &both[first..second]);
    for blocks in [vec![b, a], vec![a], vec![b], vec![a, a], vec![a, b, b]] {
        assert!(read(&[head, &blocks.concat(), tail].concat()).is_err());
    }
    assert!(read(&[head, a, b, tail].concat()).is_ok());
}

proptest! {
    /// Any entries read back.
    #[test]
    fn any_entries(entries in prop::collection::vec(
        (prop::collection::vec(any::<u8>(), 0..300), prop::option::of(prop::collection::vec(any::<u8>(), 0..5000))),
        0..100,
    )) {
        let bytes = write(&[("map", entries.clone())]);
        prop_assert_eq!(read(&bytes).expect("sound"), vec![("map".to_owned(), entries)]);
    }

    /// Bytes that are not a stream give an error.
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
        let start = [&MAGIC[..], &VERSION.to_le_bytes(), &bytes].concat();
        prop_assert!(read(&start).is_err());
    }
}

/// A block whose head states a length that no block has is refused before its bytes are read.
#[test]
fn a_block_that_is_too_long_is_not_read() {
    let mut writer = Writer::new(0, Vec::new()).expect("memory");
    writer.map("m", "roart").expect("memory");
    writer.entry(b"key", Some(b"value")).expect("memory");
    let (bytes, _) = writer.finish().expect("memory");
    // The block's record follows the 12 bytes of the start and the 17 of the map.
    assert_eq!(bytes[29], BLOCK);
    for length in [31, 35] {
        let mut long = bytes.clone();
        long[length..length + 4].fill(0xff);
        let mut reader = StreamReader::new(long.as_slice().chain(io::repeat(0))).expect("a stream");
        assert!(matches!(reader.next(), Ok(Some(Item::Map { .. }))));
        assert!(matches!(
            reader.next(),
            Err(StreamError::Damaged("a block that is too long"))
        ));
        assert!(reader.totals().bytes < 100);
    }
}
