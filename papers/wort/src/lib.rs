//! The radix trees of "WORT: Write Optimal Radix Tree for Persistent Memory Storage Systems" (Lee,
//! Lim, Song, Nam, Noh; FAST 2017), whose every update commits by one failure-atomic 8-byte store.
//!
//! They share the compression header and its recovery (`header`, `recover`), and the root object with the writers'
//! lock (`root`); WOART and ART+CoW also share their larger nodes and the writer's walk (`adaptive`).

mod adaptive;
pub mod art_cow;
mod header;
mod recover;
mod root;
pub mod woart;
pub mod wort;
