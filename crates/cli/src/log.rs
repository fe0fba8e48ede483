//! The server's log on the standard error stream: one line per event, as text or as JSON.

mod lines;

use clap::ValueEnum;
pub use lines::Telling;
use tracing::level_filters::LevelFilter;

/// How an event looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Time, level, and what happened, as words
    Text,
    /// One object a line
    Json,
}

/// The lowest level of events that are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// Nothing at all
    Off,
    /// What failed
    Error,
    /// What is amiss: slow commands, connections turned away
    Warn,
    /// Starting, recovery, reloading, stopping
    Info,
    /// Every connection
    Debug,
}

/// Tells events from now on, until what this returns is dropped. Called once.
///
/// # Errors
///
/// No thread for it.
pub fn start(format: Format, level: Level) -> std::io::Result<Telling> {
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
