//! Simulates a loss of power.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Makes the pool look as if the machine had stopped while it was open, by changing the boot id in its header. The new
/// id is the pool's UUID, which has the same layout (docs/format.md).
pub(crate) fn lose(pool: &Path) -> std::io::Result<()> {
    let file = File::options().read(true).write(true).open(pool)?;
    let mut name = [0; 24];
    file.read_exact_at(&mut name, 24)?;
    file.write_all_at(&name, 72)
}
