//! Listening and accepting. Every worker accepts connections on every address.
//!
//! A TCP address has one socket a worker (`SO_REUSEPORT`), and the kernel spreads the connections over them; a unix
//! socket is shared. A connection stays with the worker that accepted it.

use crate::Error;
use crate::net::clients::Ends;
use crate::net::dialect::Dialect;
use rustix::fs::{Mode, fchmod};
use socket2::{Domain, SockAddr, SockRef, Socket, TcpKeepalive, Type};
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

/// Connections that may wait at a socket to be accepted.
const BACKLOG: i32 = 4096;

/// How long a connection may be silent before the first keepalive probe: Redis's default of `tcp-keepalive`. Further
/// probes follow after a third of that; the system decides how many.
const SILENCE: Duration = Duration::from_secs(300);

fn keepalive() -> TcpKeepalive {
    TcpKeepalive::new().with_time(SILENCE).with_interval(SILENCE / 3)
}

/// Permissions of a unix socket: only its owner may connect.
const MODE: u32 = 0o700;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An internet address and a port.
    Tcp(SocketAddr),
    /// The file of a unix socket. The server creates it for its owner alone; it replaces one on which no process
    /// listens.
    Unix(PathBuf),
}

impl Address {
    /// Returns the address, if other machines can reach it.
    pub(crate) fn remote(&self) -> Option<SocketAddr> {
        match self {
            Address::Tcp(address) if !address.ip().to_canonical().is_loopback() => Some(*address),
            _ => None,
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Address {
        Address::Tcp(address)
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Unix(path) => path.display().fmt(f),
        }
    }
}

/// An address that the server listens on, for all workers.
#[derive(Debug)]
pub struct Listening {
    pub protocol: &'static Dialect,
    /// Port 0 is replaced by the port that the system chose.
    pub address: Address,
    sockets: Vec<Bound>,
    /// The file of a unix socket.
    _file: Option<File>,
}

#[derive(Debug)]
enum Bound {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A unix socket's file, which is removed with it.
#[derive(Debug)]
struct File {
    path: PathBuf,
    /// Stays open until the file is removed: otherwise the next server could replace the file before that.
    socket: UnixListener,
}

impl Drop for File {
    fn drop(&mut self) {
        // Another process may have removed it already.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Listening {
    /// Listens on an address, for this number of workers.
    pub fn bind(protocol: &'static Dialect, address: &Address, workers: usize) -> Result<Listening, Error> {
        let bound = match address {
            Address::Tcp(address) => tcp(*address, workers).map(|(address, sockets)| Listening {
                protocol,
                address: Address::Tcp(address),
                sockets,
                _file: None,
            }),
            Address::Unix(path) => unix(path, workers).map(|(file, sockets)| Listening {
                protocol,
                address: address.clone(),
                sockets,
                _file: Some(file),
            }),
        };
        bound.map_err(|source| Error::Listen {
            address: address.to_string(),
            source,
        })
    }

    /// Returns the next worker's listener. Called within its runtime.
    pub fn take(&mut self) -> io::Result<Listener> {
        let socket = match self.sockets.pop() {
            Some(Bound::Tcp(socket)) => Acceptor::Tcp(tokio::net::TcpListener::from_std(socket)?),
            Some(Bound::Unix(socket)) => Acceptor::Unix(tokio::net::UnixListener::from_std(socket)?),
            None => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(Listener {
            protocol: self.protocol,
            address: self.address.to_string(),
            socket,
        })
    }
}

/// Listens on an address by a single socket. Returns the address with the port that the system chose for port 0.
pub fn one(address: SocketAddr) -> Result<(SocketAddr, TcpListener), Error> {
    let bound = TcpListener::bind(address).and_then(|socket| {
        socket.set_nonblocking(true)?;
        Ok((socket.local_addr()?, socket))
    });
    bound.map_err(|source| Error::Listen {
        address: address.to_string(),
        source,
    })
}

fn tcp(address: SocketAddr, workers: usize) -> io::Result<(SocketAddr, Vec<Bound>)> {
    let mut address = address;
    let mut sockets = Vec::new();
    for _ in 0..workers {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        // With `SO_REUSEPORT` a socket also shares its port with another server's. The first one therefore listens
        // without it, which fails if another server listens there, and shares its port from then on.
        socket.set_reuse_port(!sockets.is_empty())?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        socket.set_reuse_port(true)?;
        let socket = TcpListener::from(socket);
        address = socket.local_addr()?;
        sockets.push(Bound::Tcp(socket));
    }
    Ok((address, sockets))
}

fn unix(path: &Path, workers: usize) -> io::Result<(File, Vec<Bound>)> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    if is_socket && UnixStream::connect(path).is_err_and(refused) {
        // A killed server has left this file. Any other failure may mean that a server listens there.
        std::fs::remove_file(path)?;
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // On Linux the file gets the socket's permissions, and never has others; elsewhere this may fail.
    let _ = fchmod(&socket, Mode::RWXU);
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::unix(path)?)?;
    let file = File {
        socket: socket.into(),
        path: path.to_owned(),
    };
    SockRef::from(&file.socket).listen(BACKLOG)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(MODE))?;
    let sockets = (0..workers)
        .map(|_| file.socket.try_clone().map(Bound::Unix))
        .collect::<Result<_, _>>()?;
    Ok((file, sockets))
}

/// A worker's listener.
pub struct Listener {
    pub protocol: &'static Dialect,
    address: String,
    socket: Acceptor,
}

enum Acceptor {
    Tcp(tokio::net::TcpListener),
    Unix(tokio::net::UnixListener),
}

/// A connection that was accepted.
pub struct Accepted {
    pub protocol: &'static Dialect,
    pub stream: Box<dyn Stream>,
    pub ends: Ends,
}

/// Waits for the next connection on any of these.
pub async fn accept(listeners: &[Listener]) -> io::Result<Accepted> {
    std::future::poll_fn(|context| {
        for listener in listeners {
            if let Poll::Ready(accepted) = listener.poll_accept(context) {
                return Poll::Ready(accepted);
            }
        }
        Poll::Pending
    })
    .await
}

impl Listener {
    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<Accepted>> {
        let (stream, ends): (Box<dyn Stream>, _) = match &self.socket {
            Acceptor::Tcp(socket) => {
                let (stream, peer) = std::task::ready!(socket.poll_accept(context))?;
                // If the client is gone already, the first read will notice.
                let _ = stream.set_nodelay(true);
                let _ = SockRef::from(&stream).set_tcp_keepalive(&keepalive());
                let ends = Ends {
                    peer: peer.to_string(),
                    // The server may listen on all addresses of the machine.
                    local: stream
                        .local_addr()
                        .map_or_else(|_| self.address.clone(), |local| local.to_string()),
                    unix: false,
                };
                (Box::new(stream), ends)
            }
            Acceptor::Unix(socket) => {
                let (stream, _) = std::task::ready!(socket.poll_accept(context))?;
                let ends = Ends {
                    peer: format!("{}:0", self.address),
                    local: self.address.clone(),
                    unix: true,
                };
                (Box::new(stream), ends)
            }
        };
        Poll::Ready(Ok(Accepted {
            protocol: self.protocol,
            stream,
            ends,
        }))
    }
}

/// The stream under a connection.
pub trait Stream: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

/// Appends what has arrived to `bytes`, up to their capacity. Returns the number of bytes, or `None` at the end of the
/// stream; pending if nothing has arrived.
pub fn poll_take(
    stream: &mut dyn Stream,
    bytes: &mut Vec<u8>,
    context: &mut Context<'_>,
) -> Poll<io::Result<Option<usize>>> {
    let before = bytes.len();
    while bytes.len() < bytes.capacity() {
        let read = pin!(stream.read_buf(bytes)).poll(context);
        let taken = bytes.len() - before;
        match read {
            // Bytes before the end of the stream, or before an error, are still answered. The next read meets the end
            // or the error again, or the idle time ends.
            Poll::Ready(Ok(0) | Err(_)) if taken > 0 => break,
            Poll::Ready(Ok(0)) => return Poll::Ready(Ok(None)),
            Poll::Ready(Ok(_)) => {}
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending if taken > 0 => break,
            Poll::Pending => return Poll::Pending,
        }
    }
    Poll::Ready(Ok(Some(bytes.len() - before)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpStream};
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::Instant;

    const PATIENCE: Duration = Duration::from_secs(30);

    /// Returns how many connections each socket has for this many clients. A client may learn that it is connected a
    /// moment before the server's socket does.
    fn accepted(sockets: &[Bound], clients: usize) -> Vec<usize> {
        let begun = Instant::now();
        let mut accepted = vec![0; sockets.len()];
        while accepted.iter().sum::<usize>() < clients && begun.elapsed() < PATIENCE {
            for (count, socket) in accepted.iter_mut().zip(sockets) {
                let Bound::Tcp(socket) = socket else {
                    panic!("a TCP socket for each worker");
                };
                *count += std::iter::from_fn(|| socket.accept().ok()).count();
            }
        }
        accepted
    }

    /// A client that connects while a server begins to listen is accepted; its connection is not reset.
    #[test]
    fn the_first_connection_is_accepted() {
        // Few attempts meet the moment at which a socket that listens and is dropped again would be there.
        for _ in 0..1000 {
            let (address, socket) = one((Ipv4Addr::LOCALHOST, 0).into()).expect("a free port");
            drop(socket);
            let (refused, ended) = (AtomicBool::new(false), AtomicBool::new(false));
            let connect = || {
                while !ended.load(Ordering::Relaxed) {
                    match TcpStream::connect_timeout(&address, PATIENCE) {
                        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                        connected => return connected.map(Some),
                    }
                    refused.store(true, Ordering::Relaxed);
                }
                Ok(None)
            };
            std::thread::scope(|scope| {
                let client = scope.spawn(connect);
                while !refused.load(Ordering::Relaxed) && !client.is_finished() {
                    std::hint::spin_loop();
                }
                let bound = tcp(address, 2);
                let Ok((_, sockets)) = &bound else {
                    // Another process took the port, or the client connected to itself.
                    ended.store(true, Ordering::Relaxed);
                    return;
                };
                let connected = client.join().expect("no panic");
                let _connection = connected.expect("accepted").expect("a server listens");
                assert_eq!(accepted(sockets, 1).iter().sum::<usize>(), 1);
            });
        }
    }

    /// Of two servers that begin to listen on one port at the same moment, at most one does.
    #[test]
    fn no_two_servers_share_a_port() {
        for _ in 0..1000 {
            let (address, socket) = one((Ipv4Addr::LOCALHOST, 0).into()).expect("a free port");
            drop(socket);
            let arrived = AtomicUsize::new(0);
            let listen = || {
                arrived.fetch_add(1, Ordering::Relaxed);
                while arrived.load(Ordering::Relaxed) < 2 {
                    std::hint::spin_loop();
                }
                tcp(address, 2)
            };
            let both = std::thread::scope(|scope| {
                let other = scope.spawn(listen);
                [listen(), other.join().expect("no panic")]
            });
            assert!(both.iter().any(Result::is_err), "{both:?}");
        }
    }

    /// The sockets of a server's workers share its connections.
    #[test]
    fn each_worker_has_connections() {
        let (address, sockets) = tcp((Ipv4Addr::LOCALHOST, 0).into(), 2).expect("a free port");
        let clients: Vec<_> = (0..64)
            .map(|_| TcpStream::connect(address).expect("it listens"))
            .collect();
        let accepted = accepted(&sockets, clients.len());
        assert_eq!(accepted.iter().sum::<usize>(), clients.len());
        assert!(accepted.iter().all(|&count| count > 0), "{accepted:?}");
    }

    /// The file of a unix socket is its owner's alone from the beginning.
    #[cfg(target_os = "linux")]
    #[test]
    fn no_other_user_can_connect() {
        let directory = tempfile::tempdir().expect("a folder");
        let path = directory.path().join("socket");
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let watching = scope.spawn(|| {
                let mut open = 0;
                while !ended.load(Ordering::Relaxed) {
                    if let Ok(file) = std::fs::metadata(&path) {
                        open |= file.permissions().mode() & 0o077;
                    }
                }
                open
            });
            for _ in 0..3000 {
                unix(&path, 1).expect("no other socket is there");
            }
            ended.store(true, Ordering::Relaxed);
            assert_eq!(watching.join().expect("no panic"), 0);
        });
    }
}
