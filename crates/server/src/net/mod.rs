//! Connections: accepting and encrypting them, and the threads that serve them. A [`connection::Protocol`] gives their
//! bytes a meaning.
//!
//! | module       | what it holds                                     |
//! |--------------|---------------------------------------------------|
//! | `listen`     | sockets                                           |
//! | `tls`        | encryption                                        |
//! | `worker`     | threads, and accepting                            |
//! | `connection` | one client: reading, writing, bounds              |
//! | `clients`    | the open connections                              |
//! | `dialect`    | the properties of a protocol                      |
//! | `lane`       | the state that connections share                  |
//! | `limits`     | limits that may change while connections are open |
//! | `files`      | the limit on open files                           |
//! | `shutdown`   | stopping                                          |

pub mod clients;
pub mod connection;
pub mod dialect;
pub mod files;
pub mod lane;
pub mod limits;
pub mod listen;
pub mod shutdown;
pub mod tls;
pub mod worker;
