//! `MULTI`, commands, `EXEC`: one step, of which a crash leaves all changes or none.

use super::super::reply::{Expected, Reply};
use super::super::step::{Draw, Step};
use super::super::wire::Protocol;
use super::{Command, command, error, line};

fn bare(name: &'static str, expected: Expected) -> Command {
    Command::new(name, [""; 0], expected)
}

/// Draws a transaction: carried out, discarded, or aborted by the server.
pub fn transaction(draw: &mut Draw<'_>) -> Step {
    match draw.random.below(12) {
        0 => given_up(draw),
        1 => refused(draw),
        _ => exec(draw, true),
    }
}

/// Draws a transaction of several commands. If a watched key has changed (`carried_out` is false), the server carries
/// out none of them.
pub fn exec(draw: &mut Draw<'_>, carried_out: bool) -> Step {
    let mut request = bare("MULTI", Expected::Any).request();
    let mut expected = vec![line("OK")];
    let mut answers = Vec::new();
    let before = draw.truth.clone();
    for _ in 0..1 + draw.random.below(8) {
        let command = command(draw);
        request.extend(command.request());
        expected.push(line("QUEUED"));
        answers.push(command.expected);
    }
    request.extend(bare("EXEC", Expected::Any).request());
    expected.push(match carried_out {
        true => Expected::All(answers),
        false => Expected::Is(Reply::Null),
    });
    let mut step = draw.step("EXEC", Protocol::Redis, request, expected);
    if !carried_out {
        *draw.truth = before;
        step.changes.clear();
    }
    step
}

fn given_up(draw: &mut Draw<'_>) -> Step {
    let place = draw.place();
    let set = Command::new("SET", [draw.key(place), b"never"], line("QUEUED"));
    let commands = [bare("MULTI", line("OK")), set, bare("DISCARD", line("OK"))];
    joined(draw, "DISCARD", commands)
}

/// Draws a transaction with an invalid command, which the server does not carry out.
fn refused(draw: &mut Draw<'_>) -> Step {
    let place = draw.place();
    let set = Command::new("SET", [draw.key(place), b"never"], line("QUEUED"));
    let wrong = Command::new(
        "GET",
        [""; 0],
        error("ERR wrong number of arguments for 'get' command"),
    );
    let aborted = error("EXECABORT Transaction discarded because of previous errors.");
    joined(
        draw,
        "EXEC",
        [bare("MULTI", line("OK")), set, wrong, bare("EXEC", aborted)],
    )
}

fn joined<const N: usize>(draw: &mut Draw<'_>, name: &'static str, commands: [Command; N]) -> Step {
    let request = commands.iter().flat_map(Command::request).collect();
    let expected = commands.into_iter().map(|command| command.expected).collect();
    draw.step(name, Protocol::Redis, request, expected)
}
