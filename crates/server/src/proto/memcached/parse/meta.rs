//! Command lines of meta commands.

use super::super::request::{Body, Flags, Keys, MAX_KEY, Meta, MetaVerb, Request, base64_key};
use super::parsed::{BAD_LINE, ERROR, Line, MAX_LENGTH, Parsed, wrong};
use crate::items::number;

/// Maximum number of words in a line, as memcached counts them.
const MAX_WORDS: usize = 19;
/// The longest opaque word.
const MAX_OPAQUE: usize = 32;

const BAD_KEY: &str = "CLIENT_ERROR error decoding key\r\n";
const BAD_TOKEN: &str = "CLIENT_ERROR bad token in command line format\r\n";
const BAD_FLAG: &str = "CLIENT_ERROR invalid flag\r\n";
const BAD_FLAGS: &str = "CLIENT_ERROR invalid or duplicate flag\r\n";
const TWICE: &str = "CLIENT_ERROR duplicate flag\r\n";
const BAD_MODE: &str = "CLIENT_ERROR incorrect length for M token\r\n";
const BAD_INITIAL: &str = "CLIENT_ERROR invalid numeric initial value\r\n";
const BAD_DELTA: &str = "CLIENT_ERROR invalid numeric delta value\r\n";
const LONG_OPAQUE: &str = "CLIENT_ERROR opaque token too long\r\n";
const UNKNOWN_SET_MODE: &str = "CLIENT_ERROR invalid mode for ms M token\r\n";
const UNKNOWN_COUNT_MODE: &str = "CLIENT_ERROR invalid mode for ma M token\r\n";
const MANY_GET_FLAGS: &str = "CLIENT_ERROR options flags are too long\r\n";
const MANY_FLAGS: &str = "CLIENT_ERROR options flags too long\r\n";

/// Parses the words behind `mg`, `md` or `ma`.
pub fn short(verb: MetaVerb, mut rest: Keys<'_>) -> Parsed<'_> {
    let Some(key) = rest.next() else {
        return wrong(ERROR);
    };
    if key.len() > MAX_KEY {
        return wrong(BAD_LINE);
    }
    if rest.clone().count() + 2 > MAX_WORDS {
        return wrong(match verb {
            MetaVerb::Get => MANY_GET_FLAGS,
            _ => MANY_FLAGS,
        });
    }
    match flags(verb, key, rest) {
        Ok(flags) => Parsed {
            noreply: false,
            line: Line::Whole(Request::Meta(Meta { verb, key, flags })),
        },
        Err(LONG_OPAQUE) => wrong(LONG_OPAQUE),
        Err(UNKNOWN_COUNT_MODE) => wrong(UNKNOWN_COUNT_MODE),
        Err(why) if verb == MetaVerb::Get => wrong(why),
        Err(_) => wrong(BAD_FLAGS),
    }
}

/// Parses the words behind `ms`. If the flags are wrong, the parser skips the body.
pub fn set(mut rest: Keys<'_>) -> Parsed<'_> {
    let Some(key) = rest.next() else {
        return wrong(ERROR);
    };
    let Some(length) = rest.next().filter(|_| key.len() <= MAX_KEY) else {
        return wrong(BAD_LINE);
    };
    if rest.clone().count() + 3 > MAX_WORDS {
        return wrong(MANY_FLAGS);
    }
    let Some(length) = number::unsigned(length).filter(|&length| length <= MAX_LENGTH) else {
        return wrong(BAD_LINE);
    };
    let verb = MetaVerb::Set;
    let line = match flags(verb, key, rest) {
        Ok(flags) => Line::Body {
            body: Body::Meta(Meta { verb, key, flags }),
            length,
        },
        Err(why) => Line::Refused { why, length },
    };
    Parsed { line, noreply: false }
}

/// Parses the words behind `me`.
pub fn debug(mut rest: Keys<'_>) -> Parsed<'_> {
    let Some(key) = rest.next().filter(|key| key.len() <= MAX_KEY) else {
        return wrong(BAD_LINE);
    };
    let binary = rest.next() == Some(b"b");
    if binary && base64_key(key, &mut [0; MAX_KEY]).is_none() {
        return wrong(BAD_LINE);
    }
    Parsed {
        noreply: false,
        line: Line::Whole(Request::MetaDebug { key, binary }),
    }
}

fn flags<'b>(verb: MetaVerb, key: &[u8], words: Keys<'b>) -> Result<Flags<'b>, &'static str> {
    let mut flags = Flags::unset(words.clone());
    let mut seen = 0u128;
    let mut wrong = Ok(());
    for word in words {
        let bit = 1u128 << (word[0] & 127);
        if seen & bit != 0 {
            return Err(TWICE);
        }
        seen |= bit;
        let taken = match word[0] {
            b'b' => flags.take_binary(key),
            _ => flags.take(word),
        };
        match taken {
            Ok(()) => {}
            Err(BAD_FLAG) => return Err(BAD_FLAG),
            // Reported only if nothing else is wrong.
            Err(BAD_LINE) => wrong = wrong.and(taken),
            // Of several such errors the last is reported.
            Err(_) => wrong = taken,
        }
    }
    wrong?;
    match (verb, flags.mode) {
        (MetaVerb::Set, 0 | b'E' | b'A' | b'P' | b'R' | b'S') => {}
        (MetaVerb::Set, _) => return Err(UNKNOWN_SET_MODE),
        (MetaVerb::Count, 0 | b'I' | b'+' | b'D' | b'-') => {}
        (MetaVerb::Count, _) => return Err(UNKNOWN_COUNT_MODE),
        _ => {}
    }
    if flags
        .words
        .clone()
        .any(|word| word[0] == b'O' && word.len() > MAX_OPAQUE)
    {
        return Err(LONG_OPAQUE);
    }
    Ok(flags)
}

impl Flags<'_> {
    fn take_binary(&mut self, key: &[u8]) -> Result<(), &'static str> {
        self.binary = true;
        base64_key(key, &mut [0; MAX_KEY]).map(drop).ok_or(BAD_KEY)
    }

    fn take(&mut self, word: &[u8]) -> Result<(), &'static str> {
        let number = &word[1..];
        let lifetime = || {
            let lifetime = number::signed(number).filter(|&lifetime| i32::try_from(lifetime).is_ok());
            lifetime.ok_or(BAD_TOKEN)
        };
        match word[0] {
            b'N' => self.vivify = Some(lifetime()?),
            b'T' => self.lifetime = Some(lifetime()?),
            b'R' => self.recache = Some(lifetime()?),
            b'F' => {
                let flags = number::unsigned(number).and_then(|flags| u32::try_from(flags).ok());
                self.client = flags.ok_or(BAD_LINE)?;
            }
            b'C' => self.unique = Some(number::unsigned(number).ok_or(BAD_TOKEN)?),
            b'M' => match number {
                [mode] => self.mode = *mode,
                _ => return Err(BAD_MODE),
            },
            b'J' => self.initial = number::unsigned(number).ok_or(BAD_INITIAL)?,
            b'D' => self.delta = number::unsigned(number).ok_or(BAD_DELTA)?,
            b'I' => self.invalidate = true,
            b'q' => self.quiet = true,
            b'v' => self.value = true,
            b'u' => self.no_bump = true,
            b'O' | b'P' | b'L' | b'k' | b's' | b't' | b'c' | b'f' | b'l' | b'h' => {}
            _ => return Err(BAD_FLAG),
        }
        Ok(())
    }
}
