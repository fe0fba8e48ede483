/// The version of the format that this program writes, and the latest that it reads.
pub(crate) const VERSION: u32 = 1;
