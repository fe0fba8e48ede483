//! Exercises the server: a separate program, to which users send requests over both protocols, and which is stopped and
//! killed.
//!
//! Each user has a connection of each protocol. Its keys lie among those of other users in the database that both
//! protocols share, and it has a Redis database of its own. So it knows the answer to each of its requests, and the
//! content of its keys after each start: that of all answered requests, and of a prefix of the unanswered ones, or of
//! any subset of those that the server may execute as a group.
//!
//! | file | idea |
//! |---|---|
//! | `process` | the server |
//! | `wire` | connections |
//! | `reply` | answers, and expected answers |
//! | `truth` | a user's knowledge of its keys |
//! | `step` | a request, its answers, its changes |
//! | `memcached`, `meta`, `redis` | requests, drawn at random |
//! | `edits` | changes that `memcached` and `meta` share |
//! | `user` | sends requests and compares the answers |
//! | `settle` | compares the content after a start |
//! | `round` | start, users, end |

mod edits;
mod memcached;
mod meta;
mod process;
mod redis;
mod reply;
mod round;
mod settle;
mod step;
mod truth;
mod user;
mod wire;

use crate::random::Random;
use crate::{Failure, Report, Settings};
use round::{End, Exercise, remove};
use std::path::Path;
use std::time::{Duration, Instant};

/// Upper bound on any wait for the server; beyond it the server counts as hung.
const PATIENCE: Duration = Duration::from_secs(60);

/// Maximum number of users: a key's owner has three bits, and number 0 is left out because its paths would end in a
/// blank, which separates the words of a memcached command.
pub(crate) const MAX_USERS: usize = crate::keys::MAX_THREADS - 1;

/// Exercises servers over pool after pool until the time or the number of calls is used up.
pub(crate) fn run(
    settings: &Settings,
    program: &Path,
    mut progress: impl FnMut(&Report),
) -> Result<Report, Failure> {
    let started = Instant::now();
    let mut report = Report::default();
    for seed in settings.seed.. {
        let random = &mut Random::new(seed, 10 << 32);
        let users = match settings.threads {
            0 => 1 + random.index(4),
            users => users.min(MAX_USERS),
        };
        remove(&settings.directory);
        let mut exercise = Exercise::new(seed, users, &settings.kinds, program, &settings.directory);
        report.pools += 1;
        let before = report.clone();
        let rounds = 3 + random.below(8);
        for round in 1..=rounds {
            let longest = random.pick(&[30, 300, 1000]);
            let patience = Duration::from_millis(random.below(longest));
            let turns = random.pick(&[10, 100, 300]);
            let end = match random.below(8) {
                // The last round reads what the one before it has left.
                _ if round == rounds => End::Idle(turns),
                0..4 => End::Kill(patience),
                4 => End::Stop(patience),
                5 | 6 => End::Idle(turns),
                _ => End::Restore(turns),
            };
            let done = exercise.round(round, end);
            done.map_err(|what| Failure {
                seed,
                round,
                pool: exercise.pool(),
                what,
            })?;
            report.openings += 1;
            report.kills += u64::from(matches!(end, End::Kill(_)));
            let called = exercise.calls();
            report.calls = before.calls + called.total();
            report.called = before.called.clone();
            report.called.join(&called);
            report.indexes = before.indexes.clone();
            report.indexes.add_many(exercise.kind.name(), called.total());
            report.refused = before.refused + exercise.users.iter().map(|user| user.refused).sum::<u64>();
            report.seconds = started.elapsed().as_secs_f64();
            progress(&report);
            if report.calls >= settings.calls || started.elapsed() >= settings.budget {
                remove(&settings.directory);
                return Ok(report);
            }
        }
    }
    Ok(report)
}
