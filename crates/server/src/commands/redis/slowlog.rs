//! `SLOWLOG`.

use super::catalogue::{Command, find};
use super::context::{Context, Done, Wrong};
use super::dispatch::no_subcommand;
use super::help::help;
use super::parse::Args;
use crate::items::number;
use crate::ops::latency;

pub fn slowlog(context: &mut Context<'_>, args: Args<'_>) -> Done {
    match (args.get(1).to_ascii_lowercase().as_slice(), args.len()) {
        (b"get", 2..=3) => {
            let max = match args.len() {
                2 => 10,
                _ => max(number::strict(args.get(2)))?,
            };
            let newest = context.shared().slow.newest(max);
            let reply = &mut context.reply;
            reply.array(newest.len());
            for slow in newest {
                reply.array(6);
                reply.int(slow.id as i64);
                reply.int(slow.time as i64);
                reply.int(slow.took.as_micros() as i64);
                reply.array(slow.words.len());
                slow.words.iter().for_each(|word| reply.bulk(word));
                reply.bulk(slow.peer.as_bytes());
                reply.bulk(slow.name.as_bytes());
            }
        }
        (b"len", 2) => {
            let count = context.shared().slow.count();
            context.reply.int(count as i64);
        }
        (b"reset", 2) => {
            context.shared().slow.reset();
            context.reply.ok();
        }
        (b"get", _) => {
            let before = "ERR unknown subcommand or wrong number of arguments for '";
            return Err(Wrong::with(before, args.get(1), "'. Try SLOWLOG HELP."));
        }
        (b"help", 2) => help(context, "slowlog")?,
        _ => return Err(no_subcommand("slowlog", args)),
    }
    Ok(())
}

/// How many are asked for; -1: all.
fn max(count: Option<i64>) -> Result<usize, &'static str> {
    match count {
        Some(-1) => Some(usize::MAX),
        Some(count) => usize::try_from(count).ok(),
        None => None,
    }
    .ok_or("ERR count should be greater than or equal to -1")
}

impl Context<'_> {
    /// Notes what commands that were carried out together have taken, which the client called so: `GET`s of these keys,
    /// or `SET`s, with their data.
    pub fn timed_together(&self, name: &[u8], keys: &[&[u8]], data: &[&[u8]]) {
        let Some(command) = find(name) else {
            return;
        };
        self.client.note_command(command.number);
        let took = self.worker.lap();
        let timed = command.timed();
        if self.worker.took(timed, took, keys.len() as u64) {
            let mut words = vec![name];
            for (i, key) in keys.iter().enumerate() {
                words.push(key);
                words.extend(data.get(i));
            }
            let slow = &self.shared().slow;
            slow.note(timed, took, self.now, self.client, words.into_iter());
        }
    }

    /// Notes what a command that is done has taken.
    pub fn timed(&mut self, command: &Command, args: Args<'_>) {
        let took = self.worker.lap() + std::mem::take(&mut self.state.walked);
        let timed = command.timed();
        if self.worker.took(timed, took, 1) {
            // What may hold a password is not kept.
            let secret = matches!(command.name, "auth" | "hello");
            let mut words: Vec<&[u8]> = args.from(0).collect();
            if secret && words.len() > 1 {
                words.truncate(1);
                words.push(b"(redacted)");
            }
            let slow = &self.shared().slow;
            slow.note(timed, took, self.now, self.client, words.into_iter());
        }
    }
}

impl Command {
    fn timed(&self) -> latency::Command {
        latency::Command {
            protocol: &super::DIALECT,
            number: self.number,
        }
    }
}
