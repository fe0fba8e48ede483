//! The server's log on the standard error stream: one line per event, as text or as JSON.

mod lines;

use clap::ValueEnum;
pub use lines::LogThread;
use tracing::level_filters::LevelFilter;

/// The format of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Time, level and message as text
    Text,
    /// One JSON object per line
    Json,
}

/// The minimum level of the events logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// Nothing
    Off,
    /// Failures
    Error,
    /// Problems: slow commands, rejected connections
    Warn,
    /// Starting, recovery, reloading, stopping
    Info,
    /// Every connection
    Debug,
}

/// Logs events from now on, until the returned value is dropped. Called once.
///
/// # Errors
///
/// The log's thread cannot be started.
pub fn start(format: Format, level: Level) -> std::io::Result<LogThread> {
    let level = match level {
        Level::Off => LevelFilter::OFF,
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
    };
    let (lines, telling) = lines::start()?;
    let builder = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(lines)
        .with_target(false)
        .with_ansi(false)
        .log_internal_errors(false);
    match format {
        Format::Text => builder.init(),
        Format::Json => builder.json().flatten_event(true).init(),
    }
    Ok(telling)
}
