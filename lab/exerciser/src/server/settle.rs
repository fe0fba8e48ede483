//! Compares the server's content after a restart: all acknowledged changes, and those of the other requests that
//! [`decide`] finds carried out.

use super::reply::{Reply, Sent, shown};
use super::step::Step;
use super::truth::{AWAITED, Item, Keys, OWN, Place, SHARED, STALE, now};
use super::user::{Stop, User};
use super::wire::Connection;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The answer about a key after a start.
#[derive(Clone, Debug)]
struct Seen {
    data: Arc<[u8]>,
    /// The remaining lifetime in milliseconds.
    left: Option<u64>,
    sent: Sent,
    /// The properties that only memcached shows.
    fields: Option<MemcachedFields>,
}

#[derive(Clone, Debug)]
struct MemcachedFields {
    flags: u32,
    unique: u64,
    marks: u8,
}

/// Keys per request.
const KEYS_PER_REQUEST: usize = 64;

/// Finds out which requests in flight were carried out, and compares the content of all of the user's keys.
pub(super) fn settle(
    user: &mut User,
    memcached: &mut Connection,
    redis: &mut Connection,
) -> Result<(), Stop> {
    let seen = [
        see_shared(&user.keys, memcached)?,
        see_own(&user.keys, user.number, redis)?,
    ];
    let steps = std::mem::take(&mut user.in_flight);
    if !steps.is_empty() {
        decide(user, &steps, &seen)?;
    }
    for (database, seen) in seen.iter().enumerate() {
        for (n, seen) in seen.iter().enumerate() {
            let place = (database, n);
            let item = user.truth.item(place);
            if !may_show(item, seen.as_ref()) {
                let (key, number) = (shown(&user.keys.all[n]), user.number);
                let database = if database == SHARED { 0 } else { number };
                return Err(Stop::Wrong(format!(
                    "after the start, key {key} of database {database} holds {} instead of {}",
                    describe_seen(seen.as_ref()),
                    describe_item(item)
                )));
            }
            let Some(fields) = seen.as_ref().and_then(|seen| seen.fields.as_ref()) else {
                continue;
            };
            if !user.truth.note_unique(place, fields.unique) {
                let key = shown(&user.keys.all[n]);
                return Err(Stop::Wrong(format!(
                    "after the start, the item {key} has the unique {} of an earlier item",
                    fields.unique
                )));
            }
            let Some(item) = user.truth.items[database][n].as_mut() else {
                continue;
            };
            if item.marks & (STALE | AWAITED) == STALE {
                // The request that read the item was chosen to replace it.
                item.marks |= AWAITED;
            }
        }
    }
    Ok(())
}

/// Returns whether this is a right answer about a key that holds this item.
fn may_show(item: Option<&Item>, seen: Option<&Seen>) -> bool {
    let (item, seen) = match (item, seen) {
        (None, None) => return true,
        (Some(item), Some(seen)) => (item, seen),
        _ => return false,
    };
    let may_be_left = match (item.end, seen.left) {
        (None, None) => true,
        (Some(end), Some(left)) => seen.sent.may_be_left(end, left),
        _ => false,
    };
    let fields_match = |fields: &MemcachedFields| {
        let unique = item.unique.is_none_or(|unique| unique == fields.unique);
        unique && fields.flags == item.flags && fields.marks == item.marks & (STALE | AWAITED)
    };
    may_be_left && seen.data == item.data && seen.fields.as_ref().is_none_or(fields_match)
}

/// The items of each place, with the number of steps after which it holds them.
type Versions = BTreeMap<Place, Vec<(usize, Option<Item>)>>;

fn at(versions: &[(usize, Option<Item>)], done: usize) -> &Option<Item> {
    let behind = versions.partition_point(|version| version.0 <= done);
    &versions[behind.max(1) - 1].1
}

