//! Commands on the expiry of keys.

use super::super::reply::{Expected, Reply};
use super::super::step::{Draw, Life};
use super::super::truth::{End, Item, Place, now};
use super::{Command, int};

const NAMES: [&str; 13] = [
    "EXPIRE",
    "PEXPIRE",
    "EXPIREAT",
    "PEXPIREAT",
    "PERSIST",
    "PERSIST",
    "TTL",
    "PTTL",
    "EXPIRETIME",
    "PEXPIRETIME",
    "GETEX",
    "GETEX",
    "EVALSHA",
];

pub(super) fn draw(draw: &mut Draw<'_>) -> Command {
    let place = draw.place();
    let key = draw.key(place);
    let old = draw.item(place);
    match draw.random.pick(&NAMES) {
        name @ ("EXPIRE" | "PEXPIRE" | "EXPIREAT" | "PEXPIREAT") => expire(draw, place, name),
        "PERSIST" => {
            let ends = old.as_ref().is_some_and(|old| old.end.is_some());
            if let Some(old) = old.filter(|_| ends) {
                retime(draw, place, &old, Life::Endless);
            }
            Command::new("PERSIST", [key], int(ends.into()))
        }
        "GETEX" => getex(draw, place),
        "EVALSHA" => lock(draw, place),
        name => {
            let expected = match old.map(|old| old.end) {
                None => int(-2),
                Some(None) => int(-1),
                Some(Some(end)) => match name {
                    "TTL" => Expected::Left(end, 1000),
                    "PTTL" => Expected::Left(end, 1),
                    "EXPIRETIME" => Expected::Ends(end, 1000),
                    _ => Expected::Ends(end, 1),
                },
            };
            Command::new(name, [key], expected)
        }
    }
}

/// Draws an expiry option: the option's word, its time, and the lifetime that they mean.
pub(super) fn lifetime(draw: &mut Draw<'_>) -> (&'static str, u64, Life) {
    let seconds = 20_000 + draw.random.below(1_000_000);
    let second = now() / 1000 + 3_000_000 + draw.random.below(1_000_000);
    match draw.random.pick(&["EX", "PX", "EXAT", "PXAT"]) {
        "EX" => ("EX", seconds, Life::Until(End::after(seconds * 1000))),
        "PX" => (
            "px",
            seconds * 1000 + 3,
            Life::Until(End::after(seconds * 1000 + 3)),
        ),
        "EXAT" => ("EXAT", second, Life::Until(End::at(second * 1000))),
        _ => ("PXAT", second * 1000 + 7, Life::Until(End::at(second * 1000 + 7))),
    }
}

/// Gives an item another lifetime and a new unique.
fn retime(draw: &mut Draw<'_>, place: Place, old: &Item, life: Life) {
    draw.put(place, old.data.clone(), old.flags, old.marks, life);
}

fn expire(draw: &mut Draw<'_>, place: Place, name: &'static str) -> Command {
    let old = draw.item(place);
    let unit = if name.starts_with('P') { 1000 } else { 1 };
    let absolute = name.ends_with("AT");
    let is_past = draw.random.one_in(8);
    // Absolute times are later than all relative ones.
    let (time, end) = match (is_past, absolute) {
        (true, true) => (1000, None),
        (true, false) => (-1, None),
        (false, true) => {
            let second = now() / 1000 + 5_000_000 + draw.random.below(1_000_000);
            (second as i64, Some(End::at(second * 1000)))
        }
        (false, false) => {
            let seconds = 20_000 + draw.random.below(1_000_000);
            (seconds as i64, Some(End::after(seconds * 1000)))
        }
    };
    let option = draw.random.pick(&["", "", "", "NX", "XX", "GT", "LT"]);
    let may_be = |order: fn(&End, &End) -> bool| match (old.as_ref().and_then(|old| old.end), &end) {
        (Some(old), Some(new)) => order(&old, new),
        // A time in the past is earlier than any item's.
        _ => false,
    };
    let has = old.as_ref().is_some_and(|old| old.end.is_some());
    // If it is unknown which of the two lifetimes ends later, no condition is given.
    let clear = !has || end.is_none() || may_be(|old, new| old.high < new.low || new.high < old.low);
    let option = if clear { option } else { "" };
    let later = may_be(|old, new| old.high < new.low);
    let allowed = match option {
        "NX" => !has,
        "XX" => has,
        "GT" => has && later,
        "LT" => !has || !later,
        _ => true,
    };
    let done = old.is_some() && allowed;
    if let Some(old) = old.filter(|_| done) {
        retime(draw, place, &old, end.map_or(Life::Expired, Life::Until));
    }
    let command = Command::new(name, [draw.key(place)], int(done.into())).with([(time * unit).to_string()]);
    match option {
        "" => command,
        option => command.with([option]),
    }
}

fn getex(draw: &mut Draw<'_>, place: Place) -> Command {
    let old = draw.item(place);
    let expected = Expected::Is(Reply::bulk(old.as_ref().map(|old| &old.data)));
    let command = Command::new("GETEX", [draw.key(place)], expected);
    match draw.random.below(3) {
        0 => command,
        1 => {
            if let Some(old) = old.filter(|old| old.end.is_some()) {
                retime(draw, place, &old, Life::Endless);
            }
            command.with(["PERSIST"])
        }
        _ => {
            let (unit, time, life) = lifetime(draw);
            if let Some(old) = old {
                retime(draw, place, &old, life);
            }
            command.with([unit.to_owned(), time.to_string()])
        }
    }
}

/// Draws a script of redis-py's locks: release or reacquire.
fn lock(draw: &mut Draw<'_>, place: Place) -> Command {
    const RELEASE: &str = "c3f8721cbb97f72bc19e972846bd7aaf91901658";
    const REACQUIRE: &str = "1cac51482acf5858da00f6d685d68f886cd6b6b2";
    let old = draw.item(place);
    let right = !draw.random.one_in(3);
    let holder = match &old {
        Some(old) if right => old.data.to_vec(),
        _ => b"another holder".to_vec(),
    };
    let held = old.filter(|old| *old.data == *holder);
    let expected = int(held.is_some().into());
    let releases = draw.random.one_in(2);
    if let Some(held) = held {
        match releases {
            true => draw.set(place, None),
            false => retime(draw, place, &held, Life::Until(End::after(50_000_000))),
        }
    }
    let script = if releases { RELEASE } else { REACQUIRE };
    let command = Command::new("EVALSHA", [script, "1"], expected).with([draw.key(place), &*holder]);
    if releases {
        command
    } else {
        command.with(["50000000"])
    }
}
