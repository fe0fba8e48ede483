//! The commands: what they are called, what they take, who carries them out.

use super::context::{Context, Done, Wrong};
use super::parse::Args;
use super::{admin, backup, client, config, expiry, keys, numbers, scan, slowlog, strings, transaction};
use crate::config::LARGEST_VALUE;
use crate::item::HEADER;
use crate::memory::ITEM;
use crate::number;

/// A command.
pub struct Command {
    /// Its place among all.
    pub number: usize,
    pub name: &'static str,
    /// How many words it has, its name included; below zero: at least so many.
    pub arity: i64,
    pub kind: Kind,
    /// Where its keys are: the first, the last (below zero: from the end), and the step; 0: nowhere.
    pub keys: (i64, i64, i64),
    pub about: &'static str,
    run: fn(&mut Context<'_>, Args<'_>) -> Done,
}

/// What a command does to the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing.
    Neither,
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// It writes several keys, which nobody shall see half done.
    Alone,
}

/// The bytes of the longest number that counting makes.
const NUMBER: u64 = 48;

const ONE: (i64, i64, i64) = (1, 1, 1);
const TWO: (i64, i64, i64) = (1, 2, 1);
const ALL: (i64, i64, i64) = (1, -1, 1);
const PAIRS: (i64, i64, i64) = (1, -1, 2);
const NONE: (i64, i64, i64) = (0, 0, 0);

macro_rules! commands {
    ($($name:literal $arity:literal $kind:ident $keys:ident $run:path, $about:literal;)*) => {
        /// All commands, by name.
        pub static COMMANDS: &[Command] = &numbered([$(Command {
            number: 0, name: $name, arity: $arity, kind: Kind::$kind, keys: $keys, about: $about, run: $run,
        }),*]);
    };
}

const fn numbered<const COUNT: usize>(mut all: [Command; COUNT]) -> [Command; COUNT] {
    let mut number = 0;
    while number < COUNT {
        all[number].number = number;
        number += 1;
    }
    all
}

