//! The radix trees of "WORT: Write Optimal Radix Tree for Persistent Memory Storage Systems" (Lee,
//! Lim, Song, Nam, Noh; FAST 2017), whose every update commits by one failure-atomic 8-byte store.

pub mod wort;
