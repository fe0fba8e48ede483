//! The function that carries each command out. This module is above those of the commands, so that those can be above
//! the connection's state.

use super::catalogue::COMMANDS;
use super::context::Context;
use super::error::Done;
use super::{
    admin, backup, client, config, describe, durable, expiry, info, keys, numbers, randomkey, scan, scripts,
    sets, slowlog, strings, transaction,
};
use crate::proto::redis::args::Args;

/// Carries a command out and writes its reply.
type Run = fn(&mut Context<'_>, Args<'_>) -> Done;

macro_rules! table {
    ($($name:literal $run:path;)*) => {
        /// The names again, so that the compiler compares them with the catalogue's.
        const NAMES: &[&str] = &[$($name),*];

        /// The functions, by the commands' numbers.
        static TABLE: &[Run] = &[$($run),*];
    };
}

table! {
    "append" strings::append;
    "auth" client::auth;
    "bgrewriteaof" durable::bgrewriteaof;
    "bgsave" backup::bgsave;
    "client" client::client;
    "command" describe::command;
    "config" config::config;
    "dbsize" keys::dbsize;
    "decr" numbers::decr;
    "decrby" numbers::decrby;
    "del" keys::del;
    "discard" transaction::discard;
    "echo" admin::echo;
    "evalsha" scripts::evalsha;
    "exec" exec;
    "exists" keys::exists;
    "expire" expiry::expire;
    "expireat" expiry::expireat;
    "expiretime" expiry::expiretime;
    "flushall" keys::flushall;
    "flushdb" keys::flushdb;
    "get" strings::get;
    "getdel" strings::getdel;
    "getex" strings::getex;
    "getrange" strings::getrange;
    "getset" sets::getset;
    "hello" client::hello;
    "incr" numbers::incr;
    "incrby" numbers::incrby;
    "incrbyfloat" numbers::incrbyfloat;
    "info" info::info;
    "keys" scan::keys;
    "kprefix" scan::kprefix;
    "krange" scan::krange;
    "lastsave" backup::lastsave;
    "mget" strings::mget;
    "mset" sets::mset;
    "msetnx" sets::msetnx;
    "multi" transaction::multi;
    "persist" expiry::persist;
    "pexpire" expiry::pexpire;
    "pexpireat" expiry::pexpireat;
    "pexpiretime" expiry::pexpiretime;
    "ping" admin::ping;
    "psetex" sets::psetex;
    "pttl" expiry::pttl;
    "quit" client::quit;
    "randomkey" randomkey::randomkey;
    "rename" keys::rename;
    "renamenx" keys::renamenx;
    "reset" client::reset;
    "save" backup::save;
    "scan" scan::scan;
    "select" client::select;
    "set" sets::set;
    "setex" sets::setex;
    "setnx" sets::setnx;
    "setrange" strings::setrange;
    "slowlog" slowlog::slowlog;
    "strlen" strings::strlen;
    "substr" strings::getrange;
    "time" admin::time;
    "touch" keys::exists;
    "ttl" expiry::ttl;
    "type" keys::kind;
    "unlink" keys::del;
    "unwatch" transaction::unwatch;
    "waitaof" durable::waitaof;
    "watch" transaction::watch;
}

const _: () = {
    assert!(
        NAMES.len() == COMMANDS.len(),
        "the table lacks a command, or the catalogue"
    );
    let mut number = 0;
    while number < NAMES.len() {
        let (name, known) = (NAMES[number].as_bytes(), COMMANDS[number].name.as_bytes());
        assert!(
            name.len() == known.len(),
            "the table has another order than the catalogue"
        );
        let mut i = 0;
        while i < name.len() {
            assert!(
                name[i] == known[i],
                "the table has another order than the catalogue"
            );
            i += 1;
        }
        number += 1;
    }
};

/// Carries out the command with this number. Returns whether it succeeded; if not, the reply is its error.
pub fn run(context: &mut Context<'_>, number: usize, args: Args<'_>) -> bool {
    context.attempt(|context| TABLE[number](context, args))
}

/// `EXEC`: the one command that carries others out.
fn exec(context: &mut Context<'_>, _: Args<'_>) -> Done {
    transaction::exec(context, |context, number, args| {
        run(context, number, args);
    })
}
