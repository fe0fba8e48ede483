//! The removal of a log, amid which the power fails.

use super::truth::{ID, options};
use crashkit::Random;
use crashkit::disk::{CrashDisk, Medium, Site, images};
use log::{Change, Log};
use std::sync::Arc;

/// Maximum number of images at each crash point.
const IMAGES: usize = 1000;

/// Removes a log that has spares, and omits the given sync. Spares without a segment, which would tell whose they are,
/// must not be left.
///
/// # Errors
///
/// The names that a loss of power leaves, or an error of the log.
pub fn judge(skip: Option<Site>) -> Result<(), String> {
    let base = with_spares().map_err(|error| error.to_string())?;
    let disk = CrashDisk::new(base.clone());
    disk.skip(skip);
    Log::remove(&disk).map_err(|error| error.to_string())?;
    let (mut left, mut random) = (base, Random(1));
    for event in disk.events() {
        left.apply(&event);
        for picks in images(&left.choices(), IMAGES, &mut random) {
            let names = left.image(&picks).names();
            let any = |prefix| names.iter().any(|name| name.starts_with(prefix));
            if any("spare-") && !any("log-") {
                return Err(format!(
                    "power cut amid a removal: spares without a segment: {names:?}"
                ));
            }
        }
    }
    Ok(())
}

/// Returns what a killed process leaves of a log with spares.
fn with_spares() -> Result<Medium, log::Error> {
    let disk = CrashDisk::new(Medium::new());
    let log = Log::create(Arc::new(disk.clone()), ID, options())?;
    for _ in 0..20 {
        let value = &[7; 1500];
        let end = log.append(&[Change::Put {
            map: "m",
            key: b"key",
            value,
        }])?;
        log.wait_durable(end)?;
    }
    log.drop_below(log.durable())?;
    drop(log);
    let mut left = Medium::new();
    disk.events().iter().for_each(|event| _ = left.apply(event));
    Ok(left.killed(None, &mut Random(1)))
}
