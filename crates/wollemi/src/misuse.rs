//! Misuses of readers, none of which compiles. Each follows a correct use that differs only in the misuse.

/// A value does not outlive its reader.
///
/// ```
/// let map = wollemi::Db::anonymous().unwrap().map("fruit").unwrap();
/// let reader = map.reader();
/// let value = reader.get("apple").unwrap();
/// assert!(value.is_none());
/// drop(reader);
/// ```
///
/// ```compile_fail,E0505
/// let map = wollemi::Db::anonymous().unwrap().map("fruit").unwrap();
/// let reader = map.reader();
/// let value = reader.get("apple").unwrap();
/// drop(reader);
/// assert!(value.is_none());
/// ```
mod value_after_the_reader {}

/// A value does not outlive a repin of its reader.
///
/// ```
/// let map = wollemi::Db::anonymous().unwrap().map("fruit").unwrap();
/// let mut reader = map.reader();
/// let value = reader.get("apple").unwrap();
/// assert!(value.is_none());
/// reader.repin();
/// ```
///
/// ```compile_fail,E0502
/// let map = wollemi::Db::anonymous().unwrap().map("fruit").unwrap();
/// let mut reader = map.reader();
/// let value = reader.get("apple").unwrap();
/// reader.repin();
/// assert!(value.is_none());
/// ```
mod value_after_repinning {}

/// A reader stays on its thread.
///
/// ```
/// let map = wollemi::Db::anonymous().unwrap().map("fruit").unwrap();
/// std::thread::scope(|threads| {
///     threads.spawn(|| drop(map.reader()));
/// });
/// ```
///
/// ```compile_fail,E0277
/// let map = wollemi::Db::anonymous().unwrap().map("fruit").unwrap();
/// let reader = map.reader();
/// std::thread::scope(|threads| {
///     threads.spawn(move || drop(reader));
/// });
/// ```
mod reader_on_another_thread {}