commands! {
    "append" 3 Write ONE strings::append, "Appends a string to the value of a key.";
    "auth" -2 Neither NONE client::auth, "Authenticates the connection.";
    "bgsave" -1 Neither NONE backup::bgsave, "Asynchronously saves the database(s) to disk.";
    "client" -2 Neither NONE client::client, "A container for client connection commands.";
    "command" -1 Neither NONE admin::command, "Returns detailed information about all commands.";
    "config" -2 Neither NONE config::config, "A container for server configuration commands.";
    "dbsize" 1 Read NONE keys::dbsize, "Returns the number of keys in the database.";
    "decr" 2 Write ONE numbers::decr, "Decrements the integer value of a key by one.";
    "decrby" 3 Write ONE numbers::decrby, "Decrements a number from the integer value of a key.";
    "del" -2 Alone ALL keys::del, "Deletes one or more keys.";
    "discard" 1 Neither NONE transaction::discard, "Discards a transaction.";
    "echo" 2 Neither NONE admin::echo, "Returns the given string.";
    "exec" 1 Alone NONE transaction::exec, "Executes all commands in a transaction.";
    "exists" -2 Read ALL keys::exists, "Determines whether one or more keys exist.";
    "expire" -3 Write ONE expiry::expire, "Sets the expiration time of a key in seconds.";
    "expireat" -3 Write ONE expiry::expireat, "Sets the expiration time of a key to a Unix timestamp.";
    "expiretime" 2 Read ONE expiry::expiretime, "Returns the expiration time of a key as a Unix timestamp.";
    "flushall" -1 Alone NONE keys::flushall, "Removes all keys from all databases.";
    "flushdb" -1 Alone NONE keys::flushdb, "Remove all keys from the current database.";
    "get" 2 Read ONE strings::get, "Returns the string value of a key.";
    "getdel" 2 Write ONE strings::getdel, "Returns the string value of a key after deleting the key.";
    "getex" -2 Write ONE strings::getex, "Returns the string value of a key after setting its expiration time.";
    "getrange" 4 Read ONE strings::getrange, "Returns a substring of the string stored at a key.";
    "getset" 3 Write ONE strings::getset, "Returns the previous string value of a key after setting it to a new value.";
    "hello" -1 Neither NONE client::hello, "Handshakes with the server.";
    "incr" 2 Write ONE numbers::incr, "Increments the integer value of a key by one.";
    "incrby" 3 Write ONE numbers::incrby, "Increments the integer value of a key by a number.";
    "incrbyfloat" 3 Write ONE numbers::incrbyfloat, "Increment the floating point value of a key by a number.";
    "info" -1 Neither NONE admin::info, "Returns information and statistics about the server.";
    "keys" 2 Read NONE scan::keys, "Returns all key names that match a pattern.";
    "kprefix" -2 Read NONE scan::kprefix, "Returns the keys that start with a prefix, in order. Not in Redis.";
    "krange" -3 Read NONE scan::krange, "Returns the keys between two bounds, in order. Not in Redis.";
    "lastsave" 1 Neither NONE backup::lastsave, "Returns the Unix timestamp of the last successful save to disk.";
    "mget" -2 Read ALL strings::mget, "Atomically returns the string values of one or more keys.";
    "mset" -3 Alone PAIRS strings::mset, "Atomically creates or modifies the string values of one or more keys.";
    "msetnx" -3 Alone PAIRS strings::msetnx, "Atomically modifies the string values of one or more keys only when all keys don't exist.";
    "multi" 1 Neither NONE transaction::multi, "Starts a transaction.";
    "persist" 2 Write ONE expiry::persist, "Removes the expiration time of a key.";
    "pexpire" -3 Write ONE expiry::pexpire, "Sets the expiration time of a key in milliseconds.";
    "pexpireat" -3 Write ONE expiry::pexpireat, "Sets the expiration time of a key to a Unix milliseconds timestamp.";
    "pexpiretime" 2 Read ONE expiry::pexpiretime, "Returns the expiration time of a key as a Unix milliseconds timestamp.";
    "ping" -1 Neither NONE admin::ping, "Returns the server's liveliness response.";
    "psetex" 4 Write ONE strings::psetex, "Sets both string value and expiration time in milliseconds of a key.";
    "pttl" 2 Read ONE expiry::pttl, "Returns the expiration time in milliseconds of a key.";
    "quit" -1 Neither NONE client::quit, "Closes the connection.";
    "randomkey" 1 Read NONE scan::randomkey, "Returns a random key name from the database.";
    "rename" 3 Alone TWO keys::rename, "Renames a key and overwrites the destination.";
    "renamenx" 3 Alone TWO keys::renamenx, "Renames a key only when the target key name doesn't exist.";
    "reset" 1 Neither NONE client::reset, "Resets the connection.";
    "save" 1 Neither NONE backup::save, "Synchronously saves the database(s) to disk.";
    "scan" -2 Read NONE scan::scan, "Iterates over the key names in the database.";
    "select" 2 Neither NONE client::select, "Changes the selected database.";
    "set" -3 Write ONE strings::set, "Sets the string value of a key, ignoring its type.";
    "setex" 4 Write ONE strings::setex, "Sets the string value and expiration time of a key.";
    "setnx" 3 Write ONE strings::setnx, "Set the string value of a key only when the key doesn't exist.";
    "setrange" 4 Write ONE strings::setrange, "Overwrites a part of a string value with another by an offset.";
    "slowlog" -2 Neither NONE slowlog::slowlog, "A container for slow log commands.";
    "strlen" 2 Read ONE strings::strlen, "Returns the length of a string value.";
    "substr" 4 Read ONE strings::getrange, "Returns a substring from a string value.";
    "time" 1 Neither NONE admin::time, "Returns the server time.";
    "touch" -2 Read ALL keys::exists, "Returns the number of existing keys out of those specified.";
    "ttl" 2 Read ONE expiry::ttl, "Returns the expiration time in seconds of a key.";
    "type" 2 Read ONE keys::kind, "Determines the type of value stored at a key.";
    "unlink" -2 Alone ALL keys::del, "Asynchronously deletes one or more keys.";
    "unwatch" 1 Neither NONE transaction::unwatch, "Forgets about watched keys of a transaction.";
    "watch" -2 Read ALL transaction::watch, "Monitors changes to keys to determine the execution of a transaction.";
}

/// What follows the name of a command that is several: the command, the word, and how many words there are, as above.
pub const SUBCOMMANDS: &[(&str, &str, i64)] = &[
    ("client", "getname", 2),
    ("client", "help", 2),
    ("client", "id", 2),
    ("client", "info", 2),
    ("client", "kill", -3),
    ("client", "list", -2),
    ("client", "maint_notifications", -3),
    ("client", "no-evict", 3),
    ("client", "no-touch", 3),
    ("client", "setinfo", 4),
    ("client", "setname", 3),
    ("command", "count", 2),
    ("command", "docs", -2),
    ("command", "help", 2),
    ("command", "info", -2),
    ("command", "list", -2),
    ("config", "get", -3),
    ("config", "help", 2),
    ("config", "resetstat", 2),
    ("config", "rewrite", 2),
    ("config", "set", -4),
    ("slowlog", "get", -2),
    ("slowlog", "help", 2),
    ("slowlog", "len", 2),
    ("slowlog", "reset", 2),
];

