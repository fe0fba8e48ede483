//! A pool to serve, made and committed to by the program's own code.

#[path = "../../../cli/src/commands/serve/databases.rs"]
mod databases;

use crate::support::config;
use index::Index;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use wollemi::Db;
use wollemi_server::{Commit, Config};

/// The map of database 0.
const FIRST: &str = "memcached";

/// A pool whose file goes with the last server over it.
pub struct Pool {
    db: Db,
}

impl Pool {
    pub fn new() -> Pool {
        let dir = tempfile::tempdir().expect("a directory");
        let db = Db::open(dir.path().join("served.pool")).expect("a pool");
        Pool { db }
    }

    /// The index that holds database 0.
    pub fn index(&self) -> Arc<dyn Index> {
        self.db.map(FIRST).expect("a map").index()
    }

    /// What commits a transaction.
    pub fn commit(&self) -> Commit {
        databases::commit(&self.db, FIRST)
    }

    /// A configuration for both protocols, with databases in the pool.
    pub fn config(&self) -> Config {
        Config {
            redis: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()],
            maps: Some(databases::maps(&self.db, FIRST, Db::map)),
            commit: Some(self.commit()),
            ..config()
        }
    }

    /// Fails unless the pool is as it must be.
    pub fn check(&self) {
        let check = self.db.check().expect("it can be read");
        assert!(check.is_clean(), "{check:?}");
    }
}
