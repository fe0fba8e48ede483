//! A process that opens the image and is killed: it writes, merges, makes and drops maps and recovers, but does not
//! change the content of the image's maps. So the content of the file after a kill at any moment is known.

use super::SPEC;
use super::acts::failed;
use super::image::Image;
use crate::random::Random;
use crate::worker::Wrong;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use wollemi::{Db, IndexKind};

/// The process ends by itself after this time: its parent, which was to kill it, is gone.
const MAX_LIFETIME: Duration = Duration::from_secs(60);

/// Starts a process that churns the image, and kills it after a random time.
pub(super) fn kill(
    image: &Image,
    round: u64,
    kinds: &[IndexKind],
    child: fn(&str) -> Command,
) -> Result<(), Wrong> {
    let failed = |error: std::io::Error| error.to_string();
    let kinds: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
    let directory = image.path();
    let directory = directory.parent().unwrap_or(Path::new("."));
    let spec = format!(
        "{SPEC} {} {round} {} {}",
        image.seed,
        kinds.join(","),
        directory.display()
    );
    let random = &mut Random::new(image.seed, 22 << 32 | round);
    let patience = Duration::from_micros(random.below(random.clone().pick(&[20_000, 100_000, 400_000])));
    let mut child = child(&spec)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    std::thread::sleep(patience);
    let ended = child.try_wait().map_err(failed)?;
    // The process may have ended meanwhile.
    let _ = child.kill();
    let output = child.wait_with_output().map_err(failed)?;
    match ended {
        None => Ok(()),
        Some(status) => Err(format!(
            "the process that was to be killed ended by itself, {status}: {}",
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

/// Churns the image until the process is killed. `spec` is the child's text without its first word.
pub(crate) fn be_killed(spec: &str) -> Result<(), Wrong> {
    let mut words = spec.splitn(4, ' ');
    let mut word = || words.next().ok_or_else(|| format!("not a churn: '{spec}'"));
    let number = |word: &str| word.parse::<u64>().map_err(|error| format!("{word}: {error}"));
    let (seed, round) = (number(word()?)?, number(word()?)?);
    let kinds: Result<Vec<IndexKind>, _> = word()?.split(',').map(str::parse).collect();
    let kinds = kinds.map_err(|error| error.to_string())?;
    let image = &Image::new(seed, &kinds, Path::new(word()?));
    let random = &mut Random::new(seed, 23 << 32 | round);
    let options = image.options().recovery_threads(random.pick(&[0, 1, 2, 4]));
    let db = &options.open(image.path()).map_err(failed)?;
    let until = Instant::now() + MAX_LIFETIME;
    let continues = move || Instant::now() < until;
    let (writes, drops) = (random.next(), random.next());
    std::thread::scope(|scope| {
        let writer = scope.spawn(move || rewrite(db, image, &mut Random::new(writes, 0), continues));
        let dropper =
            scope.spawn(move || make_and_drop_maps(db, image, &mut Random::new(drops, 0), continues));
        while continues() {
            db.recover();
            db.give_back().map_err(failed)?;
            if writer.is_finished() || dropper.is_finished() {
                break;
            }
        }
        for thread in [writer, dropper] {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        Err("the process was not killed in time".to_owned())
    })
}

/// Upserts runs of keys with the values that they already have.
fn rewrite(db: &Db, image: &Image, random: &mut Random, continues: impl Fn() -> bool) -> Result<(), Wrong> {
    while continues() {
        let slot = random.index(image.maps.len());
        let plan = &image.maps[slot];
        let map = db.map(&plan.name).map_err(failed)?;
        let first = random.index(plan.keys.len());
        let run = random.pick(&[1, 100, 10_000]);
        for n in first..(first + run).min(plan.keys.len()) {
            map.upsert(&plan.keys[n], image.value(slot, n).bytes())
                .map_err(failed)?;
        }
    }
    Ok(())
}

/// Makes and drops scratch maps.
fn make_and_drop_maps(
    db: &Db,
    image: &Image,
    random: &mut Random,
    continues: impl Fn() -> bool,
) -> Result<(), Wrong> {
    while continues() {
        // A kill may have left the map, with another index.
        let name = format!("scratch {}", random.below(3));
        db.drop_map(&name).map_err(failed)?;
        let map = db.map_with(&name, random.pick(&image.kinds)).map_err(failed)?;
        let keys = image.maps[0].keys.iter();
        map.load(keys.take(random.pick(&[10, 1_000, 9_000])).map(|key| (key, key)))
            .map_err(failed)?;
        drop(map);
        if random.one_in(2) {
            db.drop_map(&name).map_err(failed)?;
        }
    }
    Ok(())
}
