//! `BGSAVE`, `SAVE`, `LASTSAVE`, and the part of `INFO` and `CONFIG` about backups.

use super::context::Context;
use super::error::{Done, SYNTAX, Wrong};
use super::state::Saving;
use crate::proto::redis::args::Args;

pub fn bgsave(context: &mut Context<'_>, args: Args<'_>) -> Done {
    match (args.len(), args.get(1)) {
        (1, _) => {}
        (2, word) if word.eq_ignore_ascii_case(b"schedule") => {}
        _ => return Err(SYNTAX.into()),
    }
    begin(context)?;
    // A backup that a transaction asks for begins after the transaction.
    context.reply.simple(match context.state.executing {
        true => "Background saving scheduled",
        false => "Background saving started",
    });
    Ok(())
}

/// `SAVE`: the connection waits for the end of the backup, and then replies.
pub fn save(context: &mut Context<'_>, _: Args<'_>) -> Done {
    context.state.saving = Some(begin(context)?);
    Ok(())
}

fn begin(context: &Context<'_>) -> Result<Saving, Wrong> {
    context
        .shared()
        .backups
        .begin(!context.state.executing)
        .map_err(|why| Wrong::from(format!("ERR {why}")))
}

pub fn lastsave(context: &mut Context<'_>, _: Args<'_>) -> Done {
    let shared = context.shared();
    let time = shared.backups.look().done.time;
    context.reply.int(i64::try_from(time).unwrap_or(i64::MAX));
    Ok(())
}

/// Returns lines of `INFO`, under Redis's names. Redis's copy-on-write bytes correspond to the before-images here.
pub fn lines(context: &Context<'_>) -> Vec<(String, String)> {
    let shared = context.shared();
    let look = shared.backups.look();
    let seconds = |time: Option<std::time::Duration>| time.map_or(-1, |time| time.as_secs() as i64);
    let lines: [(&str, &dyn std::fmt::Display); 10] = [
        ("current_cow_size", &look.memory),
        ("current_save_keys_processed", &look.entries),
        ("current_save_keys_total", &look.total),
        ("rdb_changes_since_last_save", &look.edits),
        ("rdb_bgsave_in_progress", &u8::from(look.running.is_some())),
        ("rdb_last_save_time", &look.done.time),
        (
            "rdb_last_bgsave_status",
            &if look.done.well { "ok" } else { "err" },
        ),
        ("rdb_last_bgsave_time_sec", &seconds(look.done.took)),
        ("rdb_current_bgsave_time_sec", &seconds(look.running)),
        ("rdb_saves", &look.done.made),
    ];
    lines
        .map(|(name, value)| (name.to_owned(), value.to_string()))
        .into()
}

/// Returns where backups go, as Redis's `dir` and `dbfilename`; both are empty if no file is set.
pub fn place(context: &Context<'_>) -> (String, String) {
    let shared = context.shared();
    let Some(file) = shared.backups.look().file else {
        return Default::default();
    };
    let file = std::path::absolute(&file).unwrap_or(file);
    let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    (
        text(file.parent().map(|dir| dir.as_os_str())),
        text(file.file_name()),
    )
}
