//! `EVALSHA` of the three scripts of redis-py's locks, unchanged since its version 3.5. There are no other scripts and
//! no interpreter: the server knows a script by its digest, and carries its effect out as one edit.

use super::context::{Context, is_name, retimed};
use super::error::{Done, NOT_INTEGER, Wrong};
use crate::items::number;
use crate::items::store::Decision;
use crate::proto::redis::args::Args;

/// The SHA-1 digests of the scripts, and the effect of each on a key whose value is the first argument.
const SCRIPTS: [(&str, Effect); 3] = [
    ("c3f8721cbb97f72bc19e972846bd7aaf91901658", Effect::Release),
    ("a4e8783852e6b949f9ef3a97212805108459a890", Effect::Extend),
    ("1cac51482acf5858da00f6d685d68f886cd6b6b2", Effect::Reacquire),
];

#[derive(Clone, Copy)]
enum Effect {
    /// Deletes the key.
    Release,
    /// Extends the key's expiry by the second argument, in milliseconds, or, unless the third argument is `0`, sets it
    /// to that time from now on. Changes no key without an expiry, which is no lock.
    Extend,
    /// Sets the key's expiry to the second argument, in milliseconds from now on.
    Reacquire,
}

/// Characters of a script's digest.
const DIGEST: usize = 40;

const NO_SCRIPT: &str = "NOSCRIPT No matching script. Please use EVAL.";

/// `EVALSHA sha1 numkeys [key ...] [arg ...]`: replies 1 if the script has had its effect, else 0.
pub fn evalsha(context: &mut Context<'_>, args: Args<'_>) -> Done {
    if args.get(1).len() != DIGEST {
        return Err(NO_SCRIPT.into());
    }
    let keys = number::strict(args.get(2)).ok_or(NOT_INTEGER)?;
    let keys = usize::try_from(keys).map_err(|_| "ERR Number of keys can't be negative")?;
    if keys > args.len() - 3 {
        return Err("ERR Number of keys can't be greater than number of args".into());
    }
    let known = |(digest, _): &&(&str, Effect)| args.get(1).eq_ignore_ascii_case(digest.as_bytes());
    let script = SCRIPTS.iter().find(known);
    let &(_, effect) = script.ok_or(NO_SCRIPT)?;
    let words = 1 + match effect {
        Effect::Release => 0,
        Effect::Extend | Effect::Reacquire => 1,
    };
    let arguments = args.behind(3 + keys);
    if keys == 0 || arguments.len() < words {
        return Err("ERR Lua redis lib command arguments must be strings or integers".into());
    }
    let key = args.get(3);
    let done = match is_name(key) {
        true => change(context, effect, key, arguments)?,
        false => false,
    };
    context.reply.int(done.into());
    Ok(())
}

/// Applies an effect to a key if its value is the first of these arguments. Returns whether it has applied the effect.
fn change(context: &Context<'_>, effect: Effect, key: &[u8], arguments: Args<'_>) -> Result<bool, Wrong> {
    let holder = arguments.get(0);
    let anew = arguments.get(2) != b"0";
    let now = i64::try_from(context.now).unwrap_or(i64::MAX);
    let changed = context.change(key, |old, unique, put| {
        let Some(old) = old.filter(|old| old.data == holder) else {
            return Decision::Keep(Ok(false));
        };
        let from = match effect {
            Effect::Release => return Decision::Remove(Ok(true)),
            Effect::Extend if old.header.expiry == 0 => return Decision::Keep(Ok(false)),
            Effect::Extend if !anew => i64::try_from(old.header.expiry).unwrap_or(i64::MAX),
            Effect::Extend | Effect::Reacquire => now,
        };
        let more = number::strict(arguments.get(1));
        let Some(end) = more.and_then(|more| from.checked_add(more)) else {
            return Decision::Keep(Err(NOT_INTEGER));
        };
        match u64::try_from(end).ok().filter(|_| end > now) {
            Some(end) => {
                retimed(unique, end, &old, put);
                Decision::Put(Ok(true))
            }
            None => Decision::Remove(Ok(true)),
        }
    })?;
    Ok(changed?)
}
