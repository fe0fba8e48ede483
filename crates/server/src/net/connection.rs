//! One connection. In each turn the server reads what the client has sent, answers all complete requests, and then
//! sends the answers; only if there are many does it send some of them earlier.
//!
//! I1 Bounded: the input never grows beyond the longest request, the output not beyond [`ENOUGH`] and one answer. While
//!    answers wait for the client the server reads nothing, so that a client which only sends fills its own socket.
//! I2 Requests are carried out in order, each once it is complete. An answer is sent after the request's effect, and
//!    all that the request has read, is durable, unless the sync policy defers that. Requests do not wait for that one
//!    by one: the answers wait together, with those of the worker's other connections ([`Settle`]).
//! I3 A server that stops still answers requests that have arrived completely.
//!
//! Not here: what the bytes mean ([`Protocol`]).

use crate::clock::now;
use crate::counters::Counter;
use crate::freed;
use crate::net::clients::{Client, State};
use crate::net::lane::Lane;
use crate::net::listen::{Stream, poll_take};
use crate::net::shutdown::{Phase, Stop};
use std::future::{Future, poll_fn};
use std::io;
use std::ops::Deref;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep_until};

/// The server sends answers once there are this many bytes of them, however many requests wait.
pub const ENOUGH: usize = 256 << 10;

/// Bytes of input space, and of output space, that a connection keeps between turns; then bytes of input space for its
/// first read.
const KEPT: usize = 64 << 10;
const FIRST: usize = 4 << 10;

/// Upper bound on the wait for a connection's end: with encryption the end is a message, which the client may not read.
/// The answers before it have been handed over.
const PARTING: Duration = Duration::from_secs(1);

/// Input of at least `PIPELINE` bytes probably holds several requests. If the worker served at least `CROWD` turns
/// since a connection's last, many connections are active. Then the connection sends its answers, unless they are long,
/// only after the worker has made the answers of the other waiting connections: a client that waits for several
/// connections is woken once for all of them, not for each.
const PIPELINE: usize = 256;
const CROWD: u64 = 4;

/// The input that is not answered yet: the bytes from `begin` on. The space behind them is not touched before bytes
/// arrive there, so that it takes no memory.
struct Input {
    bytes: Vec<u8>,
    begin: usize,
}

impl Input {
    fn unread(&self) -> &[u8] {
        &self.bytes[self.begin..]
    }

    /// Makes space behind the unread bytes: for `want` of them in all, and for more if the last read filled the space;
    /// up to `longest`, but always for one more.
    fn make_space(&mut self, want: usize, longest: usize) {
        self.bytes.drain(..self.begin);
        self.begin = 0;
        let (unread, space) = (self.bytes.len(), self.bytes.capacity());
        let grown = if unread == space { space * 2 } else { 0 };
        // A client that announces a large value gets space as its bytes arrive: at most `KEPT`, or twice what it has
        // sent if that is more.
        let wanted = want.min((unread * 2).max(KEPT));
        let len = space.max(grown).max(wanted).max(unread + 1).max(FIRST);
        // The space of a long request, or of many, is freed, even if a part of the next has arrived.
        let len = len.min((unread * 4).max(KEPT));
        if len > space {
            let len = len.min(longest.max(FIRST)).max(unread + 1);
            self.bytes.reserve_exact(len - unread);
        } else if len < space {
            self.bytes.shrink_to(len);
            freed::note(space - len);
        }
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        freed::note(self.bytes.capacity());
    }
}

/// The meaning of a connection's bytes.
pub trait Protocol: Sized {
    /// The state that the connections of one worker share.
    type Worker: Deref<Target = Lane> + Settle;

    /// Creates the state of a new connection.
    fn begin(worker: &Rc<Self::Worker>, client: Arc<Client>) -> Self;

    /// Returns the maximum number of bytes that a request can occupy now.
    fn longest(&self) -> usize;

