//! Operating the server: configuration, monitoring, and background work.
//!
//! | module       | what it holds                                      |
//! |--------------|----------------------------------------------------|
//! | `config`     | how the server is set up, and the program around it |
//! | `shared`     | the state that all workers share                   |
//! | `passwords`  | users and passwords                                |
//! | `latency`    | the durations of commands                          |
//! | `slow`       | the slow log                                       |
//! | `rate_limit` | rate limits for log messages                       |
//! | `metric`     | one measurement                                    |
//! | `metrics`    | metrics in Prometheus's format, and their endpoint |
//! | `pool`       | pool metrics                                       |
//! | `log`        | log metrics                                        |
//! | `sync`       | the sync policy                                    |
//! | `copying`    | where backups go, and their progress               |
//! | `backup`     | backups while clients are served                   |
//! | `sweep`      | counting items, and removing dead ones             |

pub mod backup;
pub mod config;
pub mod copying;
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
