//! One connection: read all that the client has sent, answer all complete requests, write once; and again.
//!
//! I1 Bounded: the input never grows beyond the longest request, the output not beyond [`ENOUGH`] and one value. While
//!    answers wait to be taken nothing is read, so that a client which only sends fills its own socket.
//! I2 A request is carried out once it is whole, in order; its answer comes after its effect is durable.
//! I3 When the server stops, what has arrived whole is still answered.

use crate::counters::Counter;
use crate::parse::{Limits, Parser, Request, Step};
use crate::session::{BATCH, ENOUGH, Lookups, Next, Session, now};
use crate::shutdown::{Phase, Stop};
use std::future::Future;
use std::io;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// Input space that is kept, in bytes, and what a read may take when the client has much to say.
const KEPT: usize = 64 << 10;
const FIRST: usize = 4 << 10;

/// What has been read and not yet answered: `bytes[begin..end]`.
struct Input {
    bytes: Vec<u8>,
    begin: usize,
    end: usize,
    longest: usize,
}

impl Input {
    fn unread(&self) -> &[u8] {
        &self.bytes[self.begin..self.end]
    }

    /// Makes space behind the unread bytes: for `want` of them in all, and more where the last read took all there
    /// was.
    fn make_space(&mut self, want: usize) {
        let unread = self.end - self.begin;
        if self.begin > 0 {
            self.bytes.copy_within(self.begin..self.end, 0);
            (self.begin, self.end) = (0, unread);
        }
        let full = unread == self.bytes.len();
        let grown = if full { (self.bytes.len() * 2).min(KEPT) } else { 0 };
        // A client that announces a large value is given space as its bytes arrive, at most twice what it has sent.
        let wanted = want.min((unread * 2).max(KEPT));
        let len = self.bytes.len().max(grown).max(wanted).max(unread + 1).max(FIRST);
        let len = if unread == 0 && len > KEPT { KEPT } else { len };
        if len > self.bytes.len() {
            self.bytes
                .resize(len.min(self.longest.max(FIRST)).max(unread + 1), 0);
        } else if len < self.bytes.len() {
            self.bytes.truncate(len);
            self.bytes.shrink_to_fit();
        }
    }
}

/// Serves one connection until either side ends it.
pub async fn serve(socket: TcpStream, session: &Session, mut stop: Stop) -> io::Result<()> {
    let config = session.config();
    let limits = Limits {
        value: config.largest_value(),
        get_line: config.max_get_line,
    };
    let longest = limits.longest();
    let mut connection = Connection {
        socket,
        session,
        idle: config.idle_timeout,
        parser: Parser::new(limits),
        input: Input {
            bytes: Vec::new(),
            begin: 0,
            end: 0,
            longest,
        },
        out: Vec::new(),
    };
    let mut want = 1;
    loop {
        connection.input.make_space(want);
        let arrived = tokio::select! {
            biased;
            arrived = connection.read() => arrived?,
            () = stop.reached(Phase::Draining) => connection.last_read()?,
        };
        let Some(full) = arrived else {
            return Ok(());
        };
        match connection.answer_all().await? {
            Some(wanted) => want = wanted,
            None => return connection.socket.shutdown().await,
        }
        if stop.is(Phase::Draining) && !full {
            return connection.socket.shutdown().await;
        }
        if full {
            tokio::task::yield_now().await;
        }
    }
}

struct Connection<'s> {
    socket: TcpStream,
    session: &'s Session,
    idle: Option<Duration>,
    parser: Parser,
    input: Input,
    out: Vec<u8>,
}

