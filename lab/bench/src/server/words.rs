//! Requests and expected answers of each protocol.
//!
//! Keys are `key:` and twelve digits. A key's value derives from its number, so every answer is known beforehand.

use crate::random::mix;
use serde::Serialize;

/// The protocol of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// memcached's classic text protocol.
    Memcached,
    /// RESP2.
    Redis,
}

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Reads the value of a present key.
    Get,
    /// Stores the value again.
    Set,
}

impl Protocol {
    /// Appends a request and its expected answer. Values have `length` bytes.
    pub fn ask(
        self,
        operation: Operation,
        number: u64,
        length: usize,
        request: &mut Vec<u8>,
        answer: &mut Vec<u8>,
    ) {
        let key = &key(number);
        match (self, operation) {
            (Protocol::Memcached, Operation::Get) => {
                parts(request, &[b"get ", key, b"\r\n"]);
                parts(answer, &[b"VALUE ", key, b" 0 "]);
                decimal(length, answer);
                answer.extend_from_slice(b"\r\n");
                value(number, length, answer);
                answer.extend_from_slice(b"\r\nEND\r\n");
            }
            (Protocol::Memcached, Operation::Set) => {
                parts(request, &[b"set ", key, b" 0 0 "]);
                decimal(length, request);
                request.extend_from_slice(b"\r\n");
                value(number, length, request);
                request.extend_from_slice(b"\r\n");
                answer.extend_from_slice(b"STORED\r\n");
            }
            (Protocol::Redis, Operation::Get) => {
                parts(request, &[b"*2\r\n$3\r\nGET\r\n$16\r\n", key, b"\r\n"]);
                bulk(number, length, answer);
            }
            (Protocol::Redis, Operation::Set) => {
                parts(request, &[b"*3\r\n$3\r\nSET\r\n$16\r\n", key, b"\r\n"]);
                bulk(number, length, request);
                answer.extend_from_slice(b"+OK\r\n");
            }
        }
    }
}

fn key(number: u64) -> [u8; 16] {
    let mut key = *b"key:000000000000";
    let mut left = number;
    for digit in key[4..].iter_mut().rev() {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
    }
    key
}

/// Appends a value: sixteen hexadecimal digits, repeated.
fn value(number: u64, length: usize, out: &mut Vec<u8>) {
    let mut digits = [0; 16];
    for (i, digit) in digits.iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(mix(number) >> (4 * i)) as usize % 16];
    }
    let end = out.len() + length;
    while out.len() < end {
        let more = digits.len().min(end - out.len());
        out.extend_from_slice(&digits[..more]);
    }
}

fn bulk(number: u64, length: usize, out: &mut Vec<u8>) {
    out.push(b'$');
    decimal(length, out);
    out.extend_from_slice(b"\r\n");
    value(number, length, out);
    out.extend_from_slice(b"\r\n");
}

fn decimal(number: usize, out: &mut Vec<u8>) {
    let begin = out.len();
    let mut left = number;
    loop {
        out.push(b'0' + (left % 10) as u8);
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out[begin..].reverse();
}

fn parts(out: &mut Vec<u8>, parts: &[&[u8]]) {
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests and answers conform to the protocols.
    #[test]
    fn words_are_the_protocols() {
        let mut value_of_7 = Vec::new();
        value(7, 20, &mut value_of_7);
        let value = String::from_utf8(value_of_7).expect("text");
        let key = "key:000000000007";
        for (protocol, operation, request, answer) in [
            (
                Protocol::Memcached,
                Operation::Get,
                format!("get {key}\r\n"),
                format!("VALUE {key} 0 20\r\n{value}\r\nEND\r\n"),
            ),
            (
                Protocol::Memcached,
                Operation::Set,
                format!("set {key} 0 0 20\r\n{value}\r\n"),
                "STORED\r\n".to_owned(),
            ),
            (
                Protocol::Redis,
                Operation::Get,
                format!("*2\r\n$3\r\nGET\r\n$16\r\n{key}\r\n"),
                format!("$20\r\n{value}\r\n"),
            ),
            (
                Protocol::Redis,
                Operation::Set,
                format!("*3\r\n$3\r\nSET\r\n$16\r\n{key}\r\n$20\r\n{value}\r\n"),
                "+OK\r\n".to_owned(),
            ),
        ] {
            let (mut asked, mut answered) = (Vec::new(), Vec::new());
            protocol.ask(operation, 7, 20, &mut asked, &mut answered);
            assert_eq!(String::from_utf8_lossy(&asked), request);
            assert_eq!(String::from_utf8_lossy(&answered), answer);
        }
    }
}
