//! `ma`.

use super::super::handler::Handler;
use crate::items::item::{self, Header, Item};
use crate::items::number;
use crate::items::store::classic::put_number;
use crate::items::store::{Decision, Failure, Outcome};
use crate::proto::memcached::answer::{begin_answer, echo, echoes, labelled, outcome_of, seconds_left};
use crate::proto::memcached::request::Flags;

const NOT_NUMBER: &[u8] = b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";

/// Returns the header of the counted item, still with its old unique, and its number; or the outcome if the item stays
/// as it is.
fn counted(flags: &Flags<'_>, up: bool, old: Option<&Item<'_>>) -> Result<(Header, u64), Outcome> {
    let Some(old) = old else {
        let created = flags.vivify.map(|_| (Header::default(), flags.initial));
        return created.ok_or(Outcome::NotFound);
    };
    if old.data.is_empty() {
        return Err(Outcome::NotNumber);
    }
    let expected = flags.unique.filter(|&seen| seen != 0);
    if expected.is_some_and(|seen| seen != old.header.unique) {
        return Err(Outcome::Exists);
    }
    let number = number::leading(old.data).ok_or(Outcome::NotNumber)?;
    let number = match up {
        true => number.wrapping_add(flags.delta),
        false => number.saturating_sub(flags.delta),
    };
    Ok((old.header, number))
}

impl Handler {
    /// Answers `ma`.
    pub fn meta_count(
        &self,
        key: &[u8],
        flags: &Flags<'_>,
        now: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let up = !matches!(flags.mode, b'D' | b'-');
        let begin = out.len();
        let scratch = &mut *self.worker.scratch.borrow_mut();
        let mut created = false;
        let (outcome, longer) = self.store().change(key, now, scratch, |old, unique, put| {
            out.truncate(begin);
            created = old.is_none();
            let (header, number) = match counted(flags, up, old.as_ref()) {
                Ok(counted) => counted,
                Err(outcome) => return Decision::Keep((outcome, false)),
            };
            let mut header = Header { unique, ..header };
            let mut digits = Vec::with_capacity(20);
            number::write(&mut digits, number);
            show(key, &digits, flags, &mut header, created, now, out);
            let length = old.map_or(digits.len(), |old| old.data.len());
            let longer = put_number(header, number, length, put);
            Decision::Put((Outcome::Done, longer))
        })?;
        let hit = outcome == Outcome::Done;
        if hit && (created || longer) {
            self.note(key, false);
        }
        // As in memcached, nothing else counts.
        if outcome == Outcome::NotFound || (hit && !created) {
            self.count_step(up, hit);
        }
        match outcome {
            Outcome::NotNumber => out.extend_from_slice(NOT_NUMBER),
            Outcome::Done if flags.quiet && !created => out.truncate(begin),
            Outcome::Done => out.extend_from_slice(b"\r\n"),
            other => {
                out.extend_from_slice(outcome_of(other));
                echoes(key, flags, out);
                out.extend_from_slice(b"\r\n");
            }
        }
        Ok(())
    }
}

/// Appends the answer up to its last line end, and changes the header if the flags say so, in their order.
fn show(
    key: &[u8],
    digits: &[u8],
    flags: &Flags<'_>,
    header: &mut Header,
    created: bool,
    now: u64,
    out: &mut Vec<u8>,
) {
    begin_answer(flags, digits.len(), out);
    for word in flags.words.clone() {
        match word[0] {
            b'c' => labelled(b'c', header.unique, out),
            b't' => seconds_left(header, now, out),
            b'T' => header.expiry = item::expiry(flags.lifetime.unwrap_or(0), now),
            b'N' if created => header.expiry = item::expiry(flags.vivify.unwrap_or(0), now),
            b'O' | b'k' => echo(word, key, flags.binary, out),
            _ => {}
        }
    }
    if flags.value {
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(digits);
    }
}
