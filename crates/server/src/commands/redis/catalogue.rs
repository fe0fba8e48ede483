//! The table of commands: what they are called, what they take, what they do to the data.

use super::context::{Context, Done};
use super::parse::Args;
use super::{
    admin, backup, client, config, describe, durable, expiry, info, keys, numbers, scan, scripts, sets,
    slowlog, strings, transaction,
};

/// A command.
pub struct Command {
    /// Its place among all.
    pub number: usize,
    pub name: &'static str,
    /// How many words it has, its name included; below zero: at least its absolute value.
    pub arity: i64,
    pub kind: Kind,
    /// Where its keys are: the first, the last (below zero: from the end), and the step; 0: nowhere.
    pub keys: (i64, i64, i64),
    /// Where it stands in Redis's documentation.
    pub group: &'static str,
    pub about: &'static str,
    /// Where it is several: the word behind its name that says which, and how many words there are, as above.
    pub subcommands: &'static [(&'static str, i64)],
    /// The number of the first of these: they come behind all commands.
    pub first_subcommand: usize,
    pub run: fn(&mut Context<'_>, Args<'_>) -> Done,
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
    /// It writes several keys, atomically for all readers.
    Alone,
}

const ONE: (i64, i64, i64) = (1, 1, 1);
const TWO: (i64, i64, i64) = (1, 2, 1);
/// All words behind the name.
pub const ALL: (i64, i64, i64) = (1, -1, 1);
const PAIRS: (i64, i64, i64) = (1, -1, 2);
const NONE: (i64, i64, i64) = (0, 0, 0);

macro_rules! commands {
    ($($name:literal $arity:literal $kind:ident $keys:ident $group:literal $run:path, $about:literal
        $([$($word:literal $words:literal),*])?;)*) => {
        /// All commands, by name.
        pub static COMMANDS: &[Command] = &numbered([$(Command {
            number: 0, name: $name, arity: $arity, kind: Kind::$kind, keys: $keys, group: $group, about: $about,
            subcommands: &[$($(($word, $words)),*)?], first_subcommand: 0, run: $run,
        }),*]);
    };
}

const fn numbered<const COUNT: usize>(mut all: [Command; COUNT]) -> [Command; COUNT] {
    let (mut number, mut behind) = (0, COUNT);
    while number < COUNT {
        all[number].number = number;
        all[number].first_subcommand = behind;
        behind += all[number].subcommands.len();
        number += 1;
    }
    all
}

