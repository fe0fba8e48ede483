//! Users and their passwords, from a file of `user:password` lines as memcached's `-Y` reads it.

use crate::Error;
use crate::net::clients::DEFAULT;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// The users. Without a file, clients need not log in, and a login succeeds only as the user `default`. `Debug` shows
/// only the file's path.
#[derive(Default)]
pub struct Passwords {
    path: Option<PathBuf>,
    users: RwLock<Users>,
}

impl fmt::Debug for Passwords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Passwords")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// Names and passwords.
type Users = Vec<(Vec<u8>, Vec<u8>)>;

impl Passwords {
    /// Reads a file of passwords. Empty lines and lines that begin with `#` are ignored.
    pub fn read(path: &Path) -> Result<Passwords, Error> {
        Ok(Passwords {
            users: RwLock::new(users(path)?),
            path: Some(path.to_owned()),
        })
    }

    /// Reads the file again, if there is one, for logins from now on. If the file is unreadable or malformed, the users
    /// stay as they are.
    pub fn read_again(&self) -> Result<(), Error> {
        if let Some(path) = &self.path {
            let users = users(path)?;
            *self.users.write().unwrap_or_else(PoisonError::into_inner) = users;
        }
        Ok(())
    }

    fn users(&self) -> RwLockReadGuard<'_, Users> {
        // Poisoning is harmless: the only write is one assignment.
        self.users.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether clients need not log in.
    pub fn is_disabled(&self) -> bool {
        self.path.is_none()
    }

    /// Returns whether there is a user of this name. `default` always exists.
    pub fn has(&self, user: &[u8]) -> bool {
        user == DEFAULT || self.users().iter().any(|(name, _)| name == user)
    }

    /// Returns whether this is a user's password. Without a file, the user `default` has any password.
    ///
    /// With a file, the time depends on the lengths of `user` and `password` and on the number of users, but not on the
    /// contents or lengths of the stored names and passwords.
    pub fn authenticate(&self, user: &[u8], password: &[u8]) -> bool {
        if self.is_disabled() {
            return user == DEFAULT;
        }
        let mut found = false;
        for (name, word) in self.users().iter() {
            found |= same(name, user) & same(word, password);
        }
        found
    }
}

fn users(path: &Path) -> Result<Users, Error> {
    let wrong = |why: String| Error::Passwords {
        path: path.to_owned(),
        why,
    };
    let text = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let mut users = Vec::new();
    for (number, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() || line[0] == b'#' {
            continue;
        }
        let colon = line.iter().position(|&byte| byte == b':');
        let colon = colon.filter(|&colon| colon > 0 && colon + 1 < line.len());
        let colon = colon.ok_or_else(|| wrong(format!("line {}: not 'user:password'", number + 1)))?;
        users.push((line[..colon].to_vec(), line[colon + 1..].to_vec()));
    }
    match users.is_empty() {
        true => Err(wrong("no users".to_owned())),
        false => Ok(users),
    }
}

/// Returns whether the guess is the stored text. Compares one stored byte with each byte of the guess, without branches
/// on their values, so that the time depends only on the length of the guess.
fn same(stored: &[u8], guess: &[u8]) -> bool {
    let last = stored.len().saturating_sub(1);
    let mut differences = stored.len() ^ guess.len();
    for (i, byte) in guess.iter().enumerate() {
        let expected = stored.get(i.min(last)).copied().unwrap_or(0);
        differences = std::hint::black_box(differences | usize::from(expected ^ byte));
    }
    differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only equal texts are the same, whatever their lengths.
    #[test]
    fn equal_texts_are_the_same() {
        let texts = [
            &b""[..],
            b"\0",
            b"a",
            b"b",
            b"aa",
            b"ab",
            b"aaa",
            b"secret",
            b"secrets",
            b"Secret",
        ];
        for (i, stored) in texts.into_iter().enumerate() {
            for (j, guess) in texts.into_iter().enumerate() {
                assert_eq!(same(stored, guess), i == j, "{stored:?}, {guess:?}");
            }
        }
    }

    /// The `Debug` output, which may enter a log, names no password and no user.
    #[test]
    fn passwords_are_not_shown() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("users");
        std::fs::write(&path, "alice:secret\n").unwrap();
        let passwords = Passwords::read(&path).unwrap();
        assert!(passwords.authenticate(b"alice", b"secret"));
        let shown = format!("{passwords:?}");
        assert!(shown.contains(path.to_str().unwrap()), "{shown}");
        for secret in ["alice", "secret", &format!("{:?}", b"secret")] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
}