/// The error for a subcommand that does not exist.
pub fn no_subcommand(command: &str, args: Args<'_>) -> Wrong {
    let word = String::from_utf8_lossy(args.get(1));
    let word: String = word.chars().take(128).collect();
    let command = command.to_ascii_uppercase();
    Wrong(format!("ERR unknown subcommand '{word}'. Try {command} HELP."))
}

fn check_subcommand(command: &Command, args: Args<'_>) -> Done {
    let mut words = SUBCOMMANDS
        .iter()
        .filter(|(of, ..)| *of == command.name)
        .peekable();
    if words.peek().is_none() || args.len() < 2 {
        return Ok(());
    }
    let named = words.find(|(_, word, _)| args.get(1).eq_ignore_ascii_case(word.as_bytes()));
    let (_, word, arity) = named.ok_or_else(|| no_subcommand(command.name, args))?;
    match takes(*arity, args.len()) {
        true => Ok(()),
        false => {
            let name = command.name;
            Err(Wrong(format!(
                "ERR wrong number of arguments for '{name}|{word}' command"
            )))
        }
    }
}

/// Whether a command of this arity takes so many words.
fn takes(arity: i64, words: usize) -> bool {
    let words = words as i64;
    match arity {
        least @ ..0 => words >= -least,
        exact => words == exact,
    }
}

/// The command of this name, in any case.
pub fn find(name: &[u8]) -> Option<&'static Command> {
    let mut lower = [0; LONGEST_NAME];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    let (&first, _) = lower.split_first()?;
    let begin = usize::from(first.checked_sub(b'a').filter(|&letter| letter < 26)?);
    let of_letter = BY_LETTER[begin]..BY_LETTER[begin + 1];
    COMMANDS[of_letter]
        .iter()
        .find(|command| command.name.as_bytes() == lower)
}

/// No name is longer.
const LONGEST_NAME: usize = 16;

/// Where the commands begin whose names have this first letter; and at last, how many there are.
static BY_LETTER: [usize; 27] = {
    let mut begins = [COMMANDS.len(); 27];
    let mut number = COMMANDS.len();
    while number > 0 {
        number -= 1;
        begins[(COMMANDS[number].name.as_bytes()[0] - b'a') as usize] = number;
    }
    let mut letter = 26;
    while letter > 0 {
        letter -= 1;
        if begins[letter] == COMMANDS.len() {
            begins[letter] = begins[letter + 1];
        }
    }
    begins
};

impl Command {
    /// The keys among its arguments.
    fn keys<'a>(&self, args: Args<'a>) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (first, last, step) = self.keys;
        let last = if last < 0 { args.len() as i64 + last } else { last };
        let count = if first == 0 {
            0
        } else {
            (last - first + step) / step
        };
        args.from(first.max(1) as usize)
            .step_by(step.max(1) as usize)
            .take(count.max(0) as usize)
    }

    /// The most bytes by which items may grow by it.
    pub fn growth(&self, args: Args<'_>) -> u64 {
        let grows = matches!(
            self.name,
            "append"
                | "decr"
                | "decrby"
                | "getset"
                | "incr"
                | "incrby"
                | "incrbyfloat"
                | "mset"
                | "msetnx"
                | "psetex"
                | "rename"
                | "renamenx"
                | "set"
                | "setex"
                | "setnx"
                | "setrange"
        );
        if !grows {
            return 0;
        }
        let words = args.from(1).map(|word| word.len() as u64).sum::<u64>();
        let items = self.keys(args).count() as u64 * (ITEM + HEADER as u64 + NUMBER);
        // What is between the old end and what is written there.
        let gap = match self.name {
            "setrange" => number::strict(args.get(2)).map_or(0, |offset| offset.unsigned_abs()),
            _ => 0,
        };
        (words + items).saturating_add(gap.min(LARGEST_VALUE as u64))
    }

    /// Whether it is carried out at once between `MULTI` and `EXEC`.
    fn is_not_queued(&self) -> bool {
        matches!(
            self.name,
            "exec" | "discard" | "multi" | "watch" | "quit" | "reset"
        )
    }

    fn needs_no_name(&self) -> bool {
        matches!(self.name, "auth" | "hello" | "quit" | "reset")
    }
}