    /// Answers the whole requests at the beginning of `unread`.
    async fn answer_all(&mut self, unread: &[u8], sink: &mut Sink<'_>) -> io::Result<Answered>;
}

/// Makes connections wait until all that they have written and read is durable.
pub trait Settle {
    /// Runs a connection. Until it [settles](Settle::settle), it does not wait for its writes, or for what it has read,
    /// to become durable.
    fn unsettled<T>(&self, connection: impl Future<Output = T>) -> impl Future<Output = T>
    where
        Self: Sized;

    /// Returns whether all that the running connection has written and read so far is durable.
    fn is_settled(&self) -> bool;

    /// Waits until all that the running connection has written and read so far is durable. The sync blocks the worker.
    ///
    /// # Errors
    ///
    /// The disk has failed, and it is unknown what is durable.
    fn settle(&self) -> io::Result<()>;
}

/// The result of a turn.
pub struct Answered {
    /// Bytes of the input that are done with.
    pub used: usize,
    /// The number of bytes that the next request needs; `None` ends the connection.
    pub want: Option<usize>,
}

/// Serves one connection until either side ends it.
pub async fn serve<P: Protocol>(
    stream: &mut dyn Stream,
    protocol: &mut P,
    client: &Client,
    worker: &P::Worker,
    mut stop: Stop,
) -> io::Result<()> {
    let lane: &Lane = worker;
    let mut input = Input {
        bytes: Vec::new(),
        begin: 0,
    };
    let mut sink = Sink {
        stream,
        lane,
        settle: worker,
        client,
        out: Vec::new(),
        now: now(),
    };
    let mut want = 1;
    // The number of this connection's last turn. Its beginning counts as one.
    let mut last = lane.turn();
    loop {
        input.make_space(want, protocol.longest());
        let arrived = tokio::select! {
            biased;
            arrived = sink.read(&mut input) => arrived?,
            () = stop.reached(Phase::Draining) => {
                // The runtime does not know yet what has arrived since it last asked the system. It asks before it
                // wakes a task that has yielded.
                tokio::task::yield_now().await;
                sink.last_read(&mut input).await?
            }
            () = client.killed() => return Ok(()),
        };
        let Some(full) = arrived else {
            return Ok(());
        };
        client.note();
        client.note_state(State::Parsing);
        sink.now = now();
        lane.begin();
        let turn = lane.turn();
        let crowded = turn - std::mem::replace(&mut last, turn) >= CROWD;
        let answered = protocol.answer_all(input.unread(), &mut sink).await?;
        let waits = (1..KEPT).contains(&sink.out.len());
        // If something is not durable yet, `send` lets the other connections make their answers in any case.
        if crowded && waits && answered.used >= PIPELINE && worker.is_settled() {
            tokio::task::yield_now().await;
        }
        sink.send().await?;
        input.begin += answered.used;
        match answered.want {
            Some(wanted) if !client.is_killed() => want = wanted,
            _ => return part(sink.stream).await,
        }
        // If the connection knows how many bytes it waits for, these are data.
        client.note_state(match want > input.unread().len() + 1 {
            true => State::ReadingData,
            false => State::Reading,
        });
        if stop.is(Phase::Draining) && !full {
            return part(sink.stream).await;
        }
        if full {
            tokio::task::yield_now().await;
        }
    }
}

/// The output of a connection.
pub struct Sink<'c> {
    stream: &'c mut dyn Stream,
    lane: &'c Lane,
    settle: &'c dyn Settle,
    client: &'c Client,
    /// Answers that are not sent yet.
    pub out: Vec<u8>,
    /// The current time in milliseconds since 1970, updated after each wait.
    pub now: u64,
}

