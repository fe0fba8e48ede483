//! Connections: how they come, how they are encrypted, which thread serves them. What their bytes mean is a
//! [`connection::Protocol`]'s affair.
//!
//! | module       | what it holds                                           |
//! |--------------|---------------------------------------------------------|
//! | `listen`     | sockets                                                 |
//! | `tls`        | encryption                                              |
//! | `worker`     | threads, and accepting                                  |
//! | `connection` | one client: reading, writing, bounds                    |
//! | `clients`    | the connections that are open                           |
//! | `dialect`    | what there is to say of a protocol                      |
//! | `lane`       | what connections have in common                         |
//! | `limits`     | what a connection may, which may change while it is open |
//! | `files`      | room for sockets                                        |
//! | `shutdown`   | stopping                                                |

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
