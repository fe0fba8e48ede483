//! A server over the reference index or over a pool, in this process, on a free port; and a client of bytes.

use crate::pool::Pool;
use index::Index;
use index::model::ModelIndex;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use wollemi::Db;
use wollemi_server::{Address, Config, Protocol, ServeReport, Server, Shutdown};

/// Upper bound on a test's wait for an answer or a state; beyond it the test counts as hung.
pub const PATIENCE: Duration = Duration::from_secs(120);

pub struct Running {
    pub address: SocketAddr,
    /// The address for Redis clients, if it serves any.
    pub redis: Option<SocketAddr>,
    /// The address of its metrics, if it serves them.
    pub metrics: Option<SocketAddr>,
    shutdown: Shutdown,
    thread: Option<JoinHandle<ServeReport>>,
    /// The pool it serves, if any.
    pool: Option<Pool>,
}

/// Returns a configuration for tests: any free port, two threads.
pub fn config() -> Config {
    Config {
        memcached: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()],
        threads: 2,
        ..Config::default()
    }
}

/// Returns the same for both protocols.
pub fn with_redis() -> Config {
    Config {
        redis: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()],
        ..config()
    }
}

/// Returns an empty database in memory.
pub fn memory() -> Db {
    Db::anonymous().expect("memory")
}

/// Returns the address for memcached clients.
pub fn address(server: &Server) -> SocketAddr {
    match server.addresses(Protocol::Memcached)[..] {
        [Address::Tcp(address), ..] => address,
        ref other => panic!("{other:?}"),
    }
}

/// Held by a test that sends a signal to the process, in which other servers may listen for signals.
pub static SIGNALS: Mutex<()> = Mutex::new(());

impl Running {
    pub fn start() -> Running {
        Running::over(config(), Arc::new(ModelIndex::new()))
    }

    /// Starts a server over a database in memory, in which this index holds the items of database 0.
    pub fn over(config: Config, index: Arc<dyn Index>) -> Running {
        let db = memory();
        let _map = db.hold(&config.map, index);
        Running::over_either(config, &db, None)
    }

    /// Starts a server over this pool, with this configuration.
    pub fn over_this(pool: Pool, config: Config) -> Running {
        let db = pool.db().clone();
        Running::over_either(config, &db, Some(pool))
    }

    /// Starts a server over the caller's database.
    pub fn over_db(config: Config, db: &Db) -> Running {
        Running::over_either(config, db, None)
    }

    fn over_either(config: Config, db: &Db, pool: Option<Pool>) -> Running {
        let reloads = config.host.as_ref().is_some_and(|host| host.reload().is_ok());
        // Signals go to the process: tests that use them hold `SIGNALS`.
        let shutdown = match reloads {
            true => Shutdown::on_signals(),
            false => Shutdown::new(),
        };
        let server = Server::bind(config, db).expect("the server starts");
        Running::run(server, shutdown, pool)
    }

    /// Runs a server that was bound before, and does not listen for signals.
    pub fn of(server: Server) -> Running {
        Running::run(server, Shutdown::new(), None)
    }

    fn run(server: Server, shutdown: Shutdown, pool: Option<Pool>) -> Running {
        let address = address(&server);
        let redis = match server.addresses(Protocol::Redis)[..] {
            [Address::Tcp(address), ..] => Some(address),
            _ => None,
        };
        let metrics = server.metrics_address();
        let stop = shutdown.clone();
        let thread = std::thread::spawn(move || server.run(&stop).expect("the server runs"));
        Running {
            address,
            redis,
            metrics,
            shutdown,
            thread: Some(thread),
            pool,
        }
    }

    /// Tells the server to stop, without waiting.
    pub fn tell_to_stop(&self) {
        self.shutdown.stop();
    }

    /// Tells the server not to wait for clients.
    pub fn tell_to_stop_at_once(&self) {
        self.shutdown.stop_at_once();
    }

    /// Stops the server and waits for it; then fails unless its pool, if it has one, is sound.
    pub fn stop(mut self) -> ServeReport {
        self.shutdown.stop();
        let report = self
            .thread
            .take()
            .expect("stopped once")
            .join()
            .expect("the server does not panic");
        if let Some(pool) = &self.pool {
            pool.check();
        }
        report
    }

    pub fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// Starts a server of both protocols, with all databases.
    pub fn with_redis() -> Running {
        Running::over(with_redis(), Arc::new(ModelIndex::new()))
    }

    /// Starts a server of both protocols over a new pool, like the program.
    pub fn over_pool() -> Running {
        let pool = Pool::new();
        let config = pool.config();
        Running::over_this(pool, config)
    }

    pub fn connect_redis(&self) -> Client {
        Client::connect(self.redis.expect("the server serves Redis clients"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shutdown.stop();
    }
}

pub struct Client {
    pub socket: TcpStream,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Client {
        let socket = TcpStream::connect(address).expect("the server listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        socket.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        Client { socket }
    }

    /// Returns all bytes up to and including `end`, or to the end of the connection.
    pub fn until(&mut self, end: &[u8]) -> Vec<u8> {
        let (mut read, mut piece) = (Vec::new(), [0; 4096]);
        while !read.ends_with(end) {
            match self.socket.read(&mut piece) {
                Ok(0) => break,
                Ok(len) => read.extend_from_slice(&piece[..len]),
                Err(error) => panic!("no answer: {error}; so far {:?}", shown(&read)),
            }
        }
        read
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("the server reads");
    }

    /// Returns the next `len` bytes.
    pub fn read(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.socket.read_exact(&mut bytes).expect("the server answers");
        bytes
    }

    /// Fails unless the next bytes are these.
    #[track_caller]
    pub fn expect(&mut self, answer: &[u8]) {
        let mut read = Vec::new();
        while read.len() < answer.len() && answer.starts_with(&read) {
            let mut piece = [0; 4096];
            let max = piece.len().min(answer.len() - read.len());
            match self.socket.read(&mut piece[..max]) {
                Ok(0) => break,
                Ok(len) => read.extend_from_slice(&piece[..len]),
                Err(error) => panic!("no answer: {error}; so far {:?}", shown(&read)),
            }
        }
        assert_eq!(shown(&read), shown(answer));
    }

    #[track_caller]
    pub fn ask(&mut self, request: &str, answer: &str) {
        self.send(request.as_bytes());
        self.expect(answer.as_bytes());
    }

    /// Returns the next line, without its end.
    pub fn line(&mut self) -> String {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            line.extend(self.read(1));
        }
        String::from_utf8_lossy(&line[..line.len() - 2]).into_owned()
    }

    /// Returns all bytes to the end of the connection.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.socket
            .read_to_end(&mut bytes)
            .expect("the server ends the connection");
        bytes
    }

    /// Fails unless the server ends the connection without sending another byte.
    #[track_caller]
    pub fn expect_end(&mut self) {
        assert_eq!(shown(&self.rest()), "");
    }
}

pub fn shown(bytes: &[u8]) -> String {
    let max = &bytes[..bytes.len().min(2000)];
    format!("{}", max.escape_ascii())
}
