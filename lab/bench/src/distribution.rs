//! The distribution of a workload's keys over the loaded keys. [`Latest`](Distribution::Latest) also chooses keys
//! inserted by the workload; each thread chooses only its own, which are certain to exist.
//!
//! Zipfian numbers are drawn by rejection-inversion (Hörmann and Derflinger 1996), which needs no sum over all keys and
//! works for any exponent, including 1 and above.

use crate::random::{Random, permute};
use clap::ValueEnum;
use serde::Serialize;

/// How an operation chooses among the existing keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// Each key once, in random order, before any repeats.
    Permutation,
    /// Every key equally likely, drawn independently.
    Uniform,
    /// Scrambled zipfian: a few keys often, scattered over the key space.
    Zipfian,
    /// Zipfian by age: the newest keys most often; of newly inserted keys, only the thread's own.
    Latest,
}

/// The exponent of YCSB.
pub const THETA: f64 = 0.99;

/// A zipfian distribution of ranks from zero: rank `k` has a probability proportional to `1 / (k + 1)^theta`.
#[derive(Clone, Debug)]
pub struct Zipf {
    count: f64,
    theta: f64,
    first: f64,
    last: f64,
    squeeze: f64,
}

/// Computes `(e^x - 1) / x`, also near zero.
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        x.exp_m1() / x
    } else {
        1.0 + x / 2.0
    }
}

/// Computes `ln(1 + x) / x`, also near zero.
fn ln1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        x.ln_1p() / x
    } else {
        1.0 - x / 2.0
    }
}

impl Zipf {
    /// Creates the distribution of `count` ranks (at least one) with an exponent of at least 0.
    pub fn new(count: u64, theta: f64) -> Zipf {
        let mut zipf = Zipf {
            count: count as f64,
            theta,
            first: 0.0,
            last: 0.0,
            squeeze: 0.0,
        };
        zipf.first = zipf.integral(1.5) - 1.0;
        zipf.last = zipf.integral(zipf.count + 0.5);
        zipf.squeeze = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    /// Draws a rank.
    pub fn sample(&self, random: &mut Random) -> u64 {
        loop {
            let u = self.last + random.unit() * (self.first - self.last);
            let x = self.inverse(u);
            let rank = x.round().clamp(1.0, self.count);
            if rank - x <= self.squeeze || u >= self.integral(rank + 0.5) - self.density(rank) {
                return rank as u64 - 1;
            }
        }
    }

    fn density(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// Returns the integral of the density from 1 to `x`.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        expm1_over((1.0 - self.theta) * log) * log
    }

    fn inverse(&self, area: f64) -> f64 {
        let scaled = (area * (1.0 - self.theta)).max(-1.0);
        (ln1p_over(scaled) * area).exp()
    }
}

/// Draws key numbers for one thread.
#[derive(Debug)]
pub struct Chooser {
    distribution: Distribution,
    zipf: Zipf,
    loaded: u64,
    /// Keys inserted by this thread, newest last.
    inserted: Vec<u64>,
    seed: u64,
    next: u64,
}

impl Chooser {
    /// Creates a chooser over `loaded` keys (at least one). Choosers with the same seed share the popular keys of a
    /// zipfian distribution; each begins a permutation at its own `start`.
    pub fn new(distribution: Distribution, theta: f64, loaded: u64, seed: u64, start: u64) -> Chooser {
        Chooser {
            distribution,
            zipf: Zipf::new(loaded, theta),
            loaded,
            inserted: Vec::new(),
            seed,
            next: start,
        }
    }

    /// Records an inserted key; [`Latest`](Distribution::Latest) may choose it from now on.
    pub fn inserted(&mut self, number: u64) {
        if self.distribution == Distribution::Latest {
            self.inserted.push(number);
        }
    }

    /// Returns the number of an existing key.
    pub fn choose(&mut self, random: &mut Random) -> u64 {
        match self.distribution {
            Distribution::Permutation => {
                let number = permute(self.next % self.loaded, self.loaded, self.seed);
                self.next += 1;
                number
            }
            Distribution::Uniform => random.below(self.loaded),
            Distribution::Zipfian => permute(self.zipf.sample(random), self.loaded, self.seed),
            Distribution::Latest => {
                let age = self.zipf.sample(random);
                match self.inserted.len() as u64 {
                    young if age < young => self.inserted[(young - 1 - age) as usize],
                    young => (self.loaded - 1).saturating_sub(age - young),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shares of the first ranks match the distribution, for exponents below, at and above one.
    #[test]
    fn zipfian_shares() {
        const DRAWS: u32 = 200_000;
        const COUNT: u64 = 1000;
        for theta in [0.0, 0.5, 0.99, 1.0, 1.5] {
            let (zipf, mut random) = (Zipf::new(COUNT, theta), Random::new(5));
            let mut met = vec![0u32; COUNT as usize];
            for _ in 0..DRAWS {
                met[zipf.sample(&mut random) as usize] += 1;
            }
            let sum: f64 = (1..=COUNT).map(|rank| (rank as f64).powf(-theta)).sum();
            for rank in [0, 1, 9, 99] {
                let share = f64::from(met[rank]) / f64::from(DRAWS);
                let law = ((rank + 1) as f64).powf(-theta) / sum;
                let deviation = (law / f64::from(DRAWS)).sqrt();
                assert!(
                    (share - law).abs() < 5.0 * deviation,
                    "theta {theta}, rank {rank}: {share}, not {law}"
                );
            }
        }
    }

    /// A permutation chooses all keys before repeating any; `Latest` prefers the keys inserted last, then those loaded
    /// last.
    #[test]
    fn choosers_choose() {
        let mut random = Random::new(1);
        let mut permutation = Chooser::new(Distribution::Permutation, THETA, 100, 1, 40);
        let mut met: Vec<_> = (0..100).map(|_| permutation.choose(&mut random)).collect();
        met.sort_unstable();
        assert_eq!(met, (0..100).collect::<Vec<_>>());

        let mut latest = Chooser::new(Distribution::Latest, THETA, 100, 1, 0);
        latest.inserted(500);
        latest.inserted(501);
        let mut counts = std::collections::HashMap::new();
        for _ in 0..10_000 {
            *counts.entry(latest.choose(&mut random)).or_insert(0) += 1;
        }
        assert!(counts[&501] > counts[&500] && counts[&500] > counts[&99] && counts[&99] > counts[&50]);
        assert!(
            counts
                .keys()
                .all(|number| *number < 100 || [500, 501].contains(number))
        );
    }

    /// Every distribution works with a single key.
    #[test]
    fn one_key() {
        let mut random = Random::new(1);
        for distribution in Distribution::value_variants() {
            let mut chooser = Chooser::new(*distribution, 1.2, 1, 9, 3);
            assert!(
                (0..100).all(|_| chooser.choose(&mut random) == 0),
                "{distribution:?}"
            );
        }
    }
}
