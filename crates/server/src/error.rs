//! What keeps the server from running.

use std::net::SocketAddr;

/// Why the server could not start, or had to stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No address to listen on was given.
    #[error("no address to listen on was given")]
    NoAddress,
    /// An address other machines can reach, without [`Config::allow_remote`](crate::Config::allow_remote).
    #[error(
        "listening on {0} would let other machines read and change everything, since the memcached protocol knows no \
         passwords: use a loopback address, or allow remote clients explicitly"
    )]
    NotLoopback(SocketAddr),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The operating system refused a thread or a runtime.
    #[error("cannot start the server's threads: {0}")]
    Threads(#[source] std::io::Error),
    /// The map holds keys that no memcached server has put there.
    #[error("this map was not written by the memcached server: give the server a map of its own")]
    NotOurs,
    /// The map was written by a newer server.
    #[error("the memcached server's map has format {version}, and this program reads up to format {ours}")]
    Newer {
        /// The map's format.
        version: u64,
        /// The newest format this program reads.
        ours: u64,
    },
    /// The server's own record makes no sense.
    #[error("the memcached server's record (under the empty key) is damaged")]
    DamagedRecord,
    /// The index failed while the server was starting.
    #[error(transparent)]
    Index(#[from] index::Error),
}
