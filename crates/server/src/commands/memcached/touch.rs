//! `touch`, `gat` and `gats`.

use super::{Session, show};
use crate::counters::Counter;
use crate::items::item::{self, Item};
use crate::items::store::{Failure, Outcome};

impl Session {
    /// The part of a `gat` for one key; whether the request goes on.
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
            .shared()
            .databases
            .first()
            .tick(now)
            .map_err(Failure::from)
            .and_then(|()| self.touch(key, lifetime, now, scratch));
        drop(shared);
        // As in memcached, it counts as a touch alone.
        match touched {
            Ok(Outcome::Done) => {
                // What was put is still in the scratch space.
                if let Some(item) = Item::read(scratch) {
                    show(key, &item, unique, out);
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

    /// Gives an item another expiry; what it then is, is in `scratch`.
    pub(super) fn touch(
        &self,
        key: &[u8],
        lifetime: i64,
        now: u64,
        scratch: &mut Vec<u8>,
    ) -> Result<Outcome, Failure> {
        let outcome =
            self.shared()
                .databases
                .first()
                .touch(key, item::expiry(lifetime, now), now, scratch)?;
        self.count_touch(outcome == Outcome::Done);
        if outcome == Outcome::Done {
            self.note(key, true);
        }
        Ok(outcome)
    }

    /// Counts that a key was to be touched.
    pub(super) fn count_touch(&self, hit: bool) {
        self.add(Counter::Touches, 1);
        self.add(
            if hit {
                Counter::TouchHits
            } else {
                Counter::TouchMisses
            },
            1,
        );
    }
}
