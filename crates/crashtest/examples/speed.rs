//! How many states a second are judged of a hundred operations on a ROART: `speed [histories] [first seed]`.

use index::Index;
use roart::{Full, KIND, Roart, tracer};
use wollemi_crashtest::map::OfIndex;
use wollemi_crashtest::{Crash, Explorer, Settings, history};

fn main() {
    let mut numbers = std::env::args().skip(1).map_while(|number| number.parse().ok());
    let (histories, seed) = (numbers.next().unwrap_or(50), numbers.next().unwrap_or(1));
    let subject = OfIndex::new(
        "roart",
        |heap| Ok(Box::new(Roart::<Crash, Full>::create(heap, b"test")?)),
        |heap| Ok(Roart::<Crash, Full>::open(heap, b"test")?.map(|index| Box::new(index) as Box<dyn Index>)),
        vec![(KIND, tracer())],
    );
    let settings = Settings {
        seed,
        ..Settings::default()
    };
    let explorer = Explorer::new(subject, settings);
    let mut explorer = match explorer {
        Ok(explorer) => explorer,
        Err(error) => return eprintln!("{error}"),
    };
    for number in 0..histories {
        if let Err(failure) = explorer.explore(&history::of_map(seed + number, 100, 1)) {
            eprintln!("{failure}");
        }
    }
    println!("{}", explorer.report());
}