impl Connection<'_> {
    /// Waits for bytes and takes all that have arrived, as far as there is space; whether the space is full now.
    /// `None`: the client has closed its side.
    async fn read(&mut self) -> io::Result<Option<bool>> {
        loop {
            within(self.idle, self.session, self.socket.readable()).await?;
            match self.take()? {
                Taken::Nothing => {}
                Taken::End => return Ok(None),
                Taken::Some { full } => return Ok(Some(full)),
            }
        }
    }

    /// Takes what has arrived, without waiting.
    fn last_read(&mut self) -> io::Result<Option<bool>> {
        Ok(match self.take()? {
            Taken::Nothing => Some(false),
            Taken::End => None,
            Taken::Some { full } => Some(full),
        })
    }

    fn take(&mut self) -> io::Result<Taken> {
        let begin = self.input.end;
        while self.input.end < self.input.bytes.len() {
            match self.socket.try_read(&mut self.input.bytes[self.input.end..]) {
                // What came before the end is still answered.
                Ok(0) if self.input.end > begin => break,
                Ok(0) => return Ok(Taken::End),
                Ok(read) => self.input.end += read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let read = self.input.end - begin;
        self.session.add(Counter::BytesRead, read as u64);
        Ok(match read {
            0 => Taken::Nothing,
            _ => Taken::Some {
                full: self.input.end == self.input.bytes.len(),
            },
        })
    }

    /// Answers all requests that are whole. How many bytes the next one needs, or `None` where the connection ends.
    async fn answer_all(&mut self) -> io::Result<Option<usize>> {
        let Connection {
            socket,
            session,
            idle,
            parser,
            input,
            out,
        } = self;
        let mut sink = Sink {
            socket,
            session,
            idle: *idle,
            out,
            now: now(),
        };
        let mut lookups = Lookups::default();
        let mut at = 0;
        let unread = input.unread();
        let ended = loop {
            let (used, request, noreply) = match parser.next(&unread[at..]) {
                Step::More { used, want } => {
                    at += used;
                    break Some(want);
                }
                Step::Request {
                    used,
                    request,
                    noreply,
                } => (used, request, noreply),
            };
            at += used;
            match request {
                Request::Get { mut keys, unique } => {
                    let mut next = keys.next();
                    while let Some(key) = next {
                        next = keys.next();
                        lookups.push(key, unique, next.is_none());
                        if lookups.waiting() >= BATCH {
                            session.look_up(&mut lookups, sink.now, sink.out);
                            sink.send_if_enough().await?;
                        }
                    }
                }
                Request::GetAndTouch {
                    lifetime,
                    keys,
                    unique,
                } => {
                    sink.finish(&mut lookups).await?;
                    let mut end: &[u8] = b"END\r\n";
                    for key in keys {
                        if session
                            .get_and_touch(key, lifetime, unique, sink.now, sink.out)
                            .is_err()
                        {
                            end = b"";
                            break;
                        }
                        sink.send_if_enough().await?;
                    }
                    sink.out.extend_from_slice(end);
                }
                request => {
                    sink.finish(&mut lookups).await?;
                    if session.answer(&request, noreply, sink.now, sink.out) == Next::Close {
                        break None;
                    }
                    sink.send_if_enough().await?;
                }
            }
        };
        sink.finish(&mut lookups).await?;
        sink.send().await?;
        input.begin += at;
        Ok(ended)
    }
}

enum Taken {
    Nothing,
    Some { full: bool },
    End,
}

/// Where answers go.
struct Sink<'c> {
    socket: &'c mut TcpStream,
    session: &'c Session,
    idle: Option<Duration>,
    out: &'c mut Vec<u8>,
    /// The second it is, looked up anew after each wait.
    now: u64,
}

impl Sink<'_> {
    /// Answers all lookups.
    async fn finish(&mut self, lookups: &mut Lookups<'_>) -> io::Result<()> {
        while lookups.waiting() > 0 {
            self.session.look_up(lookups, self.now, self.out);
            self.send_if_enough().await?;
        }
        Ok(())
    }

    async fn send_if_enough(&mut self) -> io::Result<()> {
        if self.out.len() >= ENOUGH {
            self.send().await?;
        }
        Ok(())
    }

    async fn send(&mut self) -> io::Result<()> {
        let mut rest = self.out.as_slice();
        while !rest.is_empty() {
            let sent = within(self.idle, self.session, self.socket.write(rest)).await?;
            self.session.add(Counter::BytesWritten, sent as u64);
            rest = &rest[sent..];
        }
        self.out.clear();
        if self.out.capacity() > KEPT {
            self.out.shrink_to(KEPT);
        }
        self.now = now();
        Ok(())
    }
}

/// Waits no longer than an idle connection may.
async fn within<T>(
    idle: Option<Duration>,
    session: &Session,
    what: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    match idle {
        None => what.await,
        Some(time) => tokio::time::timeout(time, what).await.unwrap_or_else(|_| {
            session.add(Counter::IdleKicks, 1);
            Err(io::ErrorKind::TimedOut.into())
        }),
    }
}
