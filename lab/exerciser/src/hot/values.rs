//! Values: each is written once, so a read value identifies its write.

use crate::truth::{Life, Val};

/// Returns the identity of the `n`th value of a thread in a generation; `n` is not zero.
pub(super) fn identity(generation: u64, thread: usize, n: u64) -> u64 {
    generation << 48 | (thread as u64) << 40 | n
}

/// Returns the name of a value in the report of a failure: `g2t1#17`.
pub(super) fn name(identity: u64) -> String {
    let (generation, thread, n) = (identity >> 48, identity >> 40 & 0xff, identity & ((1 << 40) - 1));
    format!("g{generation}t{thread}#{n}")
}

fn value(identity: u64) -> Val {
    let random = identity.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let len = match random % 256 {
        0..180 => 8,
        180..230 => 8 + random / 256 % 33,
        230..254 => 8 + random / 256 % 1200,
        _ => 8 + random / 256 % 20_000,
    };
    Val {
        stamp: identity,
        len: len as u32,
        life: Life::Endless,
    }
}

/// Returns the value's bytes: 8 for most values, about 20,000 at most.
pub(super) fn bytes(identity: u64) -> Vec<u8> {
    value(identity).bytes()
}

/// Returns the identity of the value that was read.
///
/// # Errors
///
/// No write has put these bytes.
pub(super) fn read(bytes: Option<&[u8]>) -> Result<Option<u64>, String> {
    let Some(bytes) = bytes else { return Ok(None) };
    let torn = || {
        format!(
            "reads {} bytes that no write has put: {:x?}",
            bytes.len(),
            &bytes[..bytes.len().min(64)]
        )
    };
    let identity = u64::from_le_bytes(*bytes.first_chunk().ok_or_else(torn)?);
    if value(identity).is(bytes) {
        Ok(Some(identity))
    } else {
        Err(torn())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value names the write that made it. Reading a part of a value, or a mixture of two, fails.
    #[test]
    fn values_name_their_writes() {
        for n in 1..2000 {
            let whole = bytes(identity(3, 2, n));
            assert_eq!(read(Some(&whole)), Ok(Some(identity(3, 2, n))));
            assert!(read(Some(&whole[..whole.len() - 1])).is_err());
            if whole.len() > 16 {
                let mut mixed = whole.clone();
                mixed[9] ^= 1;
                assert!(read(Some(&mixed)).is_err());
            }
        }
        assert_eq!(read(None), Ok(None));
        assert_eq!(name(identity(3, 2, 17)), "g3t2#17");
    }
}
