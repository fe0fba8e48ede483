//! Interleavings that rarely occur by chance, forced by a media that stops a thread at a step.

mod committed;
mod media;
mod stalled;
