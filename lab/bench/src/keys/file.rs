//! Keys from a file, one per line.

use super::Keys;
use crate::Error;
use std::collections::HashSet;
use std::path::Path;

impl Keys {
    /// Reads the first `count` lines of the file, or all, in order. A key may hold any bytes but line feeds.
    pub fn read(path: &Path, count: Option<usize>) -> Result<Keys, Error> {
        let wrong = |what: String| Error::KeyFile {
            path: path.to_owned(),
            what,
        };
        let text = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
        let text = text.strip_suffix(b"\n").unwrap_or(&text);
        let mut keys = Keys::with_capacity(0, text.len());
        let mut met = HashSet::new();
        for line in text
            .split(|&byte| byte == b'\n')
            .take(count.unwrap_or(usize::MAX))
        {
            let number = keys.len() as u64;
            if !met.insert(line) {
                return Err(wrong(format!("line {} repeats a key", number + 1)));
            }
            if line.len() > index::MAX_KEY {
                return Err(wrong(format!(
                    "line {} has {} bytes: the longest key is {} bytes",
                    number + 1,
                    line.len(),
                    index::MAX_KEY
                )));
            }
            keys.push(line, number);
        }
        match count {
            Some(count) if keys.len() < count => {
                Err(wrong(format!("{} keys, but {count} are needed", keys.len())))
            }
            _ => Ok(keys),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8], count: Option<usize>) -> Result<Vec<Vec<u8>>, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let keys = Keys::read(file.path(), count).map_err(|error| error.to_string())?;
        Ok(keys.part(0, 1).iter().map(|(key, _)| key.to_vec()).collect())
    }

    /// Lines are keys, with any bytes and with or without a final line feed.
    #[test]
    fn lines_are_keys() {
        let keys = [b"b".to_vec(), b"".to_vec(), b"\xff\r".to_vec()];
        assert_eq!(read(b"b\n\n\xff\r", None).unwrap(), keys);
        assert_eq!(read(b"b\n\n\xff\r\n", Some(3)).unwrap(), keys);
        assert_eq!(read(b"b\n\n\xff\r\n", Some(1)).unwrap(), keys[..1]);
    }

    /// Errors name the line and the reason.
    #[test]
    fn faults_are_named() {
        assert!(read(b"a\nb\na\n", None).unwrap_err().contains("line 3 repeats"));
        assert!(
            read(b"a\nb\n", Some(3))
                .unwrap_err()
                .contains("2 keys, but 3 are needed")
        );
        assert!(
            read(&[b'a'; 70_000], None)
                .unwrap_err()
                .contains("line 1 has 70000 bytes")
        );
        assert!(Keys::read(Path::new("/no/such/file"), None).is_err());
    }
}
