//! All commands by name: the words they take, and what they do to the data.
//!
//! Not here: the functions that carry the commands out (`table`). That module is above those of the commands, which may
//! use this catalogue.

use super::command::{Command, Kind, takes};
use super::error::Wrong;
use crate::proto::redis::args::Args;

const ONE: (i64, i64, i64) = (1, 1, 1);
const TWO: (i64, i64, i64) = (1, 2, 1);
/// All arguments are keys.
pub const ALL: (i64, i64, i64) = (1, -1, 1);
const PAIRS: (i64, i64, i64) = (1, -1, 2);
const NONE: (i64, i64, i64) = (0, 0, 0);

macro_rules! commands {
    ($($name:literal $arity:literal $kind:ident $keys:ident $group:literal, $about:literal
        $([$($word:literal $words:literal),*])?;)*) => {
        /// All commands, by name.
        pub static COMMANDS: &[Command] = &numbered([$(Command {
            number: 0, name: $name, arity: $arity, kind: Kind::$kind, keys: $keys, group: $group, about: $about,
            subcommands: &[$($(($word, $words)),*)?], first_subcommand: 0,
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
    "append" 3 Write ONE "string", "Appends a string to the value of a key.";
    "auth" -2 Neither NONE "connection", "Authenticates the connection.";
    "bgrewriteaof" 1 Neither NONE "server", "Asynchronously rewrites the append-only file to disk.";
    "bgsave" -1 Neither NONE "server", "Asynchronously saves the database(s) to disk.";
    "client" -2 Neither NONE "connection", "A container for client connection commands."
        ["getname" 2, "help" 2, "id" 2, "info" 2, "kill" -3, "list" -2, "maint_notifications" -3,
         "no-evict" 3, "no-touch" 3, "setinfo" 4, "setname" 3];
    "command" -1 Neither NONE "server", "Returns detailed information about all commands."
        ["count" 2, "docs" -2, "getkeys" -4, "help" 2, "info" -2, "list" -2];
    "config" -2 Neither NONE "server", "A container for server configuration commands."
        ["get" -3, "help" 2, "resetstat" 2, "rewrite" 2, "set" -4];
    "dbsize" 1 Read NONE "server", "Returns the number of keys in the database.";
    "decr" 2 Write ONE "string", "Decrements the integer value of a key by one.";
    "decrby" 3 Write ONE "string", "Decrements a number from the integer value of a key.";
    "del" -2 Alone ALL "generic", "Deletes one or more keys.";
    "discard" 1 Neither NONE "transactions", "Discards a transaction.";
    "echo" 2 Neither NONE "connection", "Returns the given string.";
    "evalsha" -3 Write NONE "scripting", "Executes a server-side Lua script by SHA1 digest.";
    "exec" 1 Alone NONE "transactions", "Executes all commands in a transaction.";
    "exists" -2 Read ALL "generic", "Determines whether one or more keys exist.";
    "expire" -3 Write ONE "generic", "Sets the expiration time of a key in seconds.";
    "expireat" -3 Write ONE "generic", "Sets the expiration time of a key to a Unix timestamp.";
    "expiretime" 2 Read ONE "generic", "Returns the expiration time of a key as a Unix timestamp.";
    "flushall" -1 Alone NONE "server", "Removes all keys from all databases.";
    "flushdb" -1 Alone NONE "server", "Remove all keys from the current database.";
    "get" 2 Read ONE "string", "Returns the string value of a key.";
    "getdel" 2 Write ONE "string", "Returns the string value of a key after deleting the key.";
    "getex" -2 Write ONE "string", "Returns the string value of a key after setting its expiration time.";
    "getrange" 4 Read ONE "string", "Returns a substring of the string stored at a key.";
    "getset" 3 Write ONE "string", "Returns the previous string value of a key after setting it to a new value.";
    "hello" -1 Neither NONE "connection", "Handshakes with the server.";
    "incr" 2 Write ONE "string", "Increments the integer value of a key by one.";
    "incrby" 3 Write ONE "string", "Increments the integer value of a key by a number.";
    "incrbyfloat" 3 Write ONE "string", "Increment the floating point value of a key by a number.";
    "info" -1 Neither NONE "server", "Returns information and statistics about the server.";
    "keys" 2 Read NONE "generic", "Returns all key names that match a pattern.";
    "kprefix" -2 Read NONE "generic", "Returns the keys that start with a prefix, in order. Not in Redis.";
    "krange" -3 Read NONE "generic", "Returns the keys between two bounds, in order. Not in Redis.";
    "lastsave" 1 Neither NONE "server", "Returns the Unix timestamp of the last successful save to disk.";
    "mget" -2 Read ALL "string", "Atomically returns the string values of one or more keys.";
    "mset" -3 Alone PAIRS "string", "Atomically creates or modifies the string values of one or more keys.";
    "msetnx" -3 Alone PAIRS "string",
        "Atomically modifies the string values of one or more keys only when all keys don't exist.";
    "multi" 1 Neither NONE "transactions", "Starts a transaction.";
    "persist" 2 Write ONE "generic", "Removes the expiration time of a key.";
    "pexpire" -3 Write ONE "generic", "Sets the expiration time of a key in milliseconds.";
    "pexpireat" -3 Write ONE "generic", "Sets the expiration time of a key to a Unix milliseconds timestamp.";
    "pexpiretime" 2 Read ONE "generic", "Returns the expiration time of a key as a Unix milliseconds timestamp.";
    "ping" -1 Neither NONE "connection", "Returns the server's liveliness response.";
    "psetex" 4 Write ONE "string", "Sets both string value and expiration time in milliseconds of a key.";
    "pttl" 2 Read ONE "generic", "Returns the expiration time in milliseconds of a key.";
    "quit" -1 Neither NONE "connection", "Closes the connection.";
    "randomkey" 1 Read NONE "generic", "Returns a random key name from the database.";
    "rename" 3 Alone TWO "generic", "Renames a key and overwrites the destination.";
    "renamenx" 3 Alone TWO "generic", "Renames a key only when the target key name doesn't exist.";
    "reset" 1 Neither NONE "connection", "Resets the connection.";
    "save" 1 Neither NONE "server", "Synchronously saves the database(s) to disk.";
    "scan" -2 Read NONE "generic", "Iterates over the key names in the database.";
    "select" 2 Neither NONE "connection", "Changes the selected database.";
    "set" -3 Write ONE "string", "Sets the string value of a key, ignoring its type.";
    "setex" 4 Write ONE "string", "Sets the string value and expiration time of a key.";
    "setnx" 3 Write ONE "string", "Set the string value of a key only when the key doesn't exist.";
    "setrange" 4 Write ONE "string", "Overwrites a part of a string value with another by an offset.";
    "slowlog" -2 Neither NONE "server", "A container for slow log commands."
        ["get" -2, "help" 2, "len" 2, "reset" 2];
    "strlen" 2 Read ONE "string", "Returns the length of a string value.";
    "substr" 4 Read ONE "string", "Returns a substring from a string value.";
    "time" 1 Neither NONE "server", "Returns the server time.";
    "touch" -2 Read ALL "generic", "Returns the number of existing keys out of those specified.";
    "ttl" 2 Read ONE "generic", "Returns the expiration time in seconds of a key.";
    "type" 2 Read ONE "generic", "Determines the type of value stored at a key.";
    "unlink" -2 Alone ALL "generic", "Asynchronously deletes one or more keys.";
    "unwatch" 1 Neither NONE "transactions", "Forgets about watched keys of a transaction.";
    "waitaof" 4 Neither NONE "generic",
        "Blocks until all of the preceding write commands sent by the connection are written to the append-only file \
         of the master and/or replicas.";
    "watch" -2 Read ALL "transactions", "Monitors changes to keys to determine the execution of a transaction.";
}

/// Returns the number of a command, or, if it is a container, of the subcommand that these words name.
pub fn number_of(command: &Command, args: Args<'_>) -> Result<usize, Wrong> {
    if command.subcommands.is_empty() || args.len() < 2 {
        return Ok(command.number);
    }
    let mut numbered = (command.first_subcommand..).zip(command.subcommands);
    let named = numbered.find(|(_, (word, _))| args.get(1).eq_ignore_ascii_case(word.as_bytes()));
    let (number, (word, arity)) = named.ok_or_else(|| Wrong::no_subcommand(command.name, args))?;
    match takes(*arity, args.len()) {
        true => Ok(number),
        false => Err(Wrong::arity(&format!("{}|{word}", command.name))),
    }
}

/// Returns the name of the command or subcommand with this number.
pub fn full_name(number: usize) -> String {
    if let Some(command) = COMMANDS.get(number) {
        return command.name.to_owned();
    }
    let named = COMMANDS.iter().find_map(|command| {
        let (word, _) = command
            .subcommands
            .get(number.checked_sub(command.first_subcommand)?)?;
        Some(format!("{}|{word}", command.name))
    });
    named.unwrap_or_default()
}

/// Finds the command of this name, in any case.
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

/// Bytes of the longest name, or more.
const LONGEST_NAME: usize = 16;

/// Where the commands of each first letter begin; the last entry is the number of commands.
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

    /// The catalogue is in order, so that each command is found, in any case.
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
