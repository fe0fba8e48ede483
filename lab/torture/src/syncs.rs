//! Omitted syncs: is the absence of each detected?

use crate::bounds::{Bounds, Report};
use crashkit::disk::Site;

/// What became of a subject that leaves out one sync.
#[derive(Debug)]
pub struct Fate {
    /// Where the sync is called.
    pub site: Site,
    /// What was wrong, if anything was found.
    pub found: Option<String>,
}

/// Leaves out each sync in turn that what is sound calls, tortures that, within the bounds each, and tells what became
/// of it.
///
/// # Errors
///
/// The failure of what is sound.
pub fn hunt(
    bounds: &Bounds,
    torture: impl Fn(&Bounds) -> Result<Report, String>,
    mut tell: impl FnMut(&Fate),
) -> Result<Vec<Fate>, String> {
    let sound = torture(bounds)?;
    let hunted = sound.sync_sites.into_iter().map(|site| {
        let skip = Some(site);
        // What some of them spoil shows only after further crashes.
        let found = torture(&Bounds {
            skip,
            again: 6,
            ..bounds.clone()
        });
        let fate = Fate {
            site,
            found: found.err(),
        };
        tell(&fate);
        fate
    });
    Ok(hunted.collect())
}
