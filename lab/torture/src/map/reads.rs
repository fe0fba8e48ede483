//! Reads of a map that must agree: a walk in each direction, and gets.

use super::shown;
use index::Order;

/// Collects what an iterator yields from its beginning, and what another one like it yields from its end.
///
/// # Errors
///
/// The first that either yields.
#[cfg(feature = "listed")]
pub(crate) fn both_ways<T, E, I: DoubleEndedIterator<Item = Result<T, E>>>(
    entries: impl Fn() -> I,
) -> Result<(Vec<T>, Vec<T>), E> {
    let up = entries().collect::<Result<_, _>>()?;
    Ok((up, entries().rev().collect::<Result<_, _>>()?))
}

/// Checks that walks in both directions show the same entries, each once and in the map's order.
///
/// # Errors
///
/// How they contradict the order or each other.
pub(crate) fn walks_agree<K: AsRef<[u8]>, V: PartialEq>(
    order: Order,
    up: &[(K, V)],
    down: &[(K, V)],
) -> Result<(), String> {
    for pair in up.windows(2) {
        let [one, next] = [&pair[0].0, &pair[1].0].map(AsRef::as_ref);
        if !order.compare(one, next).is_lt() {
            return Err(format!("a walk shows {} after {}", shown(next), shown(one)));
        }
    }
    let is_same = |(one, other): (&(K, V), &(K, V))| one.0.as_ref() == other.0.as_ref() && one.1 == other.1;
    match up.len() == down.len() && up.iter().zip(down.iter().rev()).all(is_same) {
        true => Ok(()),
        false => Err("the walk downward differs from the walk upward".into()),
    }
}

/// Checks that a get of a key answers what a walk has shown: `None` if it has not shown the key.
///
/// # Errors
///
/// How the get contradicts the walk.
pub(crate) fn get_agrees<V: PartialEq>(key: &[u8], walked: Option<V>, got: Option<V>) -> Result<(), String> {
    match (walked, got) {
        (None, Some(_)) => Err(format!("a get finds {}, but no walk does", shown(key))),
        (Some(_), None) => Err(format!("a walk finds {}, but no get does", shown(key))),
        (walked, got) if walked != got => Err(format!("a get of {} differs from the walk", shown(key))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(keys: &str) -> Vec<(String, usize)> {
        keys.chars().map(|key| (key.to_string(), 1)).collect()
    }

    /// Walks that show a key twice or in the wrong place, or that differ, are noticed, in each order.
    #[test]
    fn walks_that_disagree_are_told() {
        let told = |order, up, down| walks_agree(order, &walk(up), &walk(down));
        for (up, down) in [("", ""), ("a", "a"), ("abc", "cba")] {
            told(Order::Keys, up, down).expect("they agree");
        }
        let backward = Order::Ranks(|key| u64::MAX - u64::from(key[0]));
        told(backward, "cba", "abc").expect("they agree");
        for (order, up, down, why) in [
            (Order::Keys, "aab", "baa", "a walk shows \"a\" after \"a\""),
            (Order::Keys, "acb", "bca", "a walk shows \"b\" after \"c\""),
            (backward, "abc", "cba", "a walk shows \"b\" after \"a\""),
            (
                Order::Keys,
                "abc",
                "ca",
                "the walk downward differs from the walk upward",
            ),
            (
                Order::Keys,
                "ab",
                "ab",
                "the walk downward differs from the walk upward",
            ),
        ] {
            assert_eq!(told(order, up, down), Err(why.to_owned()));
        }
    }

    /// A get that finds what no walk shows is noticed, and so are one that finds nothing and one that finds another
    /// value.
    #[test]
    fn gets_that_disagree_are_told() {
        let told = |walked, got| get_agrees(b"a", walked, got);
        assert_eq!((told(None, None), told(Some(1), Some(1))), (Ok(()), Ok(())));
        for (walked, got, why) in [
            (None, Some(1), "a get finds \"a\", but no walk does"),
            (Some(1), None, "a walk finds \"a\", but no get does"),
            (Some(1), Some(2), "a get of \"a\" differs from the walk"),
        ] {
            assert_eq!(told(walked, got), Err(why.to_owned()));
        }
    }
}
