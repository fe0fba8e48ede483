//! Consecutive commands of one kind, carried out together.

use crate::items::store::BATCH;

/// A command that can join a group: a `GET`, or a `SET` without options, which has data.
pub struct Member<'b> {
    /// Its name as the client has sent it.
    pub name: &'b [u8],
    pub key: &'b [u8],
    pub data: Option<&'b [u8]>,
}

/// Consecutive `GET`s, by their keys, or `SET`s, with their data.
#[derive(Default)]
pub struct Group<'b> {
    /// The name of the first as the client has sent it.
    pub name: &'b [u8],
    pub keys: Vec<&'b [u8]>,
    /// Empty for `GET`s.
    pub data: Vec<&'b [u8]>,
}

impl<'b> Group<'b> {
    /// Returns whether a command can join this group.
    pub fn takes(&self, member: &Member<'_>) -> bool {
        let same_kind = self.keys.is_empty() || self.data.is_empty() == member.data.is_none();
        self.keys.len() < BATCH && same_kind
    }

    /// Adds a command.
    pub fn push(&mut self, member: &Member<'b>) {
        if self.keys.is_empty() {
            self.name = member.name;
            self.keys.reserve(BATCH);
            self.data.reserve(if member.data.is_some() { BATCH } else { 0 });
        }
        self.keys.push(member.key);
        self.data.extend(member.data);
    }

    /// Removes all commands.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.data.clear();
    }
}
