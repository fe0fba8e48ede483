//! The build and the date of a run.

use serde::Serialize;

/// The commit and the date of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Build {
    /// The date in UTC.
    pub date: String,
    /// The commit that the program was built from; `-dirty` marks uncommitted changes.
    pub commit: String,
}

impl Build {
    /// Returns the commit of this program and today's date.
    pub fn now() -> Build {
        Build {
            date: today(),
            commit: env!("WOLLEMI_COMMIT").into(),
        }
    }
}

/// Returns the date in UTC.
fn today() -> String {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    date(since.as_secs() / 86_400)
}

/// Returns the date `days` days after 1 January 1970 (in 400-year eras whose years begin in March).
fn date(days: u64) -> String {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Day numbers convert to dates, leap days included.
    #[test]
    fn dates() {
        for (days, expected) in [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (20_778, "2026-11-21"),
        ] {
            assert_eq!(date(days), expected);
        }
    }
}
