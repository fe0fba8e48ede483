//! Appends replies to an output buffer, in RESP2 or RESP3.

use crate::items::number;

/// Appends replies to a connection's output, in the protocol version that the client has chosen.
pub struct Reply<'o> {
    pub out: &'o mut Vec<u8>,
    /// Whether the client speaks RESP3.
    pub resp3: bool,
}

impl Reply<'_> {
    /// Appends `+OK`.
    pub fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    /// Appends a status, which has no line ends.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// Appends an error: its code, a blank, and what is wrong.
    pub fn error(&mut self, text: impl AsRef<[u8]>) {
        let without_ends = |&byte: &u8| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte };
        let text: Vec<u8> = text.as_ref().iter().map(without_ends).collect();
        self.line(b'-', &text);
    }

    /// Appends a number.
    pub fn int(&mut self, number: i64) {
        self.head(b':', number);
    }

    /// Appends bytes.
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.head(b'$', bytes.len() as i64);
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Appends bytes, or null.
    pub fn bulk_or_null(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.null(),
        }
    }

    /// Appends text for people to read.
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

    /// Appends null in the place of bytes.
    pub fn null(&mut self) {
        let null: &[u8] = if self.resp3 { b"_\r\n" } else { b"$-1\r\n" };
        self.out.extend_from_slice(null);
    }

    /// Appends null in the place of an array.
    pub fn null_array(&mut self) {
        let null: &[u8] = if self.resp3 { b"_\r\n" } else { b"*-1\r\n" };
        self.out.extend_from_slice(null);
    }

    /// Appends the head of an array, whose elements follow.
    pub fn array(&mut self, length: usize) {
        self.head(b'*', length as i64);
    }

    /// Appends the head of a map of this many keys; each is followed by its value.
    pub fn map(&mut self, length: usize) {
        if self.resp3 {
            self.head(b'%', length as i64);
        } else {
            self.array(length * 2);
        }
    }

    /// Appends the head of a set, whose elements follow.
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
