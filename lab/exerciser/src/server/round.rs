//! A round: starts the server, compares its content, lets users send requests, and ends the server.

use super::process::{BACKUP, LOG, MEMCACHED_SOCKET, REDIS_SOCKET, Server};
use super::reply::Reply;
use super::settle::settle;
use super::user::{Session, Stop, User};
use super::wire::{Connection, Protocol};
use crate::calls::Calls;
use crate::random::Random;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
use wollemi::{Db, Error, IndexKind, Options};

/// A served pool, and its users.
pub(super) struct Exercise {
    pub users: Vec<User>,
    seed: u64,
    program: PathBuf,
    directory: PathBuf,
    pub kind: IndexKind,
    max_size: Option<u64>,
}

/// How a round ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// By `kill -9` after this time, during requests.
    Kill(Duration),
    /// By SIGTERM after this time, during requests.
    Stop(Duration),
    /// By SIGTERM, after this number of turns of each user.
    Idle(u64),
    /// The same, after a backup, which then replaces the pool.
    Restore(u64),
}

impl Exercise {
    pub fn new(seed: u64, users: usize, kinds: &[IndexKind], program: &Path, directory: &Path) -> Exercise {
        let random = &mut Random::new(seed, 7 << 32);
        // A full pool refuses requests. Users then send one request at a time, because the next one depends on whether
        // the server has refused it.
        let max_size = random.one_in(4).then(|| (6 << 20) + random.below(6 << 20));
        let kind = random.pick(kinds);
        let pipeline = if max_size.is_some() { 1 } else { 100 };
        Exercise {
            users: (1..=users)
                .map(|number| User::new(number, seed, pipeline, kind.is_ordered()))
                .collect(),
            seed,
            program: program.to_owned(),
            directory: directory.to_owned(),
            kind,
            max_size,
        }
    }

    pub fn pool(&self) -> PathBuf {
        self.directory.join("exercise.pool")
    }

    /// Counts the answered requests of each command.
    pub fn calls(&self) -> Calls {
        let mut all = Calls::default();
        self.users.iter().for_each(|user| all.join(&user.calls));
        all
    }

    fn start(&self, random: &mut Random) -> Result<Server, String> {
        let mut arguments = vec![
            "--index".to_owned(),
            self.kind.name().to_owned(),
            "--recovery-threads".to_owned(),
            random.pick(&[1, 2, 4]).to_string(),
            "--threads".to_owned(),
            random.pick(&[1, 2, 3]).to_string(),
        ];
        if let Some(bytes) = self.max_size {
            arguments.extend(["--max-size".to_owned(), bytes.to_string()]);
        }
        Server::start(&self.program, &self.directory, &self.pool(), &arguments)
    }

