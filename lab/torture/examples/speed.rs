//! Measures how many states per second the kit judges, for histories of a hundred operations on an index:
//! `speed [histories] [first seed] [index]`.

use crashkit::{Explorer, Settings};
use wollemi::indexes::IndexKind;
use wollemi_torture::history;
use wollemi_torture::map::OfIndex;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let histories: u64 = arguments.next().map_or(Ok(50), |number| number.parse())?;
    let seed: u64 = arguments.next().map_or(Ok(1), |number| number.parse())?;
    let kind: IndexKind = arguments
        .next()
        .map_or(Ok(IndexKind::default()), |name| name.parse())?;
    let settings = Settings {
        seed,
        ..Settings::default()
    };
    let mut explorer = Explorer::new(OfIndex::listed(kind), settings)?;
    for number in 0..histories {
        if let Err(failure) = explorer.explore(&history::of_map(seed + number, 100, 1)) {
            eprintln!("{failure}");
        }
    }
    println!("{}", explorer.report());
    Ok(())
}