impl Sink<'_> {
    /// Waits for bytes and reads all that have arrived, as far as there is space. Returns whether the space is full
    /// now; `None` if the client has closed its side.
    async fn read(&mut self, input: &mut Input) -> io::Result<Option<bool>> {
        let taken = poll_fn(|context| poll_take(self.stream, &mut input.bytes, context));
        let taken = within(self.lane, taken).await?;
        Ok(self.taken(input, taken))
    }

    /// Reads what has arrived, without waiting.
    async fn last_read(&mut self, input: &mut Input) -> io::Result<Option<bool>> {
        let taken = poll_fn(
            |context| match poll_take(self.stream, &mut input.bytes, context) {
                Poll::Pending => Poll::Ready(Ok(Some(0))),
                ready => ready,
            },
        );
        let taken = taken.await?;
        Ok(self.taken(input, taken))
    }

    fn taken(&self, input: &Input, taken: Option<usize>) -> Option<bool> {
        let taken = taken?;
        self.lane.add(Counter::BytesRead, taken as u64);
        Some(taken > 0 && input.bytes.len() == input.bytes.capacity())
    }

    /// Sends the answers if there are enough of them.
    pub async fn send_if_enough(&mut self) -> io::Result<()> {
        if self.out.len() >= ENOUGH {
            self.send().await?;
        }
        Ok(())
    }

    /// Sends the answers, then waits for a future without a time limit.
    pub async fn wait<T>(&mut self, what: impl Future<Output = T>) -> io::Result<T> {
        self.send().await?;
        let done = tokio::select! {
            done = what => done,
            () = self.client.killed() => return Err(io::ErrorKind::ConnectionAborted.into()),
        };
        self.now = now();
        self.lane.begin();
        Ok(done)
    }

    /// Sends the answers once everything that they acknowledge or show is durable. If a sync has failed, sends the
    /// error in their place and ends the connection.
    async fn send(&mut self) -> io::Result<()> {
        if self.out.is_empty() || self.settle.is_settled() {
            return self.write().await;
        }
        // First the worker serves its other connections that have input, so that one sync covers all of them.
        tokio::task::yield_now().await;
        let Err(why) = self.settle.settle() else {
            return self.write().await;
        };
        self.out = (self.client.protocol.not_durable)(&why.to_string());
        self.write().await?;
        part(self.stream).await?;
        Err(why)
    }

    async fn write(&mut self) -> io::Result<()> {
        let mut sent = 0;
        self.client.note_state(State::Writing);
        while sent < self.out.len() {
            let some = tokio::select! {
                biased;
                some = within(self.lane, self.stream.write(&self.out[sent..])) => some?,
                () = self.client.killed() => return Err(io::ErrorKind::ConnectionAborted.into()),
            };
            if some == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.lane.add(Counter::BytesWritten, some as u64);
            sent += some;
        }
        if sent > 0 {
            // Encrypted answers wait here until the client reads them.
            tokio::select! {
                biased;
                flushed = within(self.lane, self.stream.flush()) => flushed?,
                () = self.client.killed() => return Err(io::ErrorKind::ConnectionAborted.into()),
            }
        }
        self.out.clear();
        if self.out.capacity() > KEPT {
            freed::note(self.out.capacity() - KEPT);
            self.out.shrink_to(KEPT);
        }
        self.client.note_state(State::Parsing);
        self.now = now();
        self.lane.begin();
        Ok(())
    }
}

/// Closes the server's side of the connection.
async fn part(stream: &mut dyn Stream) -> io::Result<()> {
    let ended = tokio::time::timeout(PARTING, stream.shutdown()).await;
    ended.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Waits for a future at most as long as a connection may be idle. Each poll looks the limit up, so that a new limit
/// applies at once to clients that are [woken](Client::look_again).
async fn within<T>(lane: &Lane, what: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let mut what = pin!(what);
    let mut timer = pin!(None);
    // The limit that the timer is set for, and when the wait began.
    let (mut limit, mut since) = (None, None);
    poll_fn(|context| {
        if let Poll::Ready(done) = what.as_mut().poll(context) {
            return Poll::Ready(done);
        }
        let since = *since.get_or_insert_with(Instant::now);
        let now = lane.net.limits.idle();
        if now != limit {
            limit = now;
            timer.set(now.and_then(|idle| since.checked_add(idle)).map(sleep_until));
        }
        match timer.as_mut().as_pin_mut().map(|timer| timer.poll(context)) {
            Some(Poll::Ready(())) => {
                lane.add(Counter::IdleKicks, 1);
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
            Some(Poll::Pending) | None => Poll::Pending,
        }
    })
    .await
}

#[cfg(test)]
mod tests;
