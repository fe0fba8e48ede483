//! Commands and fields on the log and the checkpoints of a pool of level `disk`: Redis's append-only file.

use super::context::Context;
use super::error::{Done, NOT_INTEGER, Wrong, misconf};
use crate::items::number;
use crate::proto::redis::args::Args;
use wollemi::Level;

/// `WAITAOF numlocal numreplicas timeout`. With `numlocal` 1 the connection's turn notes the end of the log, so that
/// the reply is sent once all writes before it are durable. In `MULTI` these are the writes before the `EXEC`, as in
/// Redis, and not those of the transaction, whose record the log does not have yet. There are no replicas to wait for.
pub fn waitaof(context: &mut Context<'_>, args: Args<'_>) -> Done {
    let number = |i: usize| number::strict(args.get(i)).ok_or(NOT_INTEGER);
    let local = number(1)?;
    if !(0..=1).contains(&local) {
        return Err("ERR value is out of range, must be between 0 and 1".into());
    }
    if number(2)? < 0 {
        return Err("ERR value is out of range, must be positive".into());
    }
    let timeout = number::strict(args.get(3)).ok_or("ERR timeout is not an integer or out of range")?;
    if timeout < 0 {
        return Err("ERR timeout is negative".into());
    }
    let db = context.shared().databases.db();
    let enabled = is_enabled(context);
    if local > 0 && !enabled {
        return Err("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.".into());
    }
    if local > 0 {
        db.sync()
            .map_err(|error| Wrong::from(misconf(&error.to_string())))?;
    }
    // With `numlocal` 0 the reply says whether everything is durable already.
    let is_durable = local > 0 || (enabled && db.log_stats().is_none_or(|log| log.durable >= log.appended));
    context.reply.array(2);
    context.reply.int(i64::from(is_durable));
    context.reply.int(0);
    Ok(())
}

/// Returns whether writes survive a loss of power, when they are answered, or within the time that the sync policy
/// allows.
pub fn is_enabled(context: &Context<'_>) -> bool {
    context.shared().databases.db().level() != Level::Process
}

/// `BGREWRITEAOF`: requests a checkpoint; the reply does not wait for it.
pub fn bgrewriteaof(context: &mut Context<'_>, _: Args<'_>) -> Done {
    let db = context.shared().databases.db();
    let running = db.log_stats().is_some_and(|log| log.is_checkpointing);
    if running {
        return Err("ERR Background append only file rewriting already in progress".into());
    }
    if !db.request_checkpoint() {
        let level = db.level();
        return Err(Wrong::from(format!(
            "ERR a pool of level {level} has no log to rewrite"
        )));
    }
    context
        .reply
        .simple("Background append only file rewriting started");
    Ok(())
}

/// Returns fields of `INFO persistence`, under Redis's names.
pub fn info_fields(context: &Context<'_>) -> Vec<(String, String)> {
    let stats = context.shared().databases.db().log_stats();
    let has_log = stats.is_some();
    let log = stats.unwrap_or_default();
    let status = |failure: &Option<String>| if failure.is_none() { "ok" } else { "err" };
    let is = |condition: bool| u8::from(condition).to_string();
    let seconds = log.last_checkpoint_seconds.map_or(-1, |seconds| seconds as i64);
    let fields = [
        ("aof_enabled", is(is_enabled(context))),
        ("aof_rewrite_in_progress", is(log.is_checkpointing)),
        ("aof_rewrite_scheduled", is(false)),
        ("aof_last_rewrite_time_sec", seconds.to_string()),
        (
            "aof_last_bgrewrite_status",
            status(&log.checkpoint_failure).to_owned(),
        ),
        ("aof_last_write_status", status(&log.failure).to_owned()),
    ];
    let of_log = [
        ("aof_current_size", log.kept.to_string()),
        ("aof_pending_bio_fsync", is(log.appended > log.durable)),
        ("aof_delayed_fsync", log.room_waits.to_string()),
    ];
    let of_log = of_log.into_iter().filter(|_| has_log);
    let fields = fields.into_iter().chain(of_log);
    fields.map(|(name, value)| (name.to_owned(), value)).collect()
}