/// Finds out which of the steps in flight were carried out, and changes the truth accordingly. These are a prefix of
/// the steps, but of steps that the server may execute as a group any subset may be carried out.
fn decide(user: &mut User, steps: &[Step], seen: &[Vec<Option<Seen>>; 2]) -> Result<(), Stop> {
    let mut versions = Versions::new();
    let (mut done, mut runs, mut run) = (0, Vec::new(), 0);
    for step in steps {
        if !step.may_be_grouped {
            run = done + 1;
        }
        // A `gat` changes each of its keys separately.
        let apart = step.name.starts_with("gat");
        done += usize::from(!apart);
        for change in &step.changes {
            done += usize::from(apart);
            let of_place = versions
                .entry(change.place)
                .or_insert_with(|| vec![(0, change.old.clone())]);
            match of_place.last_mut() {
                Some(last) if last.0 == done => last.1 = change.new.clone(),
                _ => of_place.push((done, change.new.clone())),
            }
        }
        if step.may_be_grouped {
            runs.push((run, done));
        } else {
            run = done;
        }
    }
    let seen = |place: &Place| seen[place.0][place.1].as_ref();
    let holds = |place: &Place, of_place: &[_], done| may_show(at(of_place, done).as_ref(), seen(place));
    let prefixes = (0..=done).map(|done| (done, done));
    for (from, to) in prefixes.chain(runs) {
        let which = |(place, of_place): (&Place, &Vec<_>)| {
            let done = (from..=to).rev().find(|&done| holds(place, of_place, done))?;
            Some((*place, at(of_place, done).clone()))
        };
        let found: Option<Vec<_>> = versions.iter().map(which).collect();
        if let Some(found) = found {
            for (place, item) in found {
                user.truth.set(place, item);
            }
            return Ok(());
        }
    }
    let mut text = "after the start, no prefix of the requests in flight explains the content".to_owned();
    for (place, of_place) in &versions {
        let may_be = (0..=done).filter(|&done| holds(place, of_place, done));
        text += &format!(
            "\n  database {} key {}: holds {}; held {} before; expected after these numbers of steps: {:?}",
            place.0,
            shown(&user.keys.all[place.1]),
            describe_seen(seen(place)),
            describe_item(of_place[0].1.as_ref()),
            may_be.collect::<Vec<_>>(),
        );
    }
    for step in steps {
        text += &format!("\n  in flight: {:?}: {}", step.protocol, shown(&step.request));
    }
    Err(Stop::Wrong(text))
}

fn describe_item(item: Option<&Item>) -> String {
    item.map_or("nothing".into(), |item| {
        format!(
            "\"{}\" flags {} end {:?} marks {} unique {:?}",
            shown(&item.data),
            item.flags,
            item.end,
            item.marks,
            item.unique
        )
    })
}

fn describe_seen(seen: Option<&Seen>) -> String {
    seen.map_or("nothing".into(), |seen| {
        format!(
            "\"{}\" with {:?} ms left, {:?}",
            shown(&seen.data),
            seen.left,
            seen.fields
        )
    })
}

fn see_shared(keys: &Keys, memcached: &mut Connection) -> Result<Vec<Option<Seen>>, Stop> {
    let mut all = Vec::new();
    for some in keys.all.chunks(KEYS_PER_REQUEST) {
        let from = now();
        for key in some {
            let key = BASE64_STANDARD.encode(key);
            memcached.send(format!("mg {key} b v f t c\r\n").as_bytes())?;
        }
        for key in some {
            let reply = memcached.receive()?;
            let sent = Sent { from, to: now() };
            let seen = match &reply {
                Reply::Line(line) if line == b"EN" => Some(None),
                Reply::Value(line, data) => see(line, data, sent).map(Some),
                _ => None,
            };
            all.push(seen.ok_or_else(|| {
                Stop::Wrong(format!("after the start, mg of {}: answer {reply:?}", shown(key)))
            })?);
        }
    }
    Ok(all)
}

/// Parses the answer to an `mg`: its line and its data.
fn see(line: &[u8], data: &Arc<[u8]>, sent: Sent) -> Option<Seen> {
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split(' ').skip(2);
    let mut word = |label| words.next().and_then(|word| word.strip_prefix(label));
    let flags = word('f')?.parse().ok()?;
    let left = match word('t')? {
        "-1" => None,
        seconds => Some(seconds.parse::<u64>().ok()? * 1000),
    };
    let unique = word('c')?.parse().ok()?;
    let marks = words.map(|word| match word {
        "Z" => AWAITED,
        "X" => STALE,
        _ => 0,
    });
    Some(Seen {
        data: data.clone(),
        left,
        sent,
        fields: Some(MemcachedFields {
            flags,
            unique,
            marks: marks.sum(),
        }),
    })
}

