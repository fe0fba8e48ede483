//! The durations of commands: histograms and the slow log.

use super::catalogue::find;
use super::command::Command;
use super::context::Context;
use super::dialect::DIALECT;
use crate::ops::latency;
use crate::proto::redis::args::Args;

impl Context<'_> {
    /// Records the duration of `GET`s of these keys, or of `SET`s with their data, that were carried out together.
    /// `name` is the first one's name as the client has sent it.
    pub fn timed_together(&self, name: &[u8], keys: &[&[u8]], data: &[&[u8]]) {
        let Some(command) = find(name) else {
            return;
        };
        self.client.note_command(command.number);
        let took = self.worker.lap();
        let timed = timed(command);
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

    /// Records the duration of a command that is done.
    pub fn timed(&mut self, command: &Command, args: Args<'_>) {
        let took = self.worker.lap() + std::mem::take(&mut self.state.walked);
        let timed = timed(command);
        if self.worker.took(timed, took, 1) {
            // The slow log keeps no passwords.
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

/// Returns the command as the histograms and the slow log know it.
fn timed(command: &Command) -> latency::Command {
    latency::Command {
        protocol: &DIALECT,
        number: command.number,
    }
}
