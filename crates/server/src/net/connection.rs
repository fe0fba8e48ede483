//! One connection: read all that the client has sent, answer all complete requests, write once; and again.
//!
//! I1 Bounded: the input never grows beyond the longest request, the output not beyond [`ENOUGH`] and one value. While
//!    answers wait to be taken nothing is read, so that a client which only sends fills its own socket.
//! I2 A request is carried out once it is whole, in order; its answer is sent after its effect, and what it has seen,
//!    is durable. Requests do not wait for that one by one: the answers do, when they are to be sent, with those of the
//!    worker's other connections ([`Lane::settle`]).
//! I3 When the server stops, what has arrived whole is still answered.
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

/// Answers are sent once there are this many bytes of them, however many requests wait.
pub const ENOUGH: usize = 256 << 10;

/// Input space that is kept, in bytes, and what a read may take when the client has much to say.
const KEPT: usize = 64 << 10;
const FIRST: usize = 4 << 10;

/// How long the end of a connection may take: with encryption it is something to say, and a client need not listen. The
/// answers before it have been handed over.
const PARTING: Duration = Duration::from_secs(1);

/// What `PIPELINE` bytes ask for is likely several requests; and after `CROWD` turns of the worker a connection's next
/// comes where many are served. Then the answers, unless they are long, are sent once those of the others are made that
/// wait: a client that waits for several connections is woken once for all of them, not for each.
const PIPELINE: usize = 256;
const CROWD: u64 = 4;

/// What has been read and not yet answered: the bytes from `begin` on. The space behind them is not touched before
/// bytes arrive there, so that it takes no memory.
struct Input {
    bytes: Vec<u8>,
    begin: usize,
}

impl Input {
    fn unread(&self) -> &[u8] {
        &self.bytes[self.begin..]
    }

    /// Makes space behind the unread bytes: for `want` of them in all, and more where the last read took all there
    /// was; up to `longest`, though always for one more.
    fn make_space(&mut self, want: usize, longest: usize) {
        self.bytes.drain(..self.begin);
        self.begin = 0;
        let (unread, space) = (self.bytes.len(), self.bytes.capacity());
        let grown = if unread == space { space * 2 } else { 0 };
        // A client that announces a large value is given space as its bytes arrive, at most twice what it has sent.
        let wanted = want.min((unread * 2).max(KEPT));
        let len = space.max(grown).max(wanted).max(unread + 1).max(FIRST);
        // What is left of a long request, or of many, is given back, also where a part of the next has come.
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

/// What the bytes of a connection mean.
pub trait Protocol: Sized {
    /// What the connections of one worker share.
    type Worker: Deref<Target = Lane>;

    /// A connection that has just come.
    fn begin(worker: &Rc<Self::Worker>, client: Arc<Client>) -> Self;

    /// Maximum number of bytes that a request can occupy now.
    fn longest(&self) -> usize;

    /// Answers the whole requests at the beginning of `unread`.
    async fn answer_all(&mut self, unread: &[u8], sink: &mut Sink<'_>) -> io::Result<Answered>;
}

/// What was answered.
pub struct Answered {
    /// Bytes that need not be shown again.
    pub used: usize,
    /// How many bytes the next request needs; `None`: the connection ends.
    pub want: Option<usize>,
}

/// Serves one connection until either side ends it.
pub async fn serve(
    stream: &mut dyn Stream,
    protocol: &mut impl Protocol,
    client: &Client,
    lane: &Lane,
    mut stop: Stop,
) -> io::Result<()> {
    let mut input = Input {
        bytes: Vec::new(),
        begin: 0,
    };
    let mut sink = Sink {
        stream,
        lane,
        client,
        out: Vec::new(),
        now: now(),
    };
    let mut want = 1;
    // The number of the last turn.
    let mut last = lane.turn();
    loop {
        input.make_space(want, protocol.longest());
        let arrived = tokio::select! {
            biased;
            arrived = sink.read(&mut input) => arrived?,
            () = stop.reached(Phase::Draining) => sink.last_read(&mut input).await?,
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
        // Answers that are not durable yet wait for the others in any case.
        if crowded && waits && answered.used >= PIPELINE && lane.is_settled() {
            tokio::task::yield_now().await;
        }
        sink.send().await?;
        input.begin += answered.used;
        match answered.want {
            Some(wanted) if !client.is_killed() => want = wanted,
            _ => return part(sink.stream).await,
        }
        // Where the length of what is awaited is known, it is data.
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

/// Where answers go.
pub struct Sink<'c> {
    stream: &'c mut dyn Stream,
    lane: &'c Lane,
    client: &'c Client,
    /// Answers that are not sent yet.
    pub out: Vec<u8>,
    /// The millisecond it is, looked up anew after each wait.
    pub now: u64,
}

impl Sink<'_> {
    /// Waits for bytes and takes all that have arrived, as far as there is space; whether the space is full now.
    /// `None`: the client has closed its side.
    async fn read(&mut self, input: &mut Input) -> io::Result<Option<bool>> {
        let taken = poll_fn(|context| poll_take(self.stream, &mut input.bytes, context));
        let taken = within(self.lane, taken).await?;
        Ok(self.taken(input, taken))
    }

    /// Takes what has arrived, without waiting.
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

    /// Sends the answers, and waits for something that has no limit of time.
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

    /// Sends the answers when everything that they acknowledge or show is durable. Where a sync has failed, sends the
    /// error in their place and ends the connection.
    async fn send(&mut self) -> io::Result<()> {
        if self.out.is_empty() {
            return self.write().await;
        }
        let Err(why) = self.lane.settle().await else {
            return self.write().await;
        };
        self.out = (self.client.protocol.not_durable)(&why.to_string());
        self.write().await?;
        part(self.stream).await?;
        Err(why.into())
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
            // Encrypted answers wait here for the client to take them.
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

/// Ends our side of the connection.
async fn part(stream: &mut dyn Stream) -> io::Result<()> {
    let ended = tokio::time::timeout(PARTING, stream.shutdown()).await;
    ended.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Waits no longer than an idle connection may. How long that is, it looks up whenever it is polled: a new limit holds
/// at once for clients that are [told to look](Client::look_again).
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
