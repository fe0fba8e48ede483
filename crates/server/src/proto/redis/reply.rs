//! Replies, in RESP2 or RESP3.

use crate::items::number;

/// Where a connection's replies go, in the protocol it has chosen.
pub struct Reply<'o> {
    pub out: &'o mut Vec<u8>,
    /// Whether the client speaks RESP3.
    pub resp3: bool,
}

impl Reply<'_> {
    /// `+OK`.
    pub fn ok(&mut self) {
        self.simple("OK");
    }

    /// A status: a line without line ends.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// An error: its code, a blank, and what is wrong.
    pub fn error(&mut self, text: impl AsRef<[u8]>) {
        let without_ends = |&byte: &u8| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte };
        let text: Vec<u8> = text.as_ref().iter().map(without_ends).collect();
        self.line(b'-', &text);
    }

    /// A number.
    pub fn int(&mut self, number: i64) {
        self.head(b':', number);
    }

    /// Bytes.
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.head(b'$', bytes.len() as i64);
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Bytes, or nothing.
    pub fn bulk_or_null(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.null(),
        }
    }

    /// Text to be read by people.
    pub fn verbatim(&mut self, text: &str) {
        if self.resp3 {
            self.head(b'=', text.len() as i64 + 4);
            self.out.extend_from_slice(b"txt:");
            self.out.extend_from_slice(text.as_bytes());
            self.out.extend_from_slice(b"\r\n");
        } else {
            self.bulk(text.as_bytes());
        }
    }

    /// Nothing, in the place of bytes.
    pub fn null(&mut self) {
        let null: &[u8] = if self.resp3 { b"_\r\n" } else { b"$-1\r\n" };
        self.out.extend_from_slice(null);
    }

    /// Nothing, in the place of an array.
    pub fn null_array(&mut self) {
        let null: &[u8] = if self.resp3 { b"_\r\n" } else { b"*-1\r\n" };
        self.out.extend_from_slice(null);
    }

    /// The head of an array, whose elements follow.
    pub fn array(&mut self, length: usize) {
        self.head(b'*', length as i64);
    }

    /// The head of a map of this many keys, each followed by its value.
    pub fn map(&mut self, length: usize) {
        if self.resp3 {
            self.head(b'%', length as i64);
        } else {
            self.array(length * 2);
        }
    }

    /// The head of a set, whose elements follow.
    pub fn set(&mut self, length: usize) {
        self.head(if self.resp3 { b'~' } else { b'*' }, length as i64);
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.out.push(kind);
        self.out.extend_from_slice(text);
        self.out.extend_from_slice(b"\r\n");
    }

    fn head(&mut self, kind: u8, number: i64) {
        self.out.push(kind);
        number::write_signed(self.out, number);
        self.out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::redis::context::Wrong;

    /// An error has the client's bytes as they came, up to a zero byte, without line ends.
    #[test]
    fn errors_show_the_clients_bytes() {
        let mut out = Vec::new();
        let Wrong(text) = Wrong::with("ERR '", b"a\xff\r\n\xc3\0b", "'");
        Reply {
            out: &mut out,
            resp3: false,
        }
        .error(&text);
        assert_eq!(out, b"-ERR 'a\xff  \xc3'\r\n");
    }
}
