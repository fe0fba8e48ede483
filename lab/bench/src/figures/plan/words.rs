//! What is said of each figure, by the papers and by us: `papers.toml`, which is part of the program.

use super::{At, Claim, Figure, Maker, Panel, Said};
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::LazyLock;

/// The file.
#[derive(Deserialize)]
struct Words {
    reason: HashMap<String, String>,
    figure: HashMap<String, About>,
}

/// What is said of a figure.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    title: String,
    #[serde(default)]
    ours: bool,
    paper: String,
    differs: String,
    #[serde(default)]
    claims: Vec<Line>,
}

/// A claim, as a line has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    panel: usize,
    at: String,
    of: String,
    to: Option<String>,
    to_at: Option<String>,
    says: String,
    source: String,
    why: String,
    /// How many cores it needs.
    #[serde(default)]
    cores: usize,
}

static WORDS: LazyLock<Words> = LazyLock::new(|| {
    // A test reads it, so that no program is made of one that cannot be read.
    toml::from_str(include_str!("papers.toml")).expect("papers.toml")
});

impl Words {
    /// The reason of this name; a text that is no name stands for itself.
    fn reason<'w>(&'w self, text: &'w str) -> &'w str {
        self.reason.get(text).map_or(text, |reason| reason)
    }
}

impl Line {
    fn claim(&'static self, panels: &[Panel]) -> Claim {
        let place = |place: &str| match place {
            "last" => {
                let last = panels.get(self.panel).and_then(|panel| panel.points.last());
                last.map_or_else(String::new, |point| point.place.clone())
            }
            place => place.to_owned(),
        };
        let at = |series: &'static str, at: &str| At {
            series,
            place: place(at),
        };
        let (series, place) = (self.to.as_deref(), self.to_at.as_deref());
        let is_ratio = series.is_some() || place.is_some();
        Claim {
            panel: self.panel,
            of: at(&self.of, &self.at),
            to: is_ratio.then(|| at(series.unwrap_or(&self.of), place.unwrap_or(&self.at))),
            paper: Said::read(&self.says),
            source: &self.source,
            why: WORDS.reason(&self.why),
        }
    }
}

impl Maker {
    /// The figure of this name, which `papers.toml` has (a test asks for each), made of these panels.
    pub(super) fn figure(&self, id: &'static str, panels: Vec<Panel>) -> Figure {
        let about = &WORDS.figure[id];
        let possible = about.claims.iter().filter(|line| line.cores <= self.cores);
        Figure {
            id,
            title: &about.title,
            ours: about.ours,
            paper: &about.paper,
            claims: possible.map(|line| line.claim(&panels)).collect(),
            differs: WORDS.reason(&about.differs),
            panels,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::plan::{Scale, figures};

    /// What is said is of figures that there are, and no reason is for nothing.
    #[test]
    fn words_are_used() {
        let figures = figures(Scale::Paper, 64);
        for id in WORDS.figure.keys() {
            let peers = ["peers", "restart"].contains(&id.as_str()) && !cfg!(feature = "peers");
            assert!(peers || figures.iter().any(|figure| figure.id == id), "{id}");
        }
        let abouts = || WORDS.figure.values();
        let lines = || abouts().flat_map(|about| &about.claims);
        for name in WORDS.reason.keys() {
            let used = lines().any(|line| line.why == *name) || abouts().any(|about| about.differs == *name);
            assert!(used, "{name}");
        }
        for line in lines() {
            assert!(WORDS.reason.contains_key(&line.why), "{}", line.why);
        }
    }
}
