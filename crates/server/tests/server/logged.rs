//! The lines of the event log that tests look for, of all servers of this process.

use std::fmt::Debug;
use std::sync::{Mutex, Once, PoisonError};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

/// A line of the log: its message, and some of its fields.
#[derive(Clone, Default)]
pub struct Line {
    pub message: String,
    pub client: String,
    pub protocol: String,
    pub why: String,
}

static LINES: Mutex<Vec<Line>> = Mutex::new(Vec::new());

/// Collects the warnings about HTTP requests, and the errors of reloads about the sync policy, from now on.
pub fn collect() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Collector).expect("the only subscriber"));
}

/// Returns the lines collected so far.
pub fn lines() -> Vec<Line> {
    LINES.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

struct Collector;

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let (level, target) = (*metadata.level(), metadata.target());
        (level == Level::WARN && target.ends_with("::http"))
            || (level == Level::ERROR && target.ends_with("::shared"))
    }
    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        LINES.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let value = format!("{value:?}");
        match field.name() {
            "message" => self.message = value,
            "client" => self.client = value.trim_matches('"').to_owned(),
            "protocol" => self.protocol = value.trim_matches('"').to_owned(),
            "why" => self.why = value,
            _ => {}
        }
    }
}
