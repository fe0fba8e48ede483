//! The order in which the engines of a comparison run.

/// Returns the order of turns in slice or round number `slice`. Over `2 * turns` slices in a row each participant goes
/// first twice, and follows either of its neighbours equally often.
pub fn order(slice: usize, turns: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..turns).collect();
    order.rotate_left(slice / 2 % turns.max(1));
    if slice % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Over four slices per participant, all go first equally often and follow either neighbour equally often.
    #[test]
    fn turns_are_fair() {
        const FIRST: usize = 4;
        for turns in 1..8 {
            let slices = FIRST * turns;
            let orders: Vec<_> = (0..slices).map(|slice| order(slice, turns)).collect();
            for i in 0..turns {
                let first = orders.iter().filter(|order| order[0] == i).count();
                assert_eq!(first, FIRST, "{i} of {turns}");
                let behind = |other: usize| {
                    let pairs = orders.iter().flat_map(|order| order.windows(2));
                    pairs.filter(|pair| **pair == [other, i]).count()
                };
                let (one, another) = ((i + 1) % turns, (i + turns - 1) % turns);
                assert_eq!(behind(one), behind(another), "{i} of {turns}");
            }
        }
    }
}
