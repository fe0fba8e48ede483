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
                "Tell what the client's library is.",
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
            ("DOCS [<command-name> ...]", "Return what commands are for."),
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
                "GET <pattern>",
                "Return parameters matching the glob-like <pattern> and their values.",
            ),
            (
                "SET <directive> <value>",
                "Set the configuration <directive> to <value>.",
            ),
            ("RESETSTAT", "Reset statistics reported by the INFO command."),
            ("REWRITE", "Refused: there is no such file."),
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

/// Replies the subcommands of a command, as Redis does.
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

    /// The help names each subcommand.
    #[test]
    fn each_subcommand_is_told() {
        let all = COMMANDS.iter().flat_map(|command| {
            let words = command.subcommands.iter();
            words.map(|(word, _)| (command.name, *word))
        });
        for (command, word) in all.filter(|(_, word)| *word != "help") {
            let told = TOPICS
                .iter()
                .filter(|(name, _)| name.eq_ignore_ascii_case(command))
                .flat_map(|(_, words)| *words)
                .any(|(words, _)| {
                    let first = words.split(' ').next().unwrap_or_default();
                    first.eq_ignore_ascii_case(word)
                });
            assert!(told, "{command} {word}");
        }
    }
}
