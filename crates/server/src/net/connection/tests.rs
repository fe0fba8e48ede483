//! Connections that are polled by hand, in an order that the test chooses.

use super::*;
use crate::commands::{DIALECTS, Session, redis};
use crate::counters;
use crate::net::clients::{Clients, Ends, Open};
use crate::net::shutdown::Shutdown;
use crate::ops::config::Config;
use crate::ops::shared::Shared;
use crate::ops::shared::Worker;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::pin::Pin;
use std::task::{Context, Waker};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::runtime::Runtime;
use tokio::task::LocalSet;
use wollemi::Db;

/// A client that sends nothing and accepts no bytes.
struct Deaf;

impl AsyncRead for Deaf {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl AsyncWrite for Deaf {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Pending
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

/// A client that has sent these bytes. Further reads fail if `fails`, and are otherwise pending. The client accepts all
/// answers, but flushes never end.
struct Sent {
    bytes: &'static [u8],
    fails: bool,
}

impl AsyncRead for Sent {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match std::mem::take(&mut self.bytes) {
            [] if !self.fails => Poll::Pending,
            [] => Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            sent => {
                space.put_slice(sent);
                Poll::Ready(Ok(()))
            }
        }
    }
}

impl AsyncWrite for Sent {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
}

/// A client that accepts nothing does not prevent the end of its connection.
#[test]
fn the_end_of_a_connection_comes() {
    let ended = runtime().block_on(part(&mut Deaf));
    assert_eq!(ended.map_err(|error| error.kind()), Err(io::ErrorKind::TimedOut));
}

/// Connections of a crowd, and commands that each sends at once.
const CLIENTS: usize = 8;
const COMMANDS: usize = 64;

/// A connection, polled by hand, and its client.
struct Served {
    open: Rc<Open>,
    /// The client's end.
    socket: DuplexStream,
    serving: Option<Serving>,
    /// The number of answers that the client has received.
    counted: usize,
}

/// Clients of one worker. Each increments a key of its own, so that its answers show their order.
struct Crowd {
    worker: Rc<Worker>,
    shutdown: Shutdown,
    clients: Vec<Served>,
}

impl Crowd {
    /// Creates connections that wait for their clients. Between the two fit `space` bytes in each direction.
    fn new(space: usize) -> Crowd {
        let worker = worker();
        let shutdown = Shutdown::new();
        let clients = (0..CLIENTS).map(|_| Served::new(&worker, &shutdown, space));
        let clients = clients.collect();
        let mut crowd = Crowd {
            worker,
            shutdown,
            clients,
        };
        crowd.poll(0..CLIENTS);
        crowd
    }

    /// Polls each of these connections.
    fn poll(&mut self, which: std::ops::Range<usize>) {
        self.clients[which].iter_mut().for_each(Served::poll);
    }

    /// Sends the commands of each client.
    fn send(&mut self) {
        for (i, client) in self.clients.iter_mut().enumerate() {
            assert!(client.send(&count(i).repeat(COMMANDS)));
        }
    }

    /// Returns the number of commands carried out so far.
    fn commands(&self) -> u64 {
        let sums = counters::sums(self.worker.net.counters.iter());
        sums[Counter::Commands as usize].1
    }

    /// Creates a crowd in which all clients have sent their commands. The connections before `amid` have had a turn:
    /// their answers are made, but none is sent.
    fn amid(amid: usize) -> Crowd {
        let mut crowd = Crowd::new(1 << 16);
        crowd.send();
        crowd.poll(0..amid);
        assert_eq!(crowd.commands(), (amid * COMMANDS) as u64);
        for client in &mut crowd.clients {
            assert_eq!(client.received(), b"");
        }
        crowd
    }
}

fn count(client: usize) -> String {
    format!("*2\r\n$4\r\nINCR\r\n$1\r\n{client}\r\n")
}

/// A connection to be polled.
type Serving = Pin<Box<dyn Future<Output = io::Result<()>>>>;

/// Serves a client of Redis's protocol.
fn served(
    worker: &Rc<Worker>,
    shutdown: &Shutdown,
    mut stream: impl Stream + 'static,
) -> (Rc<Open>, Serving) {
    let ends = Ends {
        peer: "a client".to_owned(),
        local: "a server".to_owned(),
        unix: false,
    };
    let clients = &worker.net.clients;
    let open = Clients::enter(clients, CLIENTS, &redis::DIALECT, ends);
    let open = Rc::new(open.expect("there is room"));
    let (worker, stop, served) = (worker.clone(), shutdown.subscribe(), open.clone());
    let serving = Box::pin(async move {
        let client = &served.client;
        let mut protocol = Session::begin(&worker, client.clone());
        serve(&mut stream, &mut protocol, client, &worker, stop).await
    });
    (open, serving)
}

fn worker() -> Rc<Worker> {
    let one = Config {
        threads: 1,
        ..Config::default()
    };
    let shared = Shared::open(one, &Db::anonymous().expect("memory"), &DIALECTS).expect("it is empty");
    Rc::new(Worker::new(Arc::new(shared), 0))
}

impl Served {
    fn new(worker: &Rc<Worker>, shutdown: &Shutdown, space: usize) -> Served {
        let (socket, stream) = tokio::io::duplex(space);
        let (open, serving) = served(worker, shutdown, stream);
        Served {
            open,
            socket,
            serving: Some(serving),
            counted: 0,
        }
    }

