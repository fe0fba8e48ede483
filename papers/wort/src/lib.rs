//! The radix trees of "WORT: Write Optimal Radix Tree for Persistent Memory Storage Systems" (Lee,
//! Lim, Song, Nam, Noh; FAST 2017), whose every update commits by one failure-atomic 8-byte store.
//!
//! What they share: the compression header and its recovery (`header`, `recover`), and the root object with
//! the lock of the writers (`root`); WOART and ART+CoW also their larger nodes and the writer's way
//! (`adaptive`).

mod adaptive;
pub mod art_cow;
mod header;
mod recover;
mod root;
pub mod woart;
pub mod wort;
