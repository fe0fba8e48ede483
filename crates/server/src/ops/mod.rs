//! Operating the server: configuration, monitoring, and work besides serving.
//!
//! | module       | what it holds                               |
//! |--------------|---------------------------------------------|
//! | `config`     | how the server is set up                    |
//! | `shared`     | what all workers share                      |
//! | `passwords`  | who may come in                             |
//! | `latency`    | how long commands take                      |
//! | `slow`       | the commands that took long                 |
//! | `rate_limit` | what the log says of requests that fail     |
//! | `metric`     | one measurement                             |
//! | `metrics`    | what is told to Prometheus, and how         |
//! | `pool`       | what is told of the pool                    |
//! | `log`        | what is told of its log                     |
//! | `sync`       | when writes are durable                     |
//! | `host`       | what the program around the server does     |
//! | `copying`    | where backups go, and how far one is        |
//! | `backup`     | backups while clients are served            |
//! | `sweep`      | counting items, and removing dead ones      |

pub mod backup;
pub mod config;
pub mod copying;
pub mod host;
pub mod latency;
pub mod log;
pub mod metric;
pub mod metrics;
pub mod passwords;
pub mod pool;
pub mod rate_limit;
pub mod shared;
pub mod slow;
pub mod sweep;
pub mod sync;