    /// Lets the connection go on until it waits.
    fn poll(&mut self) {
        let context = &mut Context::from_waker(Waker::noop());
        if let Some(serving) = &mut self.serving
            && serving.as_mut().poll(context).is_ready()
        {
            self.serving = None;
        }
    }

    /// Sends these commands if there is space, which then must suffice for all. Returns whether there was.
    fn send(&mut self, commands: &str) -> bool {
        let context = &mut Context::from_waker(Waker::noop());
        match Pin::new(&mut self.socket).poll_write(context, commands.as_bytes()) {
            Poll::Ready(sent) => {
                assert_eq!(sent.expect("it is open"), commands.len());
                true
            }
            Poll::Pending => false,
        }
    }

    /// Returns the answers that have arrived since the last call.
    fn received(&mut self) -> Vec<u8> {
        let mut received = Vec::with_capacity(1 << 12);
        let context = &mut Context::from_waker(Waker::noop());
        while let Poll::Ready(taken) = poll_take(&mut self.socket, &mut received, context)
            && taken.expect("no failure").is_some()
        {
            received.reserve(1 << 12);
        }
        received
    }

    /// Asserts that this many further answers have arrived, and nothing else.
    #[track_caller]
    fn expect(&mut self, answers: usize) {
        let numbers = self.counted + 1..=self.counted + answers;
        let expected: String = numbers.map(|number| format!(":{number}\r\n")).collect();
        assert_eq!(String::from_utf8_lossy(&self.received()), expected);
        self.counted += answers;
    }
}

/// A crowd's answers are made before any is sent, turn after turn, and all come, in order.
#[test]
fn a_crowd_is_answered_in_order() {
    let runtime = runtime();
    let _within = runtime.enter();
    let mut crowd = Crowd::amid(CLIENTS);
    crowd.poll(0..CLIENTS);
    crowd
        .clients
        .iter_mut()
        .for_each(|client| client.expect(COMMANDS));
    crowd.send();
    crowd.poll(0..CLIENTS);
    crowd.clients.iter_mut().for_each(|client| client.expect(0));
    crowd.poll(0..CLIENTS);
    crowd
        .clients
        .iter_mut()
        .for_each(|client| client.expect(COMMANDS));
    // One client that comes twice is no crowd.
    let last = &mut crowd.clients[CLIENTS - 1];
    assert!(last.send(&count(CLIENTS - 1).repeat(COMMANDS)));
    last.poll();
    last.expect(COMMANDS);
}

/// A server that is stopped while a crowd's answers wait sends them, answers those whose turn has not come, and ends
/// all connections.
#[test]
fn a_crowd_is_answered_before_the_stop() {
    let runtime = runtime();
    let _within = runtime.enter();
    for amid in [0, 1, CLIENTS / 2, CLIENTS] {
        let mut crowd = Crowd::amid(amid);
        crowd.shutdown.stop();
        for _ in 0..3 {
            crowd.poll(0..CLIENTS);
        }
        for client in &mut crowd.clients {
            client.expect(COMMANDS);
            assert!(client.serving.is_none(), "the connection has ended");
        }
    }
}

/// A request that has arrived before the stop is answered, also if the runtime has not noticed it yet.
#[test]
fn what_arrives_just_before_the_stop_is_answered() {
    let runtime = crate::net::worker::runtime().expect("a runtime");
    let answer = LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let mut client = TcpStream::connect(address).expect("it listens");
        let (stream, _) = listener.accept().expect("the client");
        stream.set_nonblocking(true).expect("a socket");
        let arrivals = stream.try_clone().expect("a socket");
        let stream = tokio::net::TcpStream::from_std(stream).expect("a socket");
        let (worker, shutdown) = (worker(), Shutdown::new());
        let (_open, serving) = served(&worker, &shutdown, stream);
        let serving = tokio::task::spawn_local(serving);
        // Then the connection waits for its client.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        client.write_all(b"PING\r\n").expect("it is open");
        while arrivals.peek(&mut [0]).is_err() {
            std::thread::yield_now();
        }
        shutdown.stop();
        serving.await.expect("no panic").expect("no failure");
        let mut answer = String::new();
        client.read_to_string(&mut answer).map(|_| answer)
    });
    assert_eq!(answer.expect("the connection ends in order"), "+PONG\r\n");
}

