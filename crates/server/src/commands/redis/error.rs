//! Why a command was refused: the texts of errors.

use crate::items::store::Failure;
use crate::ops::rate_limit;
use crate::proto::redis::args::Args;

/// Why a command was refused: the error's text. It may contain words of the client, which need not be UTF-8.
#[derive(Debug)]
pub struct Wrong(pub Vec<u8>);

/// The result of a command; `Ok` once its reply has been written.
pub type Done = Result<(), Wrong>;

pub const SYNTAX: &str = "ERR syntax error";
pub const NOT_INTEGER: &str = "ERR value is not an integer or out of range";
pub const TOO_LONG: &str = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
const TOO_MUCH: &str = "ERR the reply would be longer than 64 MiB: ask for less at a time";

/// The longest reply, in bytes, and the shortest that is too long.
const LONGEST_REPLY: usize = 64 << 20;
pub const TOO_LONG_REPLY: usize = LONGEST_REPLY + 1;

impl Wrong {
    /// Creates an error with a word of the client's between two texts. Redis shows such a word up to a zero byte.
    pub fn with(before: &str, word: &[u8], behind: &str) -> Wrong {
        Wrong([before.as_bytes(), as_text(word), behind.as_bytes()].concat())
    }

    /// Creates the error for a subcommand that does not exist.
    pub fn no_subcommand(command: &str, args: Args<'_>) -> Wrong {
        let word = args.get(1);
        let behind = format!("'. Try {} HELP.", command.to_ascii_uppercase());
        Wrong::with("ERR unknown subcommand '", &word[..word.len().min(128)], &behind)
    }

    /// Creates the error for a command with the wrong number of words.
    pub fn arity(command: &str) -> Wrong {
        Wrong::from(format!("ERR wrong number of arguments for '{command}' command"))
    }
}

/// Returns the part of a word that Redis shows: it ends before a zero byte.
pub fn as_text(word: &[u8]) -> &[u8] {
    word.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// Refuses a reply that is longer than the longest one allowed.
pub fn bounded(length: usize) -> Done {
    match length > LONGEST_REPLY {
        true => Err(TOO_MUCH.into()),
        false => Ok(()),
    }
}

/// Returns the error for a change that the log has refused, and for one that a failed sync may have lost.
pub fn misconf(why: &str) -> String {
    format!("MISCONF Errors writing to the AOF file: {why}")
}

impl From<String> for Wrong {
    fn from(text: String) -> Wrong {
        Wrong(text.into_bytes())
    }
}

impl From<&str> for Wrong {
    fn from(text: &str) -> Wrong {
        Wrong(text.as_bytes().to_vec())
    }
}

impl From<Failure> for Wrong {
    fn from(failure: Failure) -> Wrong {
        rate_limit::failed("redis", &failure);
        if let Failure::NoRoom = failure {
            return "OOM command not allowed when used memory > 'maxmemory'.".into();
        }
        match failure {
            Failure::Index(index::Error::Refused(_) | index::Error::NotDurable(_)) => {
                Wrong::from(misconf(&failure.to_string()))
            }
            _ => Wrong::from(format!("ERR {failure}")),
        }
    }
}

impl From<index::Error> for Wrong {
    fn from(error: index::Error) -> Wrong {
        Failure::from(error).into()
    }
}

impl From<crate::Error> for Wrong {
    fn from(error: crate::Error) -> Wrong {
        Wrong::from(format!("ERR {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::redis::reply::Reply;

    /// An error shows the client's bytes as they came, up to a zero byte, without line ends.
    #[test]
    fn errors_show_the_clients_bytes() {
        let mut out = Vec::new();
        let Wrong(text) = Wrong::with("ERR '", b"a\xff\r\n\xc3\0b", "'");
        Reply {
            out: &mut out,
            resp3: false,
        }
        .error(&text);
        assert_eq!(out, b"-ERR 'a\xff  \xc3'\r\n");
    }
}
