//! One measurement.

/// One measurement. Measurements of one name are adjacent.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Its name: letters, digits and underscores, ending in the unit, followed by `_total` if it only grows.
    pub name: &'static str,
    /// Its help text, one sentence.
    pub help: &'static str,
    /// Names and values of its labels, which distinguish it from others of its name.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: f64,
}

impl Metric {
    /// Creates a measurement without labels.
    pub fn new(name: &'static str, help: &'static str, value: f64) -> Metric {
        Metric {
            name,
            help,
            labels: Vec::new(),
            value,
        }
    }

    /// Adds a label.
    pub fn labelled(mut self, label: &'static str, value: impl Into<String>) -> Metric {
        self.labels.push((label, value.into()));
        self
    }
}
