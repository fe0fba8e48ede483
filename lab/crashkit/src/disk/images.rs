//! Selects the images of a moment to judge.

use crate::Random;

/// Returns ways to make choices, given the number of ways for each ([`Medium::choices`](super::Medium::choices)): all
/// of them if there are at most `max`. Otherwise it returns `max` of them, but at least two: the oldest of all, the
/// newest of all, and some drawn at random, among them those in which one lags behind or leads all others, and those
/// that change between newest and oldest at one place.
pub fn images(ways: &[usize], max: usize, random: &mut Random) -> Vec<Vec<usize>> {
    let all = ways.iter().try_fold(1usize, |all, &ways| all.checked_mul(ways));
    if all.is_some_and(|all| all <= max) {
        return every(ways);
    }
    let oldest = vec![0; ways.len()];
    let newest: Vec<_> = ways.iter().map(|ways| ways - 1).collect();
    let mut picked = vec![oldest.clone(), newest.clone()];
    while picked.len() < max.max(2) {
        let one = random.below(ways.len() as u64) as usize;
        let other = random.below(ways[one] as u64) as usize;
        let image = match random.below(4) {
            0 => with(&newest, one, other),
            1 => with(&oldest, one, other),
            // The newest before one and the oldest from there on, or the reverse.
            2 => {
                let (before, behind) = if other == 0 {
                    (&newest, &oldest)
                } else {
                    (&oldest, &newest)
                };
                before[..one].iter().chain(&behind[one..]).copied().collect()
            }
            _ => ways
                .iter()
                .map(|&ways| random.below(ways as u64) as usize)
                .collect(),
        };
        picked.push(image);
    }
    picked
}

fn with(picks: &[usize], at: usize, pick: usize) -> Vec<usize> {
    let mut picks = picks.to_vec();
    picks[at] = pick;
    picks
}

fn every(ways: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for &ways in ways {
        let longer = all.iter().flat_map(|picks: &Vec<usize>| {
            (0..ways).map(move |pick| {
                let mut picks = picks.clone();
                picks.push(pick);
                picks
            })
        });
        all = longer.collect();
    }
    all
}
