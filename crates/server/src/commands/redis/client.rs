//! Commands on connections.

use super::catalogue::full_name;
use super::context::Context;
use super::dialect::DIALECT;
use super::error::{Done, NOT_INTEGER, SYNTAX, Wrong, bounded};
use super::help::help;
use crate::items::databases::COUNT;
use crate::items::number;
use crate::net::clients::{Client, DEFAULT, Known};
use crate::proto::redis::VERSION;
use crate::proto::redis::args::Args;
use std::fmt::Write;
use std::sync::Arc;

pub fn select(context: &mut Context<'_>, args: Args<'_>) -> Done {
    const NOT_INT: &str = "ERR value is out of range, value must between -2147483648 and 2147483647";
    let number = number::strict(args.get(1)).ok_or(NOT_INTEGER)?;
    let number = i32::try_from(number).map_err(|_| NOT_INT)?;
    let databases = &context.worker.shared.databases;
    let number = usize::try_from(number).ok().filter(|&number| number < COUNT);
    let number = number.ok_or("ERR DB index is out of range")?;
    context.state.store = databases.select(number)?;
    context.state.db = number;
    context.client.know(|known| known.db = number);
    context.reply.ok();
    Ok(())
}

pub fn quit(context: &mut Context<'_>, _: Args<'_>) -> Done {
    context.state.closing = true;
    context.reply.ok();
    Ok(())
}

pub fn reset(context: &mut Context<'_>, _: Args<'_>) -> Done {
    let databases = &context.worker.shared.databases;
    let state = &mut *context.state;
    state.store = databases.first().clone();
    (state.db, state.resp3, state.queue) = (0, false, None);
    state.watched.clear();
    state.known = context.worker.shared.passwords.is_disabled();
    context.client.know(|known| {
        // The names of the client's library stay, as in Redis.
        *known = Known {
            lib_name: std::mem::take(&mut known.lib_name),
            lib_version: std::mem::take(&mut known.lib_version),
            ..Known::default()
        };
    });
    context.reply.simple("RESET");
    Ok(())
}

const NO_PASSWORD: &str = "ERR AUTH <password> called without any password configured for the default user. \
                           Are you sure your configuration is correct?";
const HELLO_FIRST: &str = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO \
                           AUTH <user> <pass> option can be used to authenticate the client and select the RESP \
                           protocol version at the same time";
const WRONG_PASSWORD: &str = "WRONGPASS invalid username-password pair or user is disabled.";

pub fn auth(context: &mut Context<'_>, args: Args<'_>) -> Done {
    match args.len() {
        2 if context.worker.shared.passwords.is_disabled() => return Err(NO_PASSWORD.into()),
        2 => login(context, DEFAULT, args.get(1))?,
        3 => login(context, args.get(1), args.get(2))?,
        _ => return Err(SYNTAX.into()),
    }
    context.reply.ok();
    Ok(())
}

fn login(context: &mut Context<'_>, user: &[u8], password: &[u8]) -> Done {
    let passwords = &context.worker.shared.passwords;
    if !passwords.authenticate(user, password) {
        return Err(WRONG_PASSWORD.into());
    }
    context.state.known = true;
    context.client.know(|known| known.user = Some(user.to_vec()));
    Ok(())
}

