//! Draws random meta commands of memcached, with the answers that the model expects.
//!
//! | file | idea |
//! |---|---|
//! | `command` | a key and flags, and the words that the flags add to the answer |
//! | `writes` | `ms`, `md`, `ma` |

mod command;
mod writes;

use super::edits::{lifetime, touch};
use super::reply::{Expected, Word};
use super::step::{Draw, Life, Step};
use super::truth::{AWAITED, BINARY_KEY, End, Item, STALE};
use command::{Command, Shown};
pub(super) use writes::{count, delete, set};

/// Draws an `mg`, which may touch the item (`T`), create it (`N`, autovivify), or win the right to recache it (`R`,
/// `W`).
pub(super) fn get(draw: &mut Draw<'_>) -> Step {
    let mut command = Command::draw(draw);
    let place = command.place;
    let old = draw.item(place);
    let (mut touched, mut vivified, mut recaches) = (None, None, false);
    match draw.random.below(10) {
        0 | 1 => {
            let (word, life) = lifetime(draw);
            command.flags.push(format!("T{word}"));
            touched = Some(life);
        }
        2 => {
            command.flags.push("N30000".into());
            vivified = Some(Life::Until(End::after(30_000_000)));
        }
        3 => {
            let may_be_later = |item: &Item| {
                item.end
                    .is_some_and(|end| end.low > End::after(2_300_000_000).low)
            };
            // The client wins if less than this is left, in seconds: the high threshold is above every relative
            // lifetime drawn, the low one below every lifetime.
            match draw.random.one_in(2) {
                false => command.flags.push("R30".into()),
                // An absolute expiry may lie beyond even the high threshold: the answer would depend on the clock.
                true if old.as_ref().is_some_and(may_be_later) => {}
                true => {
                    command.flags.push("R2500000".into());
                    recaches = true;
                }
            }
        }
        _ => {}
    }
    command.some_of(draw, &["v", "f", "s", "c", "k", "Oabc", "q"]);
    // If the command lets the item expire immediately, its remaining lifetime depends on the clock.
    if !matches!(touched, Some(Life::Expired)) {
        command.some_of(draw, &["t"]);
    }
    let request = command.request(draw, "mg", None);
    let made = old.is_none() && vivified.is_some();
    if let (true, Some(life)) = (made, vivified) {
        draw.put(place, [].into(), 0, 0, life);
    }
    if let Some(life) = touched {
        let shown = touch(draw, place, life);
        // An item that expires by this command is still shown in this answer.
        if let (Life::Expired, Some(item)) = (life, shown) {
            let won = item.marks & (STALE | AWAITED) == STALE;
            let answer = shown_item(draw, &command, &item, won);
            return command.step(draw, "mg", request, Some(answer));
        }
    }
    let Some(item) = draw.item(place) else {
        let words = command.words(draw, &["EN"], Shown::Nothing, command.binary);
        let answer = (!command.has("q")).then_some(Expected::Line(words));
        return command.step(draw, "mg", request, answer);
    };
    let awaited = item.marks & AWAITED != 0;
    let won = made || !awaited && (item.marks & STALE != 0 || recaches && item.end.is_some());
    let answer = shown_item(draw, &command, &item, won);
    if won {
        let marks = item.marks | AWAITED;
        draw.set(place, Some(Item { marks, ..item }));
    }
    command.step(draw, "mg", request, Some(answer))
}

/// Returns the answer that shows an item; `won`: this client was told to recache it.
fn shown_item(draw: &Draw<'_>, command: &Command, item: &Item, won: bool) -> Expected {
    let marks = [
        (item.marks & AWAITED != 0, "Z"),
        (item.marks & STALE != 0, "X"),
        (won, "W"),
    ];
    let marks: Vec<_> = marks.iter().filter(|mark| mark.0).map(|mark| mark.1).collect();
    let binary = item.marks & BINARY_KEY != 0;
    command.answer(draw, Shown::Item(item), binary, &item.data, &marks)
}

/// Draws an `me`, whose answer shows how long ago the last access was, and so depends on the clock.
pub(super) fn debug(draw: &mut Draw<'_>) -> Step {
    let command = Command::draw(draw);
    let request = command.request(draw, "me", None);
    let answer = match draw.item(command.place) {
        Some(_) => Expected::Any,
        None => Expected::Line(vec![Word::is("EN")]),
    };
    command.step(draw, "me", request, Some(answer))
}
