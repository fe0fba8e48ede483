//! Fetches metrics, and parses Prometheus's text format.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Maximum time for the connection, for the request, and for each read of the answer.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum length of an answer, in bytes.
const MAX_ANSWER: u64 = 16 << 20;

/// The server's metrics at one moment.
#[derive(Clone, Debug)]
pub struct Scrape {
    pub at: Instant,
    samples: BTreeMap<String, Vec<Sample>>,
}

/// One sample of a name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    pub labels: BTreeMap<String, String>,
    pub value: f64,
}

impl Sample {
    /// Returns a label's value; empty if the label is missing.
    pub fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }
}

impl Scrape {
    /// Parses the text format; returns a description of the error otherwise.
    pub fn read(text: &str, at: Instant) -> Result<Scrape, String> {
        let mut samples = BTreeMap::<String, Vec<Sample>>::new();
        let told = text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        for line in told {
            let (name, sample) = sample(line).ok_or_else(|| format!("not a sample: {line}"))?;
            samples.entry(name.to_owned()).or_default().push(sample);
        }
        Ok(Scrape { at, samples })
    }

    /// Returns the samples of a name.
    pub fn all(&self, name: &str) -> &[Sample] {
        self.samples.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the value of the first sample of a name.
    pub fn one(&self, name: &str) -> Option<f64> {
        self.all(name).first().map(|sample| sample.value)
    }

    /// Returns the value of the sample of a name that has this label.
    pub fn labelled(&self, name: &str, label: &str, value: &str) -> Option<f64> {
        let all = self.all(name).iter();
        all.filter(|sample| sample.label(label) == value)
            .map(|sample| sample.value)
            .next()
    }
}

/// Parses `name{label="value",…} number`.
fn sample(line: &str) -> Option<(&str, Sample)> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = BTreeMap::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        while !rest.starts_with('}') {
            let (label, behind) = rest.split_once("=\"")?;
            let (value, behind) = quoted(behind)?;
            labels.insert(label.to_owned(), value);
            rest = behind.strip_prefix(',').unwrap_or(behind);
        }
        rest = &rest[1..];
    }
    // A timestamp may follow; it is ignored.
    let value = rest.split_whitespace().next()?.parse().ok()?;
    (!name.is_empty()).then_some((name, Sample { labels, value }))
}

/// Returns the text up to a closing quote, and the rest after it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            other => value.push(other),
        }
    }
    None
}

/// Scrapes a server; returns a description of the error on failure.
pub fn scrape(address: SocketAddr) -> Result<Scrape, String> {
    let in_words = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT).map_err(in_words)?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(in_words)?;
    stream.set_write_timeout(Some(TIMEOUT)).map_err(in_words)?;
    write!(
        stream,
        "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )
    .map_err(in_words)?;
    let mut answer = String::new();
    stream
        .take(MAX_ANSWER)
        .read_to_string(&mut answer)
        .map_err(in_words)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("not an HTTP response")?;
    match head.split(' ').nth(1) {
        Some("200") => Scrape::read(body, Instant::now()),
        _ => Err(head.lines().next().unwrap_or_default().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_read() {
        let text = "# HELP a Some.\n# TYPE a counter\na 1\nb{x=\"1\",y=\"q\\\"\\\\\\n,}\"} 2.5e3 1700000000\nb{} +Inf\n";
        let scrape = Scrape::read(text, Instant::now()).expect("metrics");
        assert_eq!(scrape.one("a"), Some(1.0));
        assert_eq!(scrape.all("b")[0].label("y"), "q\"\\\n,}");
        assert_eq!(scrape.labelled("b", "x", "1"), Some(2500.0));
        assert_eq!(scrape.all("b")[1].value, f64::INFINITY);
        for wrong in ["a", "a x", "{} 1", "a{b} 1", "a{b=\"c} 1", "a{b=\"c\"", "é"] {
            Scrape::read(wrong, Instant::now()).expect_err(wrong);
        }
    }
}
