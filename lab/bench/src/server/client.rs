//! The client: one thread with several connections. Each connection sends a pipeline of requests, waits for all
//! answers, and sends the next pipeline.
//!
//! I1 Every byte of an answer is compared with the expected one.
//! I2 The time of a turn runs from sending its first byte to receiving its last answer.

use super::words::{Operation, Protocol};
use crate::Error;
use crate::latency::Latencies;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The maximum wait for an answer.
const TIMEOUT: Timespec = Timespec {
    tv_sec: 60,
    tv_nsec: 0,
};

/// The requests of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub operation: Operation,
    /// Requests in a turn.
    pub pipeline: usize,
    /// Bytes per value.
    pub length: usize,
}

/// The results of a measurement.
pub struct Outcome {
    /// Requests answered.
    pub ops: u64,
    pub elapsed: Duration,
    /// Latencies of turns.
    pub latencies: Latencies,
}

/// Connections to one server.
pub struct Client {
    server: &'static str,
    protocol: Protocol,
    connections: Vec<Connection>,
}

struct Connection {
    socket: TcpStream,
    request: Vec<u8>,
    sent: usize,
    answer: Vec<u8>,
    arrived: usize,
    since: Instant,
}

impl Client {
    /// Opens the connections to a server.
    pub fn connect(
        server: &'static str,
        protocol: Protocol,
        address: SocketAddr,
        connections: usize,
    ) -> Result<Client, Error> {
        let connect = |_| {
            let socket = TcpStream::connect(address)?;
            socket.set_nodelay(true)?;
            socket.set_nonblocking(true)?;
            Ok(Connection {
                socket,
                request: Vec::new(),
                sent: 0,
                answer: Vec::new(),
                arrived: 0,
                since: Instant::now(),
            })
        };
        let connected: std::io::Result<Vec<_>> = (0..connections).map(connect).collect();
        Ok(Client {
            server,
            protocol,
            connections: connected.map_err(|error| failed(server, error))?,
        })
    }

    /// Sends requests for the keys with these numbers, one turn after the other on each connection, until `more`
    /// returns false.
    pub fn ask(
        &mut self,
        plan: Plan,
        mut number: impl FnMut() -> u64,
        mut more: impl FnMut(Instant) -> bool,
    ) -> Result<Outcome, Error> {
        let (server, protocol) = (self.server, self.protocol);
        let mut latencies = Latencies::new();
        let (mut ops, mut scratch) = (0, vec![0; 64 << 10]);
        let begin = Instant::now();
        let mut now = begin;
        let mut busy: Vec<&mut Connection> = Vec::new();
        for connection in &mut self.connections {
            if more(now) {
                connection.begin(protocol, plan, &mut number);
                connection.send().map_err(|error| failed(server, error))?;
                busy.push(connection);
            }
        }
        while !busy.is_empty() {
            let ready = wait(&busy).map_err(|error| failed(server, error))?;
            let mut ready = ready.into_iter();
            let mut wrong = None;
            busy.retain_mut(|connection| {
                if wrong.is_some() || ready.next() != Some(true) {
                    return true;
                }
                match connection.advance(server, &mut scratch) {
                    Ok(false) => return true,
                    Ok(true) => {}
                    Err(error) => {
                        wrong = Some(error);
                        return true;
                    }
                }
                now = Instant::now();
                latencies.note(now - connection.since);
                ops += plan.pipeline as u64;
                let goes_on = more(now);
                if goes_on {
                    connection.begin(protocol, plan, &mut number);
                    wrong = connection.send().err().map(|error| failed(server, error));
                }
                goes_on
            });
            if let Some(wrong) = wrong {
                return Err(wrong);
            }
        }
        Ok(Outcome {
            ops,
            elapsed: now - begin,
            latencies,
        })
    }
}

/// Waits until some connections are ready, and returns for each whether it is.
fn wait(connections: &[&mut Connection]) -> std::io::Result<Vec<bool>> {
    let mut all: Vec<PollFd<'_>> = connections
        .iter()
        .map(|connection| {
            let unsent = connection.sent < connection.request.len();
            let flags = if unsent {
                PollFlags::IN | PollFlags::OUT
            } else {
                PollFlags::IN
            };
            PollFd::new(&connection.socket, flags)
        })
        .collect();
    loop {
        match poll(&mut all, Some(&TIMEOUT)) {
            Ok(0) => return Err(ErrorKind::TimedOut.into()),
            Ok(_) => return Ok(all.iter().map(|one| !one.revents().is_empty()).collect()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

impl Connection {
    /// Prepares the requests of a turn, and the expected answers.
    fn begin(&mut self, protocol: Protocol, plan: Plan, number: &mut impl FnMut() -> u64) {
        self.request.clear();
        self.answer.clear();
        for _ in 0..plan.pipeline {
            let number = number();
            protocol.ask(
                plan.operation,
                number,
                plan.length,
                &mut self.request,
                &mut self.answer,
            );
        }
        (self.sent, self.arrived, self.since) = (0, 0, Instant::now());
    }

    /// Sends as much as the socket accepts.
    fn send(&mut self) -> std::io::Result<()> {
        while self.sent < self.request.len() {
            match self.socket.write(&self.request[self.sent..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(more) => self.sent += more,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends and receives as much as possible. Returns whether all requests are answered.
    fn advance(&mut self, server: &'static str, scratch: &mut [u8]) -> Result<bool, Error> {
        self.send().map_err(|error| failed(server, error))?;
        while self.arrived < self.answer.len() {
            let arrived = match self.socket.read(scratch) {
                Ok(0) => return Err(failed(server, ErrorKind::UnexpectedEof.into())),
                Ok(arrived) => &scratch[..arrived],
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(failed(server, error)),
            };
            let expected = &self.answer[self.arrived..];
            if !expected.starts_with(arrived) {
                let shown = |bytes: &[u8]| bytes[..bytes.len().min(200)].escape_ascii().to_string();
                return Err(Error::Wrong(format!(
                    "{server} answers '{}', not '{}'",
                    shown(arrived),
                    shown(expected)
                )));
            }
            self.arrived += arrived.len();
        }
        Ok(true)
    }
}

fn failed(server: &'static str, error: std::io::Error) -> Error {
    Error::Peer {
        peer: server,
        what: error.to_string(),
    }
}
