//! A crash, a reader, at every step of every change: what either may find that no whole operation leaves behind. And
//! headers, which crashes leave behind.

mod crashes;
mod headers;
mod readers;
mod turnover;

/// Runs a test for each of the three trees, on the media that it names.
macro_rules! for_each_tree {
    ($($name:ident => $property:ident [$($media:ty),+];)+) => {$(
        mod $name {
            use super::*;
            use wollemi_wort::{art_cow::ArtCow, woart::Woart, wort::Wort};
            #[test]
            fn wort() {
                $property::<$(Wort<$media>),+>();
            }
            #[test]
            fn woart() {
                $property::<$(Woart<$media>),+>();
            }
            #[test]
            fn art_cow() {
                $property::<$(ArtCow<$media>),+>();
            }
        }
    )+};
}
use for_each_tree;