fn see_own(keys: &Keys, user: usize, redis: &mut Connection) -> Result<Vec<Option<Seen>>, Stop> {
    let wrong = |reply: &Reply| Stop::Wrong(format!("after the start, GET and PTTL: answer {reply:?}"));
    let command = |name, key: &[u8]| {
        let expected = super::reply::Expected::Any;
        super::redis::Command::new(name, [key], expected).request()
    };
    redis.send(&command("SELECT", user.to_string().as_bytes()))?;
    redis.receive()?;
    let mut all = Vec::new();
    debug_assert_eq!(
        OWN, 1,
        "`settle` reads the shared database first, then the own one"
    );
    for some in keys.all.chunks(KEYS_PER_REQUEST) {
        let from = now();
        for key in some {
            redis.send(&[command("GET", key), command("PTTL", key)].concat())?;
        }
        for _ in some {
            let data = match redis.receive()? {
                Reply::Null => None,
                Reply::Bulk(data) => Some(data),
                other => return Err(wrong(&other)),
            };
            let left = match redis.receive()? {
                Reply::Int(-2 | -1) => None,
                Reply::Int(left) => u64::try_from(left).ok(),
                other => return Err(wrong(&other)),
            };
            let sent = Sent { from, to: now() };
            all.push(data.map(|data| Seen {
                data,
                left,
                sent,
                fields: None,
            }));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::super::step::ItemChange;
    use super::super::truth::Unique;
    use super::super::wire::Protocol;
    use super::*;

    fn item(text: &str) -> Option<Item> {
        Some(Item {
            data: text.as_bytes().into(),
            flags: 0,
            end: None,
            marks: 0,
            stamp: 0,
            unique: None,
        })
    }

    /// Returns a step that gives these keys their first values.
    fn step(changes: &[(usize, &str)], may_be_grouped: bool) -> Step {
        let changes = changes.iter().map(|&(n, text)| ItemChange {
            place: (OWN, n),
            old: None,
            new: item(text),
        });
        Step {
            name: "MSET",
            protocol: Protocol::Redis,
            request: Vec::new(),
            expected: Vec::new(),
            changes: changes.collect(),
            may_be_grouped,
        }
    }

    /// Returns whether the first keys may have these values after these steps were in flight.
    fn may_be(steps: &[Step], found: &[&str]) -> bool {
        let mut user = User::new(1, 1, 1, true);
        let mut own = vec![None; user.keys.all.len()];
        for (seen, text) in own.iter_mut().zip(found) {
            *seen = (!text.is_empty()).then(|| Seen {
                data: text.as_bytes().into(),
                left: None,
                sent: Sent { from: 0, to: 0 },
                fields: None,
            });
        }
        let shared = vec![None; own.len()];
        let decided = decide(&mut user, steps, &[shared, own]).is_ok();
        let holds = |n: usize, text: &str| {
            let held = user.truth.item((OWN, n)).map(|item| item.data.to_vec());
            held.unwrap_or_default() == text.as_bytes()
        };
        decided && found.iter().enumerate().all(|(n, text)| holds(n, text))
    }

    /// A prefix of the requests in flight was carried out, each as a whole.
    #[test]
    fn a_beginning_is_carried_out() {
        let steps = [
            step(&[(0, "a")], false),
            step(&[(1, "b"), (2, "c")], false),
            step(&[(0, "d")], false),
        ];
        assert!(may_be(&steps, &["", "", ""]));
        assert!(may_be(&steps, &["a", "", ""]));
        assert!(may_be(&steps, &["a", "b", "c"]));
        assert!(may_be(&steps, &["d", "b", "c"]));
        assert!(!may_be(&steps, &["a", "b", ""]), "half of a request");
        assert!(!may_be(&steps, &["d", "", ""]), "an earlier request is missing");
        assert!(!may_be(&steps, &["x", "", ""]), "no request has put the value");
    }

    /// An item keeps a unique that the server showed after a touch of it was sent, whether or not the touch was carried
    /// out.
    #[test]
    fn a_unique_shown_meanwhile_stays() {
        let place = (SHARED, 0);
        let mut user = User::new(1, 1, 1, true);
        user.truth.set(place, item("a"));
        let touch = Step {
            changes: vec![ItemChange {
                place,
                old: item("a"),
                new: item("a"),
            }],
            ..step(&[], false)
        };
        user.truth.set(place, item("a"));
        let shown = Unique {
            place,
            stamp: 0,
            unique: 7,
        };
        assert!(user.truth.note(shown));
        let mut shared = vec![None; user.keys.all.len()];
        let own = shared.clone();
        shared[0] = Some(Seen {
            data: (*b"a").into(),
            left: None,
            sent: Sent { from: 0, to: 0 },
            fields: Some(MemcachedFields {
                flags: 0,
                unique: 7,
                marks: 0,
            }),
        });
        assert!(decide(&mut user, &[touch], &[shared, own]).is_ok());
        let kept = user.truth.item(place).and_then(|item| item.unique);
        assert_eq!((kept, user.truth.outdated[0]), (Some(7), None));
        // The server must not give another item the same unique.
        let next = Item {
            stamp: 1,
            ..item("b").expect("an item")
        };
        user.truth.set(place, Some(next));
        assert_eq!(user.truth.outdated[0], Some(7));
        assert!(!user.truth.note(Unique { stamp: 1, ..shown }));
    }

    /// Of a group of requests any subset may have been carried out, and all requests before the group.
    #[test]
    fn of_those_carried_out_together_any_may_be() {
        let steps = [
            step(&[(0, "a")], false),
            step(&[(1, "b")], true),
            step(&[(2, "c")], true),
            step(&[(3, "d")], false),
        ];
        assert!(may_be(&steps, &["a", "", "c", ""]));
        assert!(may_be(&steps, &["a", "b", "", ""]));
        assert!(!may_be(&steps, &["", "", "c", ""]));
        assert!(!may_be(&steps, &["a", "", "c", "d"]));
    }
}
