//! Omits each sync in turn, to see whether its absence is detected.

use crate::bounds::{Bounds, Report};
use crashkit::disk::Site;

/// The outcome of omitting one sync.
#[derive(Debug)]
pub struct SyncFate {
    /// The source location that calls the sync.
    pub site: Site,
    /// The failure that its absence caused; `None`: it was not detected.
    pub found: Option<String>,
}

/// Runs `torture` once unchanged, to collect the syncs that it calls, and then once without each of them, each run
/// within the bounds. Passes each outcome to `report` as it becomes known, and returns all of them.
///
/// # Errors
///
/// The failure of the unchanged run.
pub fn hunt(
    bounds: &Bounds,
    torture: impl Fn(&Bounds) -> Result<Report, String>,
    mut report: impl FnMut(&SyncFate),
) -> Result<Vec<SyncFate>, String> {
    let sound = torture(bounds)?;
    let hunted = sound.sync_sites.into_iter().map(|site| {
        let skip = Some(site);
        // Some omissions do damage that shows only after further crashes.
        let found = torture(&Bounds {
            skip,
            again: 6,
            ..bounds.clone()
        });
        let fate = SyncFate {
            site,
            found: found.err(),
        };
        report(&fate);
        fate
    });
    Ok(hunted.collect())
}
