//! A crash, a reader, a writer, at every step; and headers left behind by crashes.

mod entries;
mod headers;
mod recovered;

use index::conformance::steps::Stepping;
use wollemi_wort::{art_cow::ArtCow, woart::Woart, wort::Wort};

index::conformance_step_by_step! {
    wort: Wort<Stepping>, Wort;
    woart: Woart<Stepping>, Woart;
    art_cow: ArtCow<Stepping>, ArtCow;
}
