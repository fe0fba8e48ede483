//! Why a run or a judgement failed.

use std::fmt;

/// Why a run or a judgement failed.
#[derive(Debug)]
pub enum Trouble {
    /// The database returned an error.
    Refused(wollemi::Error),
    /// The database holds or answers something wrong.
    Wrong(String),
}

impl From<wollemi::Error> for Trouble {
    fn from(error: wollemi::Error) -> Trouble {
        Trouble::Refused(error)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Refused(error) => write!(f, "the database returned an error: {error}"),
            Trouble::Wrong(what) => what.fmt(f),
        }
    }
}
