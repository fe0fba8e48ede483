//! The peers that sync each commit.

use super::kept::{FJALL, LMDB, REDB, Syncing};

/// All peers that sync each commit. sled is not one: its flush waits neither for the disk's cache nor for the file's
/// size.
pub const SYNCING: &[Syncing] = &[
    REDB,
    FJALL,
    LMDB,
    super::sqlite::SYNCING,
    #[cfg(feature = "rocksdb")]
    super::rocksdb::SYNCING,
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Every peer finds committed pairs after it is reopened, whether committed alone or together.
    #[test]
    fn peers_keep_their_commits() {
        for peer in SYNCING {
            let directory = tempfile::tempdir().unwrap();
            let open = || (peer.open)(directory.path()).unwrap();
            let database = open();
            database.commit(&[(b"one", b"1")]).unwrap();
            database.commit(&[(b"two", b"2"), (b"one", b"11")]).unwrap();
            drop(database);
            let database = open();
            let get = |key: &[u8]| database.get(key).unwrap();
            assert_eq!(get(b"one").as_deref(), Some(&b"11"[..]), "{}", peer.name);
            assert_eq!(get(b"two").as_deref(), Some(&b"2"[..]), "{}", peer.name);
            assert_eq!(get(b"three"), None, "{}", peer.name);
        }
    }
}
