//! The errors of a server as a whole, not of a single item.

use std::net::SocketAddr;

/// Why the server could not start, open a database, or apply a setting.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No address to listen on was given.
    #[error("no address to listen on was given")]
    NoAddress,
    /// An address other machines can reach, without [`Config::allow_remote`](crate::Config::allow_remote).
    #[error(
        "listening on {0} would let other machines read and change everything, since there are no passwords: use a \
         loopback address, give a file of passwords, or allow remote clients explicitly"
    )]
    NotLoopback(SocketAddr),
    /// An address for metrics that other machines can reach, without
    /// [`Config::allow_remote`](crate::Config::allow_remote).
    #[error(
        "listening on {0} would let other machines read the metrics: use a loopback address, or allow remote clients \
         explicitly"
    )]
    MetricsNotLoopback(SocketAddr),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: String,
        /// Why.
        source: std::io::Error,
    },
    /// The operating system refused a thread, a runtime, a socket's registration, or a signal handler.
    #[error("cannot start the server's threads: {0}")]
    Threads(#[source] std::io::Error),
    /// The map holds keys, but not the server's record.
    #[error("this map was not written by the memcached server: give the server a map of its own")]
    NotOurs,
    /// The map was written by another version of the server.
    #[error("the server's map has format {version}, and this program reads format {ours}")]
    OtherVersion {
        /// The map's format.
        version: u64,
        /// The format this program reads.
        ours: u64,
    },
    /// The file of passwords cannot be used.
    #[error("passwords '{path}': {why}", path = path.display())]
    Passwords {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The certificate or the key cannot be used.
    #[error("TLS '{path}': {why}", path = path.display())]
    Tls {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The pool's level does not offer this sync policy.
    #[error(
        "sync '{sync}': the pool is of level {level}, which amounts to '{given}': serve it at level disk to choose"
    )]
    Sync {
        /// The policy that was asked for.
        sync: &'static str,
        /// The pool's level.
        level: wollemi::Level,
        /// The policy that the level amounts to.
        given: &'static str,
    },
    /// The log has failed.
    #[error("{0}")]
    Log(String),
    /// The map of a database cannot be opened or created.
    #[error("{0}")]
    Map(String),
    /// There is no such database.
    #[error("there is no database {0}")]
    NoDatabase(usize),
    /// The server's own record is damaged.
    #[error("the memcached server's record (under the empty key) is damaged")]
    DamagedRecord,
    /// The index failed while the items of a database were opened.
    #[error(transparent)]
    Index(#[from] index::Error),
}