/// Carries out a command that has just arrived, or queues it.
pub fn arrived(context: &mut Context<'_>, args: Args<'_>) {
    match check(context, args) {
        Ok(command) => {
            if let Some(queue) = context.state.queue.as_mut().filter(|_| !command.is_not_queued()) {
                match queue.push(command, args) {
                    Ok(()) => context.reply.simple("QUEUED"),
                    Err(Wrong(text)) => context.reply.error(&text),
                }
                return;
            }
            let shared = &context.worker.shared;
            context.client.note_command(command.number);
            // A lone key is one edit, and needs nobody kept away.
            let alone = command.kind == Kind::Alone && (args.len() != 2 || command.keys != ALL);
            let _alone;
            let _shared;
            if alone {
                _alone = shared.databases.alone();
            } else {
                _shared = shared.databases.shared();
            }
            let growth = match command.name {
                _ if shared.databases.memory().limit() == 0 => 0,
                "exec" => transaction::growth(context),
                _ => command.growth(args),
            };
            let _room = match shared.databases.room(growth, context.now) {
                Ok(room) => room,
                Err(failure) => return refuse(context, command, failure.into()),
            };
            match alone {
                true => transact(context, command, args),
                false => drop(run(context, command, args)),
            }
            context.timed(command, args);
        }
        Err(Wrong(text)) => {
            if let Some(queue) = &mut context.state.queue {
                queue.refuse();
            }
            context.reply.error(&text);
        }
    }
}

fn check(context: &Context<'_>, args: Args<'_>) -> Result<&'static Command, Wrong> {
    let command = find(args.get(0)).ok_or_else(|| unknown(args))?;
    if !takes(command.arity, args.len()) {
        let name = command.name;
        return Err(Wrong(format!(
            "ERR wrong number of arguments for '{name}' command"
        )));
    }
    check_subcommand(command, args)?;
    if !context.state.known && !command.needs_no_name() {
        return Err("NOAUTH Authentication required.".into());
    }
    if command.name == "save" && context.state.queue.is_some() {
        return Err("ERR Command not allowed inside a transaction".into());
    }
    let writes = matches!(command.kind, Kind::Write | Kind::Alone);
    if writes && command.keys(args).any(<[u8]>::is_empty) {
        return Err("ERR the empty key is the server's own".into());
    }
    Ok(command)
}

fn unknown(args: Args<'_>) -> Wrong {
    let shown = |word: &[u8], most: usize| {
        let word = word.split(|&byte| byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(&word[..word.len().min(most)]).into_owned()
    };
    let mut words = String::new();
    for arg in args.from(1) {
        if words.len() >= 128 {
            break;
        }
        words += &format!("'{}' ", shown(arg, 128 - words.len()));
    }
    let name = shown(args.get(0), 128);
    Wrong(format!(
        "ERR unknown command '{name}', with args beginning with: {words}"
    ))
}

/// Refuses a command for which there is no room.
fn refuse(context: &mut Context<'_>, command: &Command, Wrong(text): Wrong) {
    if command.name == "exec" {
        context.state.queue = None;
        context.state.watched.clear();
        let text = format!("EXECABORT Transaction discarded because of: {text}");
        context.reply.error(&text);
    } else {
        context.reply.error(&text);
    }
}

/// Carries out a command wholly or not at all. The caller lets nobody act beside it.
fn transact(context: &mut Context<'_>, command: &Command, args: Args<'_>) {
    let shared = context.worker.shared.clone();
    let begin = context.reply.out.len();
    let selected = (context.state.store.clone(), context.state.db);
    let transaction = shared.databases.begin();
    let done = run(context, command, args);
    let committed = match done {
        true => transaction.commit(),
        false => {
            drop(transaction);
            Ok(())
        }
    };
    if done && committed.is_ok() {
        return;
    }
    // A database that it has selected is taken back, too.
    (context.state.store, context.state.db) = selected;
    if let Err(text) = committed {
        context.reply.out.truncate(begin);
        context.reply.error(&format!("ERR {text}"));
    }
}

/// Carries out a command; whether it could be.
pub fn run(context: &mut Context<'_>, command: &Command, args: Args<'_>) -> bool {
    let begin = context.reply.out.len();
    let done = context
        .state
        .store
        .tick(context.now)
        .map_err(Wrong::from)
        .and_then(|()| (command.run)(context, args));
    if let Err(Wrong(text)) = &done {
        context.reply.out.truncate(begin);
        context.reply.error(text);
    }
    done.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table is in order, so that each command is found, in any case.
    #[test]
    fn every_command_is_found() {
        assert!(COMMANDS.is_sorted_by_key(|command| command.name));
        for command in COMMANDS {
            let upper = command.name.to_ascii_uppercase();
            assert_eq!(find(upper.as_bytes()).map(|found| found.name), Some(command.name));
            assert_eq!(COMMANDS[command.number].name, command.name);
        }
        assert!(find(b"").is_none() && find(&[b'x'; 100]).is_none());
    }
}