    /// Runs a round of the server.
    pub fn round(&mut self, round: u64, end: End) -> Result<(), String> {
        let random = &mut Random::new(self.seed, 8 << 32 | round);
        let mut server = self.start(random)?;
        let done = self.ask(&server, round, random);
        done.map_err(|wrong| format!("{wrong}{}", server.log()))?;
        let turns = match end {
            End::Idle(turns) | End::Restore(turns) => turns,
            End::Kill(_) | End::Stop(_) => u64::MAX,
        };
        let (ending, ended) = (&AtomicBool::new(false), &AtomicBool::new(false));
        let mut sessions = Vec::new();
        for user in &mut self.users {
            let of_user = Random::new(self.seed, 9 << 32 | round << 8 | user.number as u64);
            let session = Session::new(user, of_user, |protocol, random| server.connect(protocol, random));
            sessions.push(session.map_err(|stop| format!("a connection: {stop:?}{}", server.log()))?);
        }
        let work = |mut session: Session<'_>| {
            let done = (0..turns).try_for_each(|_| match ended.load(SeqCst) {
                // Another user has failed.
                true => Err(Stop::Ended(String::new())),
                false => session.turn(),
            });
            if let Err(Stop::Wrong(_)) = done {
                ended.store(true, SeqCst);
            }
            // A connection that fails while the server ends is no failure of the server.
            done.map_err(|stop| (stop, ending.load(SeqCst)))
        };
        let (answers, stopped) = std::thread::scope(|scope| {
            let threads: Vec<_> = sessions
                .into_iter()
                .map(|session| scope.spawn(|| work(session)))
                .collect();
            let stopped = match end {
                End::Kill(patience) | End::Stop(patience) => {
                    std::thread::sleep(patience);
                    let alive = !server.has_ended();
                    ending.store(true, SeqCst);
                    match (alive, end) {
                        (false, _) => Some(Err(format!("the server has ended by itself{}", server.log()))),
                        (true, End::Kill(_)) => Some(server.kill()),
                        (true, _) => Some(server.stop()),
                    }
                    .map(|stopped| (stopped, None))
                }
                End::Idle(_) | End::Restore(_) => Some((Ok(()), Some(server))),
            };
            let answers: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
            (answers, stopped)
        });
        for (answer, user) in answers.into_iter().zip(&self.users) {
            let of_user = |wrong: String| {
                let (number, recent) = (user.number, user.recent());
                format!("user {number}: {wrong}\n  the requests answered last:{recent}")
            };
            match answer.map_err(|_| "a thread panicked".to_owned())? {
                Ok(()) | Err((Stop::Ended(_), true)) => {}
                Err((Stop::Wrong(wrong), _)) => return Err(of_user(wrong)),
                Err((Stop::Ended(_), false)) if ended.load(SeqCst) => {}
                Err((Stop::Ended(error), false)) => {
                    return Err(of_user(format!("the server has ended the connection: {error}")));
                }
            }
        }
        if let Some((stopped, server)) = stopped {
            stopped?;
            if let Some(server) = server {
                self.stop(server, end, random)?;
            }
        }
        self.check(matches!(end, End::Kill(_)))
    }

    /// Compares the server's content with the users' truths, and sometimes flushes the shared database or all of them.
    fn ask(&mut self, server: &Server, round: u64, random: &mut Random) -> Result<(), String> {
        let failed = |stop: Stop| match stop {
            Stop::Wrong(wrong) => wrong,
            Stop::Ended(error) => format!("the server has ended the connection: {error}"),
        };
        let mut connect = |protocol| {
            server
                .connect(protocol, random)
                .map_err(|error| error.to_string())
        };
        let mut memcached = connect(Protocol::Memcached)?;
        let mut redis = connect(Protocol::Redis)?;
        for user in &mut self.users {
            let settled = settle(user, &mut memcached, &mut redis);
            settled.map_err(|stop| {
                let (number, recent) = (user.number, user.recent());
                format!(
                    "user {number}: {}\n  the requests answered last:{recent}",
                    failed(stop)
                )
            })?;
        }
        if random.one_in(6) && round > 1 {
            let (connection, request, databases): (_, &[u8], _) = match random.one_in(2) {
                true => (&mut memcached, b"flush_all\r\n", 0..1),
                false => (&mut redis, b"FLUSHALL\r\n", 0..2),
            };
            let answer = ask(connection, request)?;
            if answer != Reply::line("OK") {
                return Err(format!("{}: answer {answer:?}", request.escape_ascii()));
            }
            for user in &mut self.users {
                for database in databases.clone() {
                    for n in 0..user.keys.all.len() {
                        user.truth.set((database, n), None);
                    }
                }
            }
        }
        Ok(())
    }

    /// Stops a server that has answered all requests, after a backup if the round ends by a restore.
    fn stop(&self, server: Server, end: End, random: &mut Random) -> Result<(), String> {
        let restores = matches!(end, End::Restore(_));
        if restores {
            let mut redis = server
                .connect(Protocol::Redis, random)
                .map_err(|error| error.to_string())?;
            let answer = ask(&mut redis, b"SAVE\r\n")?;
            // A backup that a user has requested may be under way.
            let busy = Reply::error("ERR Background save already in progress");
            if answer == busy {
                return server.stop();
            }
            if answer != Reply::line("OK") {
                return Err(format!("SAVE: answer {answer:?}{}", server.log()));
            }
        }
        server.stop()?;
        if restores {
            self.restore()?;
        }
        Ok(())
    }

    /// Replaces the pool with the backup, unless that does not fit.
    fn restore(&self) -> Result<(), String> {
        let other = self.pool().with_extension("other");
        // It may not exist.
        let _ = std::fs::remove_file(&other);
        let backup = File::open(self.directory.join(BACKUP)).map_err(|error| error.to_string())?;
        let restored = || -> Result<(), Error> {
            let db = self.options().open(&other)?;
            db.restore(&mut BufReader::new(backup), |_| {})?;
            Ok(())
        };
        match restored() {
            Err(error) if self.max_size.is_some() && error.to_string().contains("is full") => {
                std::fs::remove_file(&other).map_err(|error| error.to_string())
            }
            Err(error) => Err(format!("the backup cannot be restored: {error}")),
            Ok(()) => std::fs::rename(&other, self.pool()).map_err(|error| error.to_string()),
        }
    }

    fn options(&self) -> Options {
        let options = Options::new();
        match self.max_size {
            Some(bytes) => options.max_size(bytes),
            None => options,
        }
    }

    /// Checks the pool; after a kill a copy of it, so that the next server recovers the pool.
    fn check(&self, killed: bool) -> Result<(), String> {
        let mut pool = self.pool();
        if killed {
            let copy = pool.with_extension("checked");
            std::fs::copy(&pool, &copy).map_err(|error| error.to_string())?;
            pool = copy;
        }
        let db: Db = self.options().open(&pool).map_err(|error| error.to_string())?;
        let check = db.check().map_err(|error| error.to_string())?;
        drop(db);
        if !check.is_clean() {
            return Err(format!("check finds in '{}': {check:?}", pool.display()));
        }
        if killed {
            std::fs::remove_file(pool).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

fn ask(connection: &mut Connection, request: &[u8]) -> Result<Reply, String> {
    let answer = connection.send(request).and_then(|()| connection.receive());
    answer.map_err(|error| format!("{}: {error}", request.escape_ascii()))
}

/// Removes the files of servers from the directory.
pub(super) fn remove(directory: &Path) {
    for name in [
        "exercise.pool",
        "exercise.other",
        "exercise.checked",
        LOG,
        BACKUP,
        MEMCACHED_SOCKET,
        REDIS_SOCKET,
    ] {
        // It may not exist.
        let _ = std::fs::remove_file(directory.join(name));
    }
}
