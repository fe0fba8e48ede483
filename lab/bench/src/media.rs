//! The media that a run stores through, and what an emulation of persistent memory on DRAM does and does not show.

use clap::ValueEnum;
use pmem::Latency;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// The media that a timed run's stores pass through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MediaKind {
    /// The machine itself, with every write-back and fence that persistent memory needs.
    Native,
    /// The machine without write-backs and fences, as for pools in ordinary files and memory.
    Process,
    /// The machine, counting write-backs and fences.
    Counting,
    /// The machine, with each fence delayed as the preset says.
    Delay,
}

impl MediaKind {
    /// Returns what a run on this media cannot show, for the report.
    pub fn caveat(self) -> Option<&'static str> {
        match self {
            MediaKind::Native => None,
            MediaKind::Process => {
                Some("without write-backs and fences: survives the end of the process, not power loss")
            }
            MediaKind::Counting => Some("counting slows the timed calls"),
            MediaKind::Delay => Some(
                "the delay models write latency at the fence only: not slower reads, the bandwidth that cores share, \
                 write-backs that overlap with work before the fence, the module's buffer and prefetcher, its wear \
                 levelling, or remote access",
            ),
        }
    }
}

/// The delay added to each fence, by a preset's name or in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delay {
    name: String,
    /// The added latency.
    pub latency: Latency,
}

/// The presets: name, added latency, and description.
const PRESETS: &[(&str, Latency, &str)] = &[
    (
        "dram",
        Latency {
            fence_ns: 0,
            line_ns: 0,
            block_ns: 0,
        },
        "no delay: memory as fast as DRAM",
    ),
    ("optane", Latency::OPTANE, "Optane DC, one thread on one module"),
    ("roart", Latency::OPTANE, "as optane: ROART §4.1 ran on it"),
    ("recipe", Latency::OPTANE, "as optane: RECIPE §7 ran on it"),
    ("dptree", Latency::OPTANE, "as optane: DPTree §4.1 ran on it"),
    (
        "wort-300",
        Latency {
            fence_ns: 0,
            line_ns: 200,
            block_ns: 0,
        },
        "WORT §4: each write-back 300 ns where DRAM takes 100",
    ),
    (
        "wort-500",
        Latency {
            fence_ns: 0,
            line_ns: 400,
            block_ns: 0,
        },
        "as wort-300, 500 ns",
    ),
    ("cxl", Latency::CXL, "battery-backed memory behind CXL"),
];

impl Default for Delay {
    fn default() -> Delay {
        Delay {
            name: "optane".into(),
            latency: Latency::OPTANE,
        }
    }
}

impl Delay {
    /// Lists the presets, for the help text.
    pub fn presets() -> String {
        let line = |(name, latency, about): &(&str, Latency, &str)| {
            let Latency {
                fence_ns,
                line_ns,
                block_ns,
            } = latency;
            format!("{name}: {about} (fence={fence_ns},line={line_ns},block={block_ns})")
        };
        PRESETS.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

impl FromStr for Delay {
    type Err = String;
    fn from_str(text: &str) -> Result<Delay, String> {
        let name = text.to_owned();
        if let Some(&(_, latency, _)) = PRESETS.iter().find(|(preset, ..)| *preset == text) {
            return Ok(Delay { name, latency });
        }
        let mut latency = Latency::default();
        for part in text.split(',') {
            let wrong = || {
                let names: Vec<&str> = PRESETS.iter().map(|(name, ..)| *name).collect();
                format!("not one of {}, nor fence=NS,line=NS,block=NS", names.join(", "))
            };
            let (what, ns) = part.split_once('=').ok_or_else(wrong)?;
            let ns = ns.parse().map_err(|_| wrong())?;
            match what {
                "fence" => latency.fence_ns = ns,
                "line" => latency.line_ns = ns,
                "block" => latency.block_ns = ns,
                _ => return Err(wrong()),
            }
        }
        Ok(Delay { name, latency })
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delays are parsed by preset name or by parts; anything else is rejected.
    #[test]
    fn delays_are_read() {
        let optane = "optane".parse::<Delay>().unwrap();
        assert_eq!((optane.latency, &optane), (Latency::OPTANE, &Delay::default()));
        let own = "fence=10,block=3".parse::<Delay>().unwrap();
        let expected = Latency {
            fence_ns: 10,
            line_ns: 0,
            block_ns: 3,
        };
        assert_eq!(
            (own.latency, own.to_string()),
            (expected, "fence=10,block=3".to_owned())
        );
        for text in ["", "quartz", "fence", "fence=x", "page=1", "fence=-1"] {
            assert!(text.parse::<Delay>().is_err(), "{text}");
        }
    }
}
