//! Redis's protocol, as sockets and metrics know it.

use super::catalogue::COMMANDS;
use super::error::misconf;
use crate::net::dialect::Dialect;
use crate::proto::redis::reply::Reply;

/// Redis's protocol.
pub static DIALECT: Dialect = Dialect {
    place: 1,
    name: "redis",
    too_many: b"-ERR max number of clients reached\r\n",
    not_durable: |why| {
        let mut out = Vec::new();
        let resp3 = false; // An error is the same in both versions.
        Reply { out: &mut out, resp3 }.error(misconf(why));
        out
    },
    command: |number| COMMANDS.get(number).map(|command| command.name),
};