commands! {
    "append" 3 Write ONE "string" strings::append, "Appends a string to the value of a key.";
    "auth" -2 Neither NONE "connection" client::auth, "Authenticates the connection.";
    "bgrewriteaof" 1 Neither NONE "server" durable::bgrewriteaof, "Asynchronously rewrites the append-only file to disk.";
    "bgsave" -1 Neither NONE "server" backup::bgsave, "Asynchronously saves the database(s) to disk.";
    "client" -2 Neither NONE "connection" client::client, "A container for client connection commands."
        ["getname" 2, "help" 2, "id" 2, "info" 2, "kill" -3, "list" -2, "maint_notifications" -3,
         "no-evict" 3, "no-touch" 3, "setinfo" 4, "setname" 3];
    "command" -1 Neither NONE "server" describe::command, "Returns detailed information about all commands."
        ["count" 2, "docs" -2, "getkeys" -4, "help" 2, "info" -2, "list" -2];
    "config" -2 Neither NONE "server" config::config, "A container for server configuration commands."
        ["get" -3, "help" 2, "resetstat" 2, "rewrite" 2, "set" -4];
    "dbsize" 1 Read NONE "server" keys::dbsize, "Returns the number of keys in the database.";
    "decr" 2 Write ONE "string" numbers::decr, "Decrements the integer value of a key by one.";
    "decrby" 3 Write ONE "string" numbers::decrby, "Decrements a number from the integer value of a key.";
    "del" -2 Alone ALL "generic" keys::del, "Deletes one or more keys.";
    "discard" 1 Neither NONE "transactions" transaction::discard, "Discards a transaction.";
    "echo" 2 Neither NONE "connection" admin::echo, "Returns the given string.";
    "evalsha" -3 Write NONE "scripting" scripts::evalsha, "Executes a server-side Lua script by SHA1 digest.";
    "exec" 1 Alone NONE "transactions" transaction::exec, "Executes all commands in a transaction.";
    "exists" -2 Read ALL "generic" keys::exists, "Determines whether one or more keys exist.";
    "expire" -3 Write ONE "generic" expiry::expire, "Sets the expiration time of a key in seconds.";
    "expireat" -3 Write ONE "generic" expiry::expireat, "Sets the expiration time of a key to a Unix timestamp.";
    "expiretime" 2 Read ONE "generic" expiry::expiretime, "Returns the expiration time of a key as a Unix timestamp.";
    "flushall" -1 Alone NONE "server" keys::flushall, "Removes all keys from all databases.";
    "flushdb" -1 Alone NONE "server" keys::flushdb, "Remove all keys from the current database.";
    "get" 2 Read ONE "string" strings::get, "Returns the string value of a key.";
    "getdel" 2 Write ONE "string" strings::getdel, "Returns the string value of a key after deleting the key.";
    "getex" -2 Write ONE "string" strings::getex, "Returns the string value of a key after setting its expiration time.";
    "getrange" 4 Read ONE "string" strings::getrange, "Returns a substring of the string stored at a key.";
    "getset" 3 Write ONE "string" sets::getset, "Returns the previous string value of a key after setting it to a new value.";
    "hello" -1 Neither NONE "connection" client::hello, "Handshakes with the server.";
    "incr" 2 Write ONE "string" numbers::incr, "Increments the integer value of a key by one.";
    "incrby" 3 Write ONE "string" numbers::incrby, "Increments the integer value of a key by a number.";
    "incrbyfloat" 3 Write ONE "string" numbers::incrbyfloat, "Increment the floating point value of a key by a number.";
    "info" -1 Neither NONE "server" info::info, "Returns information and statistics about the server.";
    "keys" 2 Read NONE "generic" scan::keys, "Returns all key names that match a pattern.";
    "kprefix" -2 Read NONE "generic" scan::kprefix, "Returns the keys that start with a prefix, in order. Not in Redis.";
    "krange" -3 Read NONE "generic" scan::krange, "Returns the keys between two bounds, in order. Not in Redis.";
    "lastsave" 1 Neither NONE "server" backup::lastsave, "Returns the Unix timestamp of the last successful save to disk.";
    "mget" -2 Read ALL "string" strings::mget, "Atomically returns the string values of one or more keys.";
    "mset" -3 Alone PAIRS "string" sets::mset, "Atomically creates or modifies the string values of one or more keys.";
    "msetnx" -3 Alone PAIRS "string" sets::msetnx, "Atomically modifies the string values of one or more keys only when all keys don't exist.";
    "multi" 1 Neither NONE "transactions" transaction::multi, "Starts a transaction.";
    "persist" 2 Write ONE "generic" expiry::persist, "Removes the expiration time of a key.";
    "pexpire" -3 Write ONE "generic" expiry::pexpire, "Sets the expiration time of a key in milliseconds.";
    "pexpireat" -3 Write ONE "generic" expiry::pexpireat, "Sets the expiration time of a key to a Unix milliseconds timestamp.";
    "pexpiretime" 2 Read ONE "generic" expiry::pexpiretime, "Returns the expiration time of a key as a Unix milliseconds timestamp.";
    "ping" -1 Neither NONE "connection" admin::ping, "Returns the server's liveliness response.";
    "psetex" 4 Write ONE "string" sets::psetex, "Sets both string value and expiration time in milliseconds of a key.";
    "pttl" 2 Read ONE "generic" expiry::pttl, "Returns the expiration time in milliseconds of a key.";
    "quit" -1 Neither NONE "connection" client::quit, "Closes the connection.";
    "randomkey" 1 Read NONE "generic" scan::randomkey, "Returns a random key name from the database.";
    "rename" 3 Alone TWO "generic" keys::rename, "Renames a key and overwrites the destination.";
    "renamenx" 3 Alone TWO "generic" keys::renamenx, "Renames a key only when the target key name doesn't exist.";
    "reset" 1 Neither NONE "connection" client::reset, "Resets the connection.";
    "save" 1 Neither NONE "server" backup::save, "Synchronously saves the database(s) to disk.";
    "scan" -2 Read NONE "generic" scan::scan, "Iterates over the key names in the database.";
    "select" 2 Neither NONE "connection" client::select, "Changes the selected database.";
    "set" -3 Write ONE "string" sets::set, "Sets the string value of a key, ignoring its type.";
    "setex" 4 Write ONE "string" sets::setex, "Sets the string value and expiration time of a key.";
    "setnx" 3 Write ONE "string" sets::setnx, "Set the string value of a key only when the key doesn't exist.";
    "setrange" 4 Write ONE "string" strings::setrange, "Overwrites a part of a string value with another by an offset.";
    "slowlog" -2 Neither NONE "server" slowlog::slowlog, "A container for slow log commands."
        ["get" -2, "help" 2, "len" 2, "reset" 2];
    "strlen" 2 Read ONE "string" strings::strlen, "Returns the length of a string value.";
    "substr" 4 Read ONE "string" strings::getrange, "Returns a substring from a string value.";
    "time" 1 Neither NONE "server" admin::time, "Returns the server time.";
    "touch" -2 Read ALL "generic" keys::exists, "Returns the number of existing keys out of those specified.";
    "ttl" 2 Read ONE "generic" expiry::ttl, "Returns the expiration time in seconds of a key.";
    "type" 2 Read ONE "generic" keys::kind, "Determines the type of value stored at a key.";
    "unlink" -2 Alone ALL "generic" keys::del, "Asynchronously deletes one or more keys.";
    "unwatch" 1 Neither NONE "transactions" transaction::unwatch, "Forgets about watched keys of a transaction.";
    "waitaof" 4 Neither NONE "generic" durable::waitaof, "Blocks until all of the preceding write commands sent by the connection are written to the append-only file of the master and/or replicas.";
    "watch" -2 Read ALL "transactions" transaction::watch, "Monitors changes to keys to determine the execution of a transaction.";
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
