//! Settings.

/// Settings of a log.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// Bytes of a segment of a new log: a power of two from 8 KiB to 128 MiB. 4 MiB by default, since an opening
    /// reads whole segments. An existing log keeps its own.
    pub segment_size: u32,
    /// Maximum bytes between the start of the first segment that is kept and the log's end;
    /// [`append`](crate::Log::append) fails beyond it. 256 MiB by default; at least four segments, at most 16 GiB.
    pub limit: u64,
    /// Maximum number of segments kept for reuse beyond those in use. 32 by default.
    pub spares: usize,
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions {
            segment_size: 4 << 20,
            limit: 256 << 20,
            spares: 32,
        }
    }
}
