//! Interleavings that threads left alone hardly ever meet, brought about by a media that stops a thread at a step.

mod committed;
mod media;
mod stalled;
