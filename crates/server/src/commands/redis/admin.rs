//! Short commands on the server itself.

use super::context::Context;
use super::error::Done;
use crate::proto::redis::args::Args;

pub fn ping(context: &mut Context<'_>, args: Args<'_>) -> Done {
    match args.len() {
        1 => context.reply.simple("PONG"),
        2 => context.reply.bulk(args.get(1)),
        _ => return Err("ERR wrong number of arguments for 'ping' command".into()),
    }
    Ok(())
}

pub fn echo(context: &mut Context<'_>, args: Args<'_>) -> Done {
    context.reply.bulk(args.get(1));
    Ok(())
}

pub fn time(context: &mut Context<'_>, _: Args<'_>) -> Done {
    context.reply.array(2);
    context.reply.bulk((context.now / 1000).to_string().as_bytes());
    context
        .reply
        .bulk((context.now % 1000 * 1000).to_string().as_bytes());
    Ok(())
}