/// A client that is killed while its answers wait receives them before its connection ends. The other connections
/// continue.
#[test]
fn who_is_killed_in_a_crowd_has_its_answers() {
    let runtime = runtime();
    let _within = runtime.enter();
    let mut crowd = Crowd::new(1 << 16);
    let victims = [1, 5];
    for (i, client) in crowd.clients.iter_mut().enumerate() {
        assert!(client.send(&count(i).repeat(COMMANDS)));
    }
    crowd.poll(0..CLIENTS);
    let killer = &mut crowd.clients[3];
    killer.poll();
    killer.expect(COMMANDS);
    for victim in victims {
        let id = crowd.clients[victim].open.client.id;
        let killer = &mut crowd.clients[3];
        assert!(killer.send(&format!("CLIENT KILL ID {id}\r\n")));
        killer.poll();
        assert_eq!(killer.received(), b":1\r\n");
    }
    crowd.poll(0..CLIENTS);
    for (i, client) in crowd.clients.iter_mut().enumerate().filter(|(i, _)| *i != 3) {
        client.expect(COMMANDS);
        assert_eq!(client.serving.is_none(), victims.contains(&i));
    }
    let others = (0..CLIENTS).filter(|i| !victims.contains(i));
    for i in others {
        let client = &mut crowd.clients[i];
        assert!(client.send(&count(i)));
        client.poll();
        client.expect(1);
    }
}

/// The connection of a client that is killed while it reads no answers ends. The client has the answers for which there
/// was space, in order.
#[test]
fn who_is_killed_without_listening_has_what_was_sent() {
    let runtime = runtime();
    let _within = runtime.enter();
    let commands = count(0).repeat(COMMANDS);
    let mut crowd = Crowd::new(commands.len());
    let client = &mut crowd.clients[0];
    let mut sent = 0;
    while client.send(&commands) {
        sent += COMMANDS;
        client.poll();
    }
    client.open.client.kill();
    client.poll();
    assert!(client.serving.is_none(), "the connection has ended");
    let received = String::from_utf8(client.received()).expect("text");
    let answers: String = (1..=sent).map(|number| format!(":{number}\r\n")).collect();
    assert_eq!(received, answers[..commands.len()]);
}

/// Requests that arrived completely before a connection failed are carried out, even if one read finds both them and
/// the failure.
#[test]
fn what_came_before_a_failure_is_carried_out() {
    let runtime = runtime();
    let _within = runtime.enter();
    let (worker, shutdown) = (worker(), Shutdown::new());
    let client = Sent {
        bytes: b"SET a 1\r\nSET b",
        fails: true,
    };
    let (_open, mut serving) = served(&worker, &shutdown, client);
    let _ = serving.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    let read = |key: &[u8]| {
        let read = worker
            .shared
            .databases
            .first()
            .read(key, now(), |item| item.data.to_vec());
        read.expect("sound")
    };
    assert_eq!((read(b"a"), read(b"b")), (Some(b"1".to_vec()), None));
}

/// The connection of a client that is killed while its answers are being flushed, as encrypted ones are, ends.
#[test]
fn who_is_killed_before_the_flush_has_its_end() {
    let runtime = runtime();
    let _within = runtime.enter();
    let (worker, shutdown) = (worker(), Shutdown::new());
    let client = Sent {
        bytes: b"PING\r\n",
        fails: false,
    };
    let (open, mut serving) = served(&worker, &shutdown, client);
    let context = &mut Context::from_waker(Waker::noop());
    assert!(serving.as_mut().poll(context).is_pending());
    open.client.kill();
    assert!(serving.as_mut().poll(context).is_ready());
}

/// The memory of a long request is freed even if the beginning of the next one has arrived. The part of a long request
/// that has arrived is kept.
#[test]
fn the_memory_of_long_requests_is_given_back() {
    const LONG: usize = 1 << 20;
    for (unread, want) in [(0, 1), (10, 11), (10, LONG), (KEPT / 2 + 1, 1), (KEPT, LONG)] {
        let mut input = Input {
            bytes: vec![b'x'; LONG],
            begin: LONG - unread,
        };
        input.make_space(want, 2 * LONG);
        assert_eq!(input.unread().len(), unread);
        assert!(
            input.bytes.capacity() <= KEPT.max(4 * unread),
            "{unread} bytes of {want}"
        );
    }
    let mut input = Input {
        bytes: vec![b'x'; LONG],
        begin: 1,
    };
    input.make_space(LONG, 2 * LONG);
    assert_eq!(input.unread().len(), LONG - 1);
    assert!(input.bytes.capacity() >= LONG);
}
