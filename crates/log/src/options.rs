//! Settings.

/// Settings of a log.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of a segment of a log that is created: a power of two from 8 KiB to 128 MiB. 4 MiB by default, since an
    /// opening reads whole segments. A log that exists keeps its own.
    pub segment_size: u32,
    /// Most bytes between the beginning that is kept and the end; [`append`](crate::Log::append) refuses what would go
    /// beyond. 256 MiB by default; at least four segments, at most 16 GiB.
    pub limit: u64,
    /// Most segments that are kept for reuse beyond those in use. 32 by default.
    pub spares: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            segment_size: 4 << 20,
            limit: 256 << 20,
            spares: 32,
        }
    }
}
