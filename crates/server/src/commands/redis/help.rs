//! `HELP` of the commands that have subcommands.

use super::context::Context;
use super::error::Done;

/// The commands with their subcommands, and what each does.
const TOPICS: &[(&str, &[(&str, &str)])] = &[
    (
        "CLIENT",
        &[
            ("GETNAME", "Return the name of the current connection."),
            ("ID", "Return the ID of the current connection."),
            ("INFO", "Return information about the current client connection."),
            ("KILL <ip:port>", "Kill connection made from <ip:port>."),
            (
                "KILL <option> <value> [<option> <value> [...]]",
                "Kill connections. Options are: ADDR, LADDR, ID, TYPE, USER, SKIPME.",
            ),
            (
                "LIST [TYPE <type>] [ID <id> [<id> ...]]",
                "Return information about client connections.",
            ),
            (
                "MAINT_NOTIFICATIONS <arg> [<arg> ...]",
                "Accepted; no such notice is ever sent.",
            ),
            ("NO-EVICT (ON|OFF)", "Accepted, and changes nothing."),
            ("NO-TOUCH (ON|OFF)", "Accepted, and changes nothing."),
            (
                "SETINFO (LIB-NAME|LIB-VER) <value>",
                "Set the name or version of the client's library.",
            ),
            (
                "SETNAME <name>",
                "Assign the name <name> to the current connection.",
            ),
        ],
    ),
    (
        "COMMAND",
        &[
            ("(no subcommand)", "Return details about all commands."),
            ("COUNT", "Return the total number of commands in this server."),
            (
                "DOCS [<command-name> ...]",
                "Return the documentation of commands.",
            ),
            (
                "GETKEYS <full-command>",
                "Return the keys from a full Redis command.",
            ),
            ("INFO [<command-name> ...]", "Return details about commands."),
            (
                "LIST [FILTERBY PATTERN <pattern>]",
                "Return a list of all commands in this server.",
            ),
        ],
    ),
    (
        "CONFIG",
        &[
            (
                "GET <pattern> [<pattern> ...]",
                "Return parameters matching one of the glob-like <pattern>s, and their values.",
            ),
            (
                "SET <directive> <value> [<directive> <value> ...]",
                "Set each configuration <directive> to its <value>.",
            ),
            ("RESETSTAT", "Reset statistics reported by the INFO command."),
            (
                "REWRITE",
                "Refused: the server does not write its configuration file.",
            ),
        ],
    ),
    (
        "SLOWLOG",
        &[
            (
                "GET [<count>]",
                "Return the newest <count> entries (default: 10, -1: all).",
            ),
            ("LEN", "Return the length of the slowlog."),
            ("RESET", "Reset the slowlog."),
        ],
    ),
];

/// Replies with the help of a command's subcommands, in Redis's form.
pub fn help(context: &mut Context<'_>, command: &str) -> Done {
    let topic = TOPICS.iter().find(|(name, _)| name.eq_ignore_ascii_case(command));
    let words = topic.map_or(&[][..], |(_, words)| words);
    let head = format!(
        "{} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        command.to_ascii_uppercase()
    );
    context.reply.array(1 + 2 * (words.len() + 1));
    context.reply.simple(&head);
    for (words, does) in words.iter().chain(&[("HELP", "Prints this help.")]) {
        context.reply.simple(words);
        context.reply.simple(&format!("    {does}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::redis::catalogue::COMMANDS;

    /// The help lists each subcommand.
    #[test]
    fn help_lists_each_subcommand() {
        let all = COMMANDS.iter().flat_map(|command| {
            let words = command.subcommands.iter();
            words.map(|(word, _)| (command.name, *word))
        });
        for (command, word) in all.filter(|(_, word)| *word != "help") {
            let is_listed = TOPICS
                .iter()
                .filter(|(name, _)| name.eq_ignore_ascii_case(command))
                .flat_map(|(_, words)| *words)
                .any(|(words, _)| {
                    let first = words.split(' ').next().unwrap_or_default();
                    first.eq_ignore_ascii_case(word)
                });
            assert!(is_listed, "{command} {word}");
        }
    }
}
