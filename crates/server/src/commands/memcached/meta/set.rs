//! `ms`.

use super::super::Session;
use super::super::parse::{MAX_KEY, Meta};
use super::answer::{binary_mark, echo, labelled, outcome_of};
use crate::items::item::{self, AWAITED, Header, Item, STALE};
use crate::items::store::classic::Verb;
use crate::items::store::{Decision, Failure, Outcome};

impl Session {
    /// `ms`.
    pub fn meta_set(&self, meta: &Meta<'_>, data: &[u8], now: u64, out: &mut Vec<u8>) -> Result<(), Failure> {
        let flags = &meta.flags;
        let space = &mut [0; MAX_KEY];
        let key = Self::meta_key(meta.key, flags.binary, space);
        let verb = match (flags.mode, flags.unique) {
            (b'E', _) => Some(Verb::Add),
            (b'A', _) => Some(Verb::Append),
            (b'P', _) => Some(Verb::Prepend),
            (b'R', None) => Some(Verb::Replace),
            (_, Some(unique)) => Some(Verb::Cas(unique)),
            (_, None) => None,
        };
        let joins = matches!(verb, Some(Verb::Append | Verb::Prepend));
        let scratch = &mut *self.worker.scratch.borrow_mut();
        let largest = self.shared().net.limits.value();
        let (outcome, unique) =
            self.shared()
                .databases
                .first()
                .change(key, now, scratch, |old, unique, put| {
                    let fresh = Header {
                        unique,
                        expiry: item::expiry(flags.lifetime.unwrap_or(0), now),
                        flags: flags.client,
                        marks: binary_mark(flags),
                    };
                    let older = |old: &Item<'_>| match verb {
                        Some(Verb::Cas(seen)) => flags.invalidate && seen < old.header.unique,
                        _ => false,
                    };
                    let (header, parts) = match (verb, old) {
                        (None, _) | (Some(Verb::Add), None) | (Some(Verb::Replace), Some(_)) => {
                            (fresh, [data, &[]])
                        }
                        (Some(Verb::Cas(seen)), Some(old)) if old.header.unique == seen => {
                            (fresh, [data, &[]])
                        }
                        (Some(Verb::Cas(_)), Some(old)) if older(&old) => {
                            let marks = fresh.marks | STALE | (old.header.marks & AWAITED);
                            let expiry = old.header.expiry;
                            (
                                Header {
                                    expiry,
                                    marks,
                                    ..fresh
                                },
                                [data, &[]],
                            )
                        }
                        (Some(Verb::Cas(_)), None) => return Decision::Keep((Outcome::NotFound, 0)),
                        (Some(Verb::Cas(_)), _) => return Decision::Keep((Outcome::Exists, 0)),
                        (_, Some(old))
                            if joins
                                && flags
                                    .unique
                                    .is_some_and(|seen| seen != 0 && seen != old.header.unique) =>
                        {
                            return Decision::Keep((Outcome::Exists, 0));
                        }
                        (_, Some(old)) if joins && old.data.len() + data.len() <= largest => {
                            let parts = match verb {
                                Some(Verb::Append) => [old.data, data],
                                _ => [data, old.data],
                            };
                            let marks = 0;
                            (
                                Header {
                                    unique,
                                    marks,
                                    ..old.header
                                },
                                parts,
                            )
                        }
                        _ => return Decision::Keep((Outcome::NotStored, 0)),
                    };
                    header.begin(put);
                    put.extend_from_slice(parts[0]);
                    put.extend_from_slice(parts[1]);
                    Decision::Put((Outcome::Done, unique))
                })?;
        self.count_store(verb, outcome);
        if outcome == Outcome::Done {
            self.note(key, false);
            if flags.quiet {
                return Ok(());
            }
        }
        out.extend_from_slice(outcome_of(outcome));
        for word in flags.words.clone() {
            match word[0] {
                b'c' => labelled(b'c', unique, out),
                b'O' | b'k' => echo(word, key, flags.binary, out),
                _ => {}
            }
        }
        out.extend_from_slice(b"\r\n");
        Ok(())
    }
}
