//! Bytes from and to Java.
//!
//! Several byte strings are passed as one *packed* array: for each its length in four bytes, big endian, −1 if it is
//! absent, and then its bytes.

use crate::failure::Failure;
use jni::Env;
use jni::objects::{JByteArray, JByteBuffer};

/// Returns the bytes of an array; `None` if it is null.
pub fn optional(env: &Env, array: &JByteArray) -> Result<Option<Vec<u8>>, Failure> {
    if array.is_null() {
        return Ok(None);
    }
    Ok(Some(env.convert_byte_array(array)?))
}

/// Returns the bytes of an array.
pub fn bytes(env: &Env, array: &JByteArray) -> Result<Vec<u8>, Failure> {
    optional(env, array)?.ok_or_else(|| Failure::Argument("an array is null".into()))
}

/// Returns the text of an array of UTF-8.
pub fn text(env: &Env, array: &JByteArray) -> Result<String, Failure> {
    let bytes = bytes(env, array)?;
    String::from_utf8(bytes).map_err(|_| Failure::Argument("a name that is not UTF-8".into()))
}

/// Returns an array of these bytes.
pub fn array<'l>(env: &mut Env<'l>, bytes: &[u8]) -> Result<JByteArray<'l>, Failure> {
    Ok(env.byte_array_from_slice(bytes)?)
}

/// Byte strings packed in one array.
#[derive(Default)]
pub struct Packed(pub Vec<u8>);

impl Packed {
    /// Adds a byte string; `None`: an absent one. No byte string is longer than 64 MiB.
    pub fn put(&mut self, bytes: Option<&[u8]>) {
        let length = bytes.map_or(-1, |bytes| i32::try_from(bytes.len()).unwrap_or(i32::MAX));
        self.0.extend_from_slice(&length.to_be_bytes());
        self.0.extend_from_slice(bytes.unwrap_or_default());
    }

    /// Adds a text.
    pub fn text(&mut self, text: impl ToString) {
        self.put(Some(text.to_string().as_bytes()));
    }

    /// Adds a number as eight bytes.
    pub fn number(&mut self, number: u64) {
        self.put(Some(&number.to_be_bytes()));
    }
}

/// Returns the byte strings of a packed array.
pub fn unpack(mut packed: &[u8]) -> Result<Vec<Option<&[u8]>>, Failure> {
    let torn = || Failure::Argument("a truncated packed array".into());
    let mut all = Vec::new();
    while let Some((length, rest)) = packed.split_first_chunk::<4>() {
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            all.push(None);
            packed = rest;
            continue;
        };
        let (bytes, rest) = rest.split_at_checked(length).ok_or_else(torn)?;
        all.push(Some(bytes));
        packed = rest;
    }
    if packed.is_empty() { Ok(all) } else { Err(torn()) }
}

/// A part of a direct buffer, checked against the buffer's capacity.
struct Part {
    address: *mut u8,
    length: usize,
}

impl Part {
    fn new(env: &Env, buffer: &JByteBuffer, offset: i32, length: i32) -> Result<Part, Failure> {
        let outside = || Failure::Argument("a range outside of the buffer".into());
        let capacity = env.get_direct_buffer_capacity(buffer)?;
        let offset = usize::try_from(offset).map_err(|_| outside())?;
        let length = usize::try_from(length).map_err(|_| outside())?;
        if offset.checked_add(length).is_none_or(|end| end > capacity) {
            return Err(outside());
        }
        if length == 0 {
            // An empty buffer may have no address.
            let address = std::ptr::null_mut();
            return Ok(Part { address, length });
        }
        let start = env.get_direct_buffer_address(buffer)?;
        // SAFETY: J1: the offset lies within the buffer's bytes.
        let address = unsafe { start.add(offset) };
        Ok(Part { address, length })
    }
}

/// Returns a copy of a part of a direct buffer.
pub fn copy_from(env: &Env, buffer: &JByteBuffer, offset: i32, length: i32) -> Result<Vec<u8>, Failure> {
    let part = Part::new(env, buffer, offset, length)?;
    let mut copy = vec![0; part.length];
    if part.length > 0 {
        // SAFETY: J1: the part lies within the buffer, which Java keeps alive during the call; no other code has the
        // copy.
        unsafe {
            part.address
                .copy_to_nonoverlapping(copy.as_mut_ptr(), part.length)
        };
    }
    Ok(copy)
}

/// Copies bytes into a part of a direct buffer if they fit; otherwise changes nothing.
pub fn copy_into(
    env: &Env,
    bytes: &[u8],
    buffer: &JByteBuffer,
    offset: i32,
    room: i32,
) -> Result<(), Failure> {
    let part = Part::new(env, buffer, offset, room)?;
    if bytes.len() <= part.length && !bytes.is_empty() {
        // SAFETY: J1: the bytes lie within the buffer, which Java keeps alive during the call, and which is not memory
        // of the pool.
        unsafe { part.address.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
    Ok(())
}
