use index::Index;
use roart::{
    Full, KIND, Raw, Roart, Streaming, Variant, WithoutEc, WithoutLc, WithoutMo, WithoutSmp, tracer,
};
use wollemi_crashtest::map::OfIndex;
use wollemi_crashtest::{Crash, Explorer, Mode, Model, Settings, history};

fn subject<V: Variant>(name: &str) -> OfIndex {
    OfIndex::new(
        name,
        |heap| Ok(Box::new(Roart::<Crash, V>::create(heap, &[b'n'; 100])?)),
        |heap| Ok(Roart::<Crash, V>::open(heap, &[b'n'; 100])?.map(|index| Box::new(index) as Box<dyn Index>)),
        vec![(KIND, tracer())],
    )
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let histories: u64 = args[1].parse().unwrap();
    let seed: u64 = args[2].parse().unwrap();
    let mode = match args[3].as_str() {
        "word" => Mode::Word,
        "process" => Mode::Process,
        _ => Mode::Power,
    };
    let again: u64 = args[4].parse().unwrap();
    let ops: usize = args[5].parse().unwrap();
    for name in &args[6..] {
        let subject = match name.as_str() {
            "full" => subject::<Full>("full"),
            "streaming" => subject::<Streaming>("streaming"),
            "ec" => subject::<WithoutEc>("ec"),
            "smp" => subject::<WithoutSmp>("smp"),
            "mo" => subject::<WithoutMo>("mo"),
            "lc" => subject::<WithoutLc>("lc"),
            _ => subject::<Raw>("raw"),
        };
        let settings = Settings {
            seed,
            again_share: again,
            deep_share: 50,
            model: Model::from(mode),
            ..Settings::default()
        };
        let mut explorer = Explorer::new(&subject, settings).unwrap();
        let mut shown = 0;
        for number in 0..histories {
            if let Err(failure) = explorer.explore(&history::of_map(seed + number, ops)) {
                shown += 1;
                if shown <= 3 {
                    println!("{failure}");
                }
            }
        }
        println!("{}", explorer.report());
    }
}