/// `HELLO [protover [AUTH username password] [SETNAME clientname]]`.
pub fn hello(context: &mut Context<'_>, args: Args<'_>) -> Done {
    let mut resp3 = context.state.resp3;
    if args.len() > 1 {
        resp3 = match number::strict(args.get(1)) {
            Some(2) => false,
            Some(3) => true,
            Some(_) => return Err("NOPROTO unsupported protocol version".into()),
            None => return Err("ERR Protocol version is not an integer or out of range".into()),
        };
    }
    let mut name = None;
    let mut i = 2;
    while i < args.len() {
        match args.get(i).to_ascii_uppercase().as_slice() {
            b"AUTH" if i + 2 < args.len() => {
                login(context, args.get(i + 1), args.get(i + 2))?;
                i += 3;
            }
            b"SETNAME" if i + 1 < args.len() => {
                name = Some(word(args.get(i + 1))?);
                i += 2;
            }
            _ => {
                return Err(Wrong::with(
                    "ERR Syntax error in HELLO option '",
                    args.get(i),
                    "'",
                ));
            }
        }
    }
    if !context.state.known {
        return Err(HELLO_FIRST.into());
    }
    context.state.resp3 = resp3;
    context.client.know(|known| {
        known.resp3 = resp3;
        if let Some(name) = name {
            known.name = name;
        }
    });
    let reply = &mut context.reply;
    reply.resp3 = resp3;
    reply.map(7);
    for (key, value) in [("server", "redis"), ("version", VERSION)] {
        reply.bulk(key.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"proto");
    reply.int(if resp3 { 3 } else { 2 });
    reply.bulk(b"id");
    reply.int(context.client.id as i64);
    for (key, value) in [("mode", "standalone"), ("role", "master")] {
        reply.bulk(key.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"modules");
    reply.array(0);
    Ok(())
}

/// The longest name of a client or of its library, in bytes.
const MAX_NAME: usize = 1 << 10;

/// Returns a name, which must have no blanks.
fn word(name: &[u8]) -> Result<String, Wrong> {
    if name.len() > MAX_NAME {
        return Err("ERR the name is longer than 1024 bytes".into());
    }
    let fine = name.iter().all(|byte| (b'!'..=b'~').contains(byte));
    match std::str::from_utf8(name) {
        Ok(name) if fine => Ok(name.to_owned()),
        _ => Err("ERR Client names cannot contain spaces, newlines or special characters.".into()),
    }
}

pub fn client(context: &mut Context<'_>, args: Args<'_>) -> Done {
    match args.get(1).to_ascii_lowercase().as_slice() {
        b"id" => context.reply.int(context.client.id as i64),
        b"getname" => {
            let name = context.client.known().name;
            // As in Redis, an unnamed client gets null.
            let name = Some(name.as_bytes()).filter(|name| !name.is_empty());
            context.reply.bulk_or_null(name);
        }
        b"setname" => {
            let name = word(args.get(2))?;
            context.client.know(|known| known.name = name);
            context.reply.ok();
        }
        b"setinfo" => {
            let value = word(args.get(3)).map_err(|_| info_error(args.get(2)))?;
            let lib_name = match args.get(2).to_ascii_lowercase().as_slice() {
                b"lib-name" => true,
                b"lib-ver" => false,
                other => return Err(Wrong::with("ERR Unrecognized option '", other, "'")),
            };
            context.client.know(|known| match lib_name {
                true => known.lib_name = value,
                false => known.lib_version = value,
            });
            context.reply.ok();
        }
        b"info" => {
            let text = line(context.client);
            context.reply.verbatim(&text);
        }
        b"list" => list(context, args)?,
        b"kill" => kill(context, args)?,
        b"help" => help(context, "client")?,
        // The client asks for notices of servers that move, which do not occur here. The next two are hints, which
        // change nothing.
        b"maint_notifications" => context.reply.ok(),
        b"no-evict" | b"no-touch" => match args.get(2).to_ascii_lowercase().as_slice() {
            b"on" | b"off" => context.reply.ok(),
            _ => return Err(SYNTAX.into()),
        },
        _ => return Err(Wrong::no_subcommand("client", args)),
    }
    Ok(())
}

fn info_error(option: &[u8]) -> Wrong {
    let behind = " cannot contain spaces, newlines or special characters.";
    Wrong::with("ERR ", option, behind)
}

fn list(context: &mut Context<'_>, args: Args<'_>) -> Done {
    let kind = args.get(2).to_ascii_lowercase();
    let mut clients = redis_clients(context);
    match (kind.as_slice(), args.len()) {
        (_, 2) => {}
        (b"type", 4) if is_normal(args.get(3))? => {}
        (b"type", 4) => clients.clear(),
        (b"id", 4..) => {
            let ids: Option<Vec<_>> = args.from(3).map(number::strict).collect();
            let ids = ids.ok_or("ERR Invalid client ID")?;
            // As in Redis, in the order of the ids, each as often as it is named.
            let of = |id: &i64| clients.binary_search_by_key(id, |client| client.id as i64).ok();
            let named = ids.iter().filter_map(of);
            clients = named.map(|place| clients[place].clone()).collect();
        }
        _ => return Err(SYNTAX.into()),
    }
    let mut text = String::new();
    for client in clients {
        text += &line(&client);
        bounded(text.len())?;
    }
    context.reply.verbatim(&text);
    Ok(())
}

/// Returns whether a type of clients is `normal`, the only type that exists here.
fn is_normal(kind: &[u8]) -> Result<bool, Wrong> {
    match kind.to_ascii_lowercase().as_slice() {
        b"normal" => Ok(true),
        b"master" | b"slave" | b"replica" | b"pubsub" => Ok(false),
        _ => Err(Wrong::with("ERR Unknown client type '", kind, "'")),
    }
}

fn redis_clients(context: &Context<'_>) -> Vec<Arc<Client>> {
    let mut clients = context.shared().net.clients.all();
    clients.retain(|client| *client.protocol == DIALECT);
    clients
}

/// Returns a client's line in `CLIENT LIST`: Redis's fields in its order. The file number and the sizes of buffers are
/// unknown, so their values are constant.
fn line(client: &Client) -> String {
    let known = client.known();
    let flags = match (known.queued, client.unix) {
        (Some(_), true) => "xU",
        (Some(_), false) => "x",
        (None, true) => "U",
        (None, false) => "N",
    };
    let mut text = String::new();
    // Writing into memory does not fail.
    let _ = write!(
        text,
        "id={} addr={} laddr={} fd=-1 name={} age={} idle={} flags={flags} db={} sub=0 psub=0 ssub=0 multi={}",
        client.id,
        client.peer,
        laddr(client),
        known.name,
        client.age(),
        client.idle(),
        known.db,
        known.queued.map_or(-1, |queued| queued as i64),
    );
    let _ = writeln!(
        text,
        " qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r cmd={} user={} \
         redir=-1 resp={} lib-name={} lib-ver={}",
        client.command().map_or_else(|| "NULL".to_owned(), full_name),
        String::from_utf8_lossy(known.user()),
        if known.resp3 { 3 } else { 2 },
        known.lib_name,
        known.lib_version,
    );
    text
}

/// Returns the server's end of a connection, under Redis's name.
fn laddr(client: &Client) -> String {
    match client.unix {
        true => format!("{}:0", client.local),
        false => client.local.clone(),
    }
}

/// `CLIENT KILL addr`, or `CLIENT KILL [ID id] [ADDR addr] [LADDR addr] [TYPE normal] [USER user] [SKIPME yes|no]`.
fn kill(context: &mut Context<'_>, args: Args<'_>) -> Done {
    let clients = redis_clients(context);
    if args.len() == 3 {
        let addressed = clients
            .iter()
            .find(|client| client.peer.as_bytes() == args.get(2));
        let addressed = addressed.ok_or("ERR No such client")?;
        end(context, addressed);
        context.reply.ok();
        return Ok(());
    }
    if !args.len().is_multiple_of(2) {
        return Err(SYNTAX.into());
    }
    let mut skip_me = true;
    let mut doomed = clients;
    for i in (2..args.len()).step_by(2) {
        let value = args.get(i + 1);
        match args.get(i).to_ascii_lowercase().as_slice() {
            b"id" => {
                let id = number::strict(value).filter(|&id| id > 0);
                let id = id.ok_or("ERR client-id should be greater than 0")?;
                doomed.retain(|client| client.id == id as u64);
            }
            b"addr" => doomed.retain(|client| client.peer.as_bytes() == value),
            b"laddr" => doomed.retain(|client| laddr(client).as_bytes() == value),
            b"type" if is_normal(value)? => {}
            b"type" => doomed.clear(),
            b"user" => {
                // A user who is no longer in the file of passwords may still be connected.
                let is_user = |client: &Arc<Client>| client.known().user() == value;
                if !context.shared().passwords.has(value) && !redis_clients(context).iter().any(is_user) {
                    return Err(Wrong::with("ERR No such user '", value, "'"));
                }
                doomed.retain(is_user);
            }
            b"skipme" => match value.to_ascii_lowercase().as_slice() {
                b"yes" => skip_me = true,
                b"no" => skip_me = false,
                _ => return Err(SYNTAX.into()),
            },
            _ => return Err(SYNTAX.into()),
        }
    }
    doomed.retain(|client| !skip_me || client.id != context.client.id);
    doomed.iter().for_each(|client| end(context, client));
    context.reply.int(doomed.len() as i64);
    Ok(())
}

/// Ends a client's connection. The connection of the client that asks ends after the answer.
fn end(context: &mut Context<'_>, client: &Client) {
    match client.id == context.client.id {
        true => context.state.closing = true,
        false => client.kill(),
    }
}
