//! Commands and fields on the log and the checkpoints of a pool of level `disk`: Redis's append-only file.

use super::context::Context;
use super::error::{Done, NOT_INTEGER, Wrong, misconf};
use crate::items::number;
use crate::proto::redis::args::Args;
use wollemi::Level;

/// `WAITAOF numlocal numreplicas timeout`. With `numlocal` 1 the connection's turn notes the end of the log, so that
/// the reply is sent once all earlier writes are durable. There are no replicas to wait for.
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
    let kept = is_enabled(context);
    if local > 0 && !kept {
        return Err("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.".into());
    }
    if local > 0 {
        db.sync()
            .map_err(|error| Wrong::from(misconf(&error.to_string())))?;
    }
    // With `numlocal` 0 the reply says whether everything is durable already.
    let is_durable = local > 0 || (kept && db.log_stats().is_none_or(|log| log.durable >= log.appended));
    context.reply.array(2);
    context.reply.int(i64::from(is_durable));
    context.reply.int(0);
    Ok(())
}

/// Returns whether writes survive a loss of power, from their answers on or, as the sync policy says, some time later.
pub fn is_enabled(context: &Context<'_>) -> bool {
    context.shared().databases.db().level() != Level::Process
}

/// `BGREWRITEAOF`: begins a checkpoint.
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

/// Returns lines of `INFO`, under Redis's names.
pub fn lines(context: &Context<'_>) -> Vec<(String, String)> {
    let kept = context.shared().databases.db().log_stats();
    let has_log = kept.is_some();
    let log = kept.unwrap_or_default();
    let status = |failure: &Option<String>| if failure.is_none() { "ok" } else { "err" };
    let is = |condition: bool| u8::from(condition).to_string();
    let seconds = log.last_checkpoint_seconds.map_or(-1, |seconds| seconds as i64);
    let lines = [
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
    let lines = lines.into_iter().chain(of_log);
    lines.map(|(name, value)| (name.to_owned(), value)).collect()
}
