//! `SLOWLOG`.

use super::context::Context;
use super::error::{Done, Wrong};
use super::help::help;
use crate::items::number;
use crate::proto::redis::args::Args;

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
        _ => return Err(Wrong::no_subcommand("slowlog", args)),
    }
    Ok(())
}

/// Returns the number of entries that the client asks for; -1 asks for all.
fn max(count: Option<i64>) -> Result<usize, &'static str> {
    match count {
        Some(-1) => Some(usize::MAX),
        Some(count) => usize::try_from(count).ok(),
        None => None,
    }
    .ok_or("ERR count should be greater than or equal to -1")
}
