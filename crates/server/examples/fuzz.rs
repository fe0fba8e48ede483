//! Feeds many seeded inputs to both parsers: `cargo run --release -p wollemi-server --features fuzzing --example fuzz
//! -- 10000000 1` (number of inputs, seed).

use wollemi_server::fuzzing::{Inputs, memcached, redis};

fn main() {
    let mut numbers = std::env::args().skip(1).map(|arg| arg.parse::<u64>());
    let mut number = |or| numbers.next().and_then(Result::ok).unwrap_or(or);
    let (count, seed) = (number(100_000), number(1));
    let started = std::time::Instant::now();
    let (mut inputs, mut input, mut bytes) = (Inputs::new(seed), Vec::new(), 0);
    for _ in 0..count {
        inputs.fill(&mut input);
        bytes += input.len() as u64;
        memcached(&input);
        redis(&input);
    }
    println!(
        "{count} inputs of seed {seed}, {bytes} bytes, fed to both parsers, no misreading, in {:.1?}",
        started.elapsed()
    );
}
