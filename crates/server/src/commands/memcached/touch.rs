//! `touch`, `gat` and `gats`.

use super::handler::Handler;
use crate::items::item::{self, Item};
use crate::items::store::{Failure, Outcome};
use crate::proto::memcached::answer;

impl Handler {
    /// Answers the part of a `gat` for one key. An error has been answered and ends the request.
    pub fn get_and_touch(
        &self,
        key: &[u8],
        lifetime: i64,
        unique: bool,
        now: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), ()> {
        let scratch = &mut *self.worker.scratch.borrow_mut();
        let shared = self.shared().databases.shared();
        let touched = self
            .store()
            .tick(now)
            .map_err(Failure::from)
            .and_then(|()| self.touch(key, lifetime, now, scratch));
        drop(shared);
        // As in memcached, this counts as a touch only.
        match touched {
            Ok(Outcome::Done) => {
                // The scratch space still holds the stored value.
                if let Some(item) = Item::read(scratch) {
                    answer::value(key, &item, unique, out);
                }
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(failure) => {
                self.fail(&failure, false, out);
                Err(())
            }
        }
    }

    /// Answers `touch`.
    pub fn answer_touch(
        &self,
        key: &[u8],
        lifetime: i64,
        now: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let scratch = &mut *self.worker.scratch.borrow_mut();
        out.extend_from_slice(match self.touch(key, lifetime, now, scratch)? {
            Outcome::Done => b"TOUCHED\r\n",
            _ => b"NOT_FOUND\r\n",
        });
        Ok(())
    }

    /// Gives an item another expiry. `scratch` then holds the stored value.
    fn touch(&self, key: &[u8], lifetime: i64, now: u64, scratch: &mut Vec<u8>) -> Result<Outcome, Failure> {
        let outcome = self
            .store()
            .touch(key, item::expiry(lifetime, now), now, scratch)?;
        self.count_touch(outcome == Outcome::Done);
        if outcome == Outcome::Done {
            self.note(key, true);
        }
        Ok(outcome)
    }
}
