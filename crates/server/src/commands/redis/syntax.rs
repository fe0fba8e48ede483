//! The arguments of each command, for `COMMAND DOCS`.

use crate::proto::redis::reply::Reply;

/// An argument.
#[derive(Clone, Copy)]
pub struct Arg {
    name: &'static str,
    kind: Kind,
    /// The word that precedes it.
    token: Option<&'static str>,
    optional: bool,
    multiple: bool,
}

/// The kind of an argument.
#[derive(Clone, Copy)]
enum Kind {
    /// A key, by its place among the keys.
    Key(i64),
    /// A value of the type with this name.
    Plain(&'static str),
    /// The word alone.
    Token,
    /// One of these.
    OneOf(&'static [Arg]),
    /// All of these.
    Block(&'static [Arg]),
}

impl Arg {
    const fn new(name: &'static str, kind: Kind) -> Arg {
        Arg {
            name,
            kind,
            token: None,
            optional: false,
            multiple: false,
        }
    }

    const fn behind(self, token: &'static str) -> Arg {
        Arg {
            token: Some(token),
            ..self
        }
    }

    const fn optional(self) -> Arg {
        Arg {
            optional: true,
            ..self
        }
    }

    const fn multiple(self) -> Arg {
        Arg {
            multiple: true,
            ..self
        }
    }
}

const fn plain(name: &'static str, kind: &'static str) -> Arg {
    Arg::new(name, Kind::Plain(kind))
}

const fn string(name: &'static str) -> Arg {
    plain(name, "string")
}

const fn integer(name: &'static str) -> Arg {
    plain(name, "integer")
}

const fn token(name: &'static str, token: &'static str) -> Arg {
    Arg::new(name, Kind::Token).behind(token)
}

const fn one_of(name: &'static str, parts: &'static [Arg]) -> Arg {
    Arg::new(name, Kind::OneOf(parts))
}

const fn block(name: &'static str, parts: &'static [Arg]) -> Arg {
    Arg::new(name, Kind::Block(parts))
}

const KEY: Arg = Arg::new("key", Kind::Key(0));
const NEW_KEY: Arg = Arg::new("newkey", Kind::Key(1));
const VALUE: Arg = string("value");
const SECONDS: Arg = integer("seconds");
const MILLISECONDS: Arg = integer("milliseconds");
const AT: Arg = plain("unix-time-seconds", "unix-time");
const AT_MILLISECONDS: Arg = plain("unix-time-milliseconds", "unix-time");
const EX: Arg = SECONDS.behind("EX");
const PX: Arg = MILLISECONDS.behind("PX");
const EXAT: Arg = AT.behind("EXAT");
const PXAT: Arg = AT_MILLISECONDS.behind("PXAT");
const NX: Arg = token("nx", "NX");
const XX: Arg = token("xx", "XX");
const WHEN: Arg = one_of("condition", &[NX, XX, token("gt", "GT"), token("lt", "LT")]).optional();
const FLUSH: Arg = one_of("async", &[token("async", "ASYNC"), token("sync", "SYNC")]).optional();
const LOGIN: Arg = block("username_password", &[string("username"), string("password")]);
const LIMIT: Arg = integer("count").behind("LIMIT").optional();
const REV: Arg = token("rev", "REV").optional();
const WITH_VALUES: Arg = token("withvalues", "WITHVALUES").optional();

/// The arguments of all commands but the containers.
const SYNTAX: &[(&[&str], &[Arg])] = &[
    (&["append", "getset", "setnx"], &[KEY, VALUE]),
    (&["auth"], &[string("username").optional(), string("password")]),
    (
        &[
            "decr",
            "expiretime",
            "get",
            "getdel",
            "incr",
            "persist",
            "pexpiretime",
            "pttl",
            "strlen",
            "ttl",
            "type",
        ],
        &[KEY],
    ),
    (&["bgsave"], &[token("schedule", "SCHEDULE").optional()]),
    (&["decrby"], &[KEY, integer("decrement")]),
    (
        &["del", "exists", "mget", "touch", "unlink", "watch"],
        &[KEY.multiple()],
    ),
    (&["echo"], &[string("message")]),
    (
        &["evalsha"],
        &[
            string("sha1"),
            integer("numkeys"),
            KEY.multiple().optional(),
            string("arg").multiple().optional(),
        ],
    ),
    (&["expire"], &[KEY, SECONDS, WHEN]),
    (&["expireat"], &[KEY, AT, WHEN]),
    (&["flushall", "flushdb"], &[FLUSH]),
    (
        &["getex"],
        &[
            KEY,
            one_of("expiration", &[EX, PX, EXAT, PXAT, token("persist", "PERSIST")]).optional(),
        ],
    ),
    (&["getrange", "substr"], &[KEY, integer("start"), integer("end")]),
    (
        &["hello"],
        &[block(
            "arguments",
            &[
                integer("protover"),
                LOGIN.behind("AUTH").optional(),
                string("clientname").behind("SETNAME").optional(),
            ],
        )
        .optional()],
    ),
    (&["incrby"], &[KEY, integer("increment")]),
    (&["incrbyfloat"], &[KEY, plain("increment", "double")]),
    (&["info"], &[string("section").multiple().optional()]),
    (&["keys"], &[plain("pattern", "pattern")]),
    (&["kprefix"], &[string("prefix"), REV, LIMIT, WITH_VALUES]),
    (
        &["krange"],
        &[string("start"), string("end"), REV, LIMIT, WITH_VALUES],
    ),
    (
        &["mset", "msetnx"],
        &[block("key_value", &[KEY, VALUE]).multiple()],
    ),
    (&["pexpire"], &[KEY, MILLISECONDS, WHEN]),
    (&["pexpireat"], &[KEY, AT_MILLISECONDS, WHEN]),
    (&["ping"], &[string("message").optional()]),
    (&["psetex"], &[KEY, MILLISECONDS, VALUE]),
    (&["rename", "renamenx"], &[KEY, NEW_KEY]),
    (
        &["scan"],
        &[
            integer("cursor"),
            plain("pattern", "pattern").behind("MATCH").optional(),
            integer("count").behind("COUNT").optional(),
            string("type").behind("TYPE").optional(),
        ],
    ),
    (&["select"], &[integer("index")]),
    (
        &["set"],
        &[
            KEY,
            VALUE,
            one_of("condition", &[NX, XX]).optional(),
            token("get", "GET").optional(),
            one_of("expiration", &[EX, PX, EXAT, PXAT, token("keepttl", "KEEPTTL")]).optional(),
        ],
    ),
    (&["setex"], &[KEY, SECONDS, VALUE]),
    (&["setrange"], &[KEY, integer("offset"), VALUE]),
];

/// Returns the arguments of the command with this name.
pub fn of(command: &str) -> &'static [Arg] {
    let found = SYNTAX.iter().find(|(names, _)| names.contains(&command));
    found.map_or(&[], |(_, args)| args)
}

/// Replies the description of arguments.
pub fn describe(reply: &mut Reply<'_>, args: &[Arg]) {
    reply.array(args.len());
    for arg in args {
        let (kind, parts) = match arg.kind {
            Kind::Key(_) => ("key", None),
            Kind::Plain(kind) => (kind, None),
            Kind::Token => ("pure-token", None),
            Kind::OneOf(parts) => ("oneof", Some(parts)),
            Kind::Block(parts) => ("block", Some(parts)),
        };
        let flags = [(arg.optional, "optional"), (arg.multiple, "multiple")];
        let flags = flags.into_iter().filter(|(is, _)| *is).map(|(_, flag)| flag);
        let key = match arg.kind {
            Kind::Key(place) => Some(place),
            _ => None,
        };
        let told = [
            key.is_some(),
            arg.token.is_some(),
            flags.clone().count() > 0,
            parts.is_some(),
        ];
        reply.map(2 + told.into_iter().filter(|told| *told).count());
        let mut pair = |name: &str, value: &str| {
            reply.bulk(name.as_bytes());
            reply.bulk(value.as_bytes());
        };
        pair("name", arg.name);
        pair("type", kind);
        if let Some(token) = arg.token {
            pair("token", token);
        }
        if let Some(place) = key {
            reply.bulk(b"key_spec_index");
            reply.int(place);
        }
        if flags.clone().count() > 0 {
            reply.bulk(b"flags");
            reply.set(flags.clone().count());
            flags.for_each(|flag| reply.simple(flag));
        }
        if let Some(parts) = parts {
            reply.bulk(b"arguments");
            describe(reply, parts);
        }
    }
}
