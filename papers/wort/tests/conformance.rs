//! The conformance suite over pools in files, with restarts, damage and full pools.

use wollemi_wort::art_cow::ArtCow;
use wollemi_wort::woart::Woart;
use wollemi_wort::wort::Wort;

index::conformance_on_heap! {
    wort: Wort,
    woart: Woart,
    art_cow: ArtCow,
}
