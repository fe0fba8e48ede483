//! A connection: sends requests as bytes, and returns answers as values.

use super::PATIENCE;
use super::reply::Reply;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Memcached,
    Redis,
}

/// A connection to the server.
pub(super) struct Connection {
    protocol: Protocol,
    read: BufReader<Box<dyn Read + Send>>,
    write: Box<dyn Write + Send>,
}

impl Connection {
    pub fn tcp(protocol: Protocol, address: &str) -> io::Result<Connection> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Connection {
            protocol,
            read: BufReader::new(Box::new(stream.try_clone()?)),
            write: Box::new(stream),
        })
    }

    pub fn unix(protocol: Protocol, path: &Path) -> io::Result<Connection> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Connection {
            protocol,
            read: BufReader::new(Box::new(stream.try_clone()?)),
            write: Box::new(stream),
        })
    }

    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write.write_all(bytes)
    }

    /// Reads the next answer.
    pub fn receive(&mut self) -> io::Result<Reply> {
        match self.protocol {
            Protocol::Memcached => self.memcached(),
            Protocol::Redis => self.redis(),
        }
    }

    fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        self.read.read_until(b'\n', &mut line)?;
        match line.strip_suffix(b"\r\n") {
            Some(text) => Ok(text.to_vec()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Reads `len` bytes, and the end of the line.
    fn data(&mut self, len: usize) -> io::Result<Vec<u8>> {
        let mut data = vec![0; len + 2];
        self.read.read_exact(&mut data)?;
        match data.split_off(len) == b"\r\n" {
            true => Ok(data),
            false => Err(invalid_answer(&data)),
        }
    }

    fn memcached(&mut self) -> io::Result<Reply> {
        let mut values = Vec::new();
        loop {
            let line = self.line()?;
            let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
            match *words {
                [b"END"] => return Ok(Reply::Array(values)),
                [b"VALUE", _, _, len, ..] => {
                    let data = self.data(number(len, &line)?)?;
                    values.push(Reply::Value(line, data.into()));
                }
                // An error after values is invalid.
                _ if !values.is_empty() => return Err(invalid_answer(&line)),
                [b"VA", len, ..] => {
                    let data = self.data(number(len, &line)?)?;
                    return Ok(Reply::Value(line, data.into()));
                }
                _ => return Ok(Reply::Line(line)),
            }
        }
    }

    fn several(&mut self, count: usize) -> io::Result<Vec<Reply>> {
        (0..count).map(|_| self.redis()).collect()
    }

    fn redis(&mut self) -> io::Result<Reply> {
        let line = self.line()?;
        let Some((&kind, rest)) = line.split_first() else {
            return Err(invalid_answer(&line));
        };
        Ok(match (kind, rest) {
            (b'+', text) => Reply::Line(text.to_vec()),
            (b'-', text) => Reply::Error(text.to_vec()),
            (b':', text) => Reply::Int(number(text, &line)?),
            (b'$' | b'*', b"-1") | (b'_', _) => Reply::Null,
            (b'$' | b'=', len) => Reply::Bulk(self.data(number(len, &line)?)?.into()),
            (b'*', count) => Reply::Array(self.several(number(count, &line)?)?),
            (b'%', count) => Reply::Array(self.several(2 * number::<usize>(count, &line)?)?),
            _ => return Err(invalid_answer(&line)),
        })
    }
}

fn number<N: std::str::FromStr>(text: &[u8], line: &[u8]) -> io::Result<N> {
    let text = std::str::from_utf8(text).ok();
    text.and_then(|text| text.parse().ok())
        .ok_or_else(|| invalid_answer(line))
}

fn invalid_answer(bytes: &[u8]) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!(
            "the server sends an invalid answer: {}",
            super::reply::shown(bytes)
        ),
    )
}
