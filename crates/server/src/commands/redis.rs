//! Redis's commands.
//!
//! | module                               | what it holds                                                  |
//! |--------------------------------------|----------------------------------------------------------------|
//! | `connection`                         | one connection: reads commands, answers them                   |
//! | `ahead`, `group`                     | commands that arrive together                                  |
//! | `dispatch`                           | a command as it arrives: found, checked, queued or carried out |
//! | `timing`                             | the durations of commands                                      |
//! | `table`                              | the function that carries each command out                     |
//! | `strings`, `sets`, `numbers`, `keys` | commands on the data of keys                                   |
//! | `expiry`, `scan`, `scripts`          | further commands on keys                                       |
//! | `transaction`                        | `MULTI`, `EXEC`, `WATCH` and the like                          |
//! | `client`, `admin`, `describe`        | commands on connections and on commands                        |
//! | `config`, `info`, `slowlog`          | commands on the server                                         |
//! | `backup`, `durable`                  | `SAVE`, `BGREWRITEAOF` and the like                            |
//! | `context`                            | the worker, the client, the connection's state and the reply   |
//! | `state`                              | what a connection remembers between two commands               |
//! | `dialect`                            | the protocol's name and fixed errors, for `net` and metrics    |
//! | `catalogue`, `command`               | each command's name, arity, key positions and effect on data   |
//!
//! The modules' dependencies have no cycle. The others: glob patterns (`glob`), decimal fractions (`decimal`), a random
//! choice (`random`), and the texts of help (`help`, `syntax`) and of errors (`error`).

mod admin;
mod ahead;
mod backup;
mod catalogue;
mod client;
mod command;
mod config;
mod connection;
mod context;
mod decimal;
mod describe;
mod dialect;
mod dispatch;
mod durable;
mod error;
mod expiry;
mod glob;
mod group;
mod help;
mod info;
mod keys;
mod numbers;
mod random;
mod randomkey;
mod scan;
mod scripts;
mod sets;
mod slowlog;
mod state;
mod strings;
mod syntax;
mod table;
mod timing;
mod transaction;

pub use connection::Redis;
pub use dialect::DIALECT;
