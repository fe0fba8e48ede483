//! Simulates a loss of power.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Has the machine seem to have stopped since the pool was open: the id of another boot is put into its header, namely
/// the pool's own name, which is laid out alike (docs/format.md).
pub(crate) fn lose(pool: &Path) -> std::io::Result<()> {
    let file = File::options().read(true).write(true).open(pool)?;
    let mut name = [0; 24];
    file.read_exact_at(&mut name, 24)?;
    file.write_all_at(&name, 72)
}
