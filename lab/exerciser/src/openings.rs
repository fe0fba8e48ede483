//! Openings: short rounds over large maps, in which every operation that may free an object meets the recovery that
//! follows an opening.
//!
//! The removal of a map needs several guards only if the map has more than some hundreds of objects, and only maps of
//! thousands of keys are merged or release pages. Such maps take long to make, so they are made once, as an [`Image`]:
//! a file that each round copies. A round opens its copy and, from several threads at once, drops maps, makes others of
//! the same name, recovers, gives pages back, merges (where DPTree holds a map, by writing), checks and writes. Then
//! every key is compared, and the pool is checked: the check also finds objects that were freed twice.
//!
//! | file | idea |
//! |---|---|
//! | `image` | the pool that rounds copy, and the content of its maps |
//! | `acts` | the acts of a thread, and their changes |
//! | `round` | distributing acts to threads, opening, comparison |
//! | `churn` | a process that works without changing the maps' content, until it is killed |

mod acts;
mod churn;
mod image;
mod round;

use crate::random::Random;
use crate::{Failure, Report, Settings};
use image::Image;
use std::path::PathBuf;
use std::time::Instant;

pub(crate) use churn::be_killed;

/// The first word of a child's text that makes it churn the image.
pub(crate) const SPEC: &str = "openings";

/// Each round whose number is a multiple of this begins with a kill, which changes the image.
const ROUNDS: u64 = 8;
/// The kills of an image before its last round, which begins with one more.
const KILLS: u64 = 4;

/// Exercises openings until the time or the number of calls is used up.
pub(crate) fn run(settings: &Settings, mut progress: impl FnMut(&Report)) -> Result<Report, Failure> {
    let started = Instant::now();
    let mut report = Report::default();
    for seed in settings.seed.. {
        let image = Image::new(seed, &settings.kinds, &settings.directory);
        let failure = |round, pool: PathBuf, what| Failure {
            seed,
            round,
            pool,
            what,
        };
        image.remove();
        image.create().map_err(|what| failure(0, image.path(), what))?;
        report.pools += 1;
        for round in 1..=ROUNDS * (KILLS + 1) {
            if let Some(child) = settings.child.filter(|_| round % ROUNDS == 0) {
                let killed = churn::kill(&image, round, &settings.kinds, child);
                killed.map_err(|what| failure(round, image.path(), what))?;
                report.kills += 1;
            }
            let random = &mut Random::new(seed, 20 << 32 | round);
            let done = round::run(&image, settings.threads, random);
            let done = done.map_err(|what| failure(round, image.copy_path(), what))?;
            report.openings += done.openings;
            report.calls += done.calls.total();
            report.refused += done.refused;
            report.called.join(&done.calls);
            report.indexes.join(&done.indexes);
            report.seconds = started.elapsed().as_secs_f64();
            progress(&report);
            if report.calls >= settings.calls || started.elapsed() >= settings.budget {
                image.remove();
                return Ok(report);
            }
        }
    }
    Ok(report)
}
