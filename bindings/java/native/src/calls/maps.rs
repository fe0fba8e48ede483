//! Reading and writing a map.

use super::native;
use crate::bytes::{array, bytes, copy_from, copy_into, optional, text, unpack};
use crate::failure::Failure;
use crate::options;
use crate::reads::{self, CursorRequest};
use crate::table::{self, Map, Object};
use jni::Env;
use jni::objects::{JByteArray, JByteBuffer};
use jni::sys::{jboolean, jint, jlong};
use std::ops::Bound;
use std::sync::Arc;

/// The result for an absent key.
const ABSENT: jint = -1;

/// Converts a bound of `Bounds.java`: a key, or none, and whether the range includes it.
fn bound(env: &Env, key: &JByteArray, inclusive: bool) -> Result<Bound<Vec<u8>>, Failure> {
    Ok(match (optional(env, key)?, inclusive) {
        (None, _) => Bound::Unbounded,
        (Some(key), true) => Bound::Included(key),
        (Some(key), false) => Bound::Excluded(key),
    })
}

/// Converts a cursor's request.
pub fn cursor_request<'l>(
    env: &Env,
    (lower, lower_inclusive): (&JByteArray<'l>, bool),
    (upper, upper_inclusive): (&JByteArray<'l>, bool),
    after: &JByteArray<'l>,
    reverse: bool,
    limit: jint,
) -> Result<CursorRequest, Failure> {
    Ok(CursorRequest {
        lower: bound(env, lower, lower_inclusive)?,
        upper: bound(env, upper, upper_inclusive)?,
        after: optional(env, after)?,
        reverse,
        limit: usize::try_from(limit).unwrap_or(0).max(1),
    })
}

/// Returns a copy of a part of the direct buffer, or, if that is null, of the whole array.
fn array_or_buffer(
    env: &Env,
    array: &JByteArray,
    buffer: &JByteBuffer,
    offset: jint,
    length: jint,
) -> Result<Vec<u8>, Failure> {
    if buffer.is_null() {
        bytes(env, array)
    } else {
        copy_from(env, buffer, offset, length)
    }
}

native! {
    "get" => fn get<'l>(env, map: jlong, key: JByteArray<'l>) -> JByteArray<'l> {
        let map = table::map(map)?;
        let key = bytes(env, &key)?;
        let reader = map.map.reader();
        match reader.get(&key)? {
            Some(value) => array(env, &value),
            None => Ok(JByteArray::default()),
        }
    }

    // Returns the value's length, or `ABSENT`. Copies the value only if `room` suffices; otherwise the caller retries
    // with a larger buffer.
    "getInto" => fn get_into<'l>(
        env, map: jlong, key: JByteArray<'l>, key_buffer: JByteBuffer<'l>, key_offset: jint, key_length: jint,
        into: JByteBuffer<'l>, offset: jint, room: jint,
    ) -> jint {
        let map = table::map(map)?;
        let key = array_or_buffer(env, &key, &key_buffer, key_offset, key_length)?;
        let reader = map.map.reader();
        match reader.get(&key)? {
            Some(value) => {
                copy_into(env, &value, &into, offset, room)?;
                Ok(value.len() as jint)
            }
            None => Ok(ABSENT),
        }
    }

    "contains" => fn contains<'l>(env, map: jlong, key: JByteArray<'l>) -> jboolean {
        Ok(table::map(map)?.map.contains(bytes(env, &key)?)?)
    }

    "multiGet" => fn multi_get<'l>(env, map: jlong, keys: JByteArray<'l>) -> JByteArray<'l> {
        let map = table::map(map)?;
        let keys = bytes(env, &keys)?;
        let missing = || Failure::Argument("a key is null".into());
        let keys = unpack(&keys)?.into_iter().map(|key| key.ok_or_else(missing));
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        let values = reads::many(&map, &keys)?;
        array(env, &values)
    }

    "fetch" => fn fetch<'l>(
        env, map: jlong, lower: JByteArray<'l>, lower_inclusive: jboolean, upper: JByteArray<'l>,
        upper_inclusive: jboolean, after: JByteArray<'l>, reverse: jboolean, limit: jint,
    ) -> JByteArray<'l> {
        let map = table::map(map)?;
        let request = cursor_request(env, (&lower, lower_inclusive), (&upper, upper_inclusive), &after, reverse, limit)?;
        let entries = reads::of_map(&map, &request)?;
        array(env, &entries)
    }

    "count" => fn count<'l>(_env, map: jlong) -> jlong {
        Ok(table::map(map)?.map.count()? as jlong)
    }

    "put" => fn put<'l>(env, map: jlong, key: JByteArray<'l>, value: JByteArray<'l>) -> () {
        let map = table::map(map)?;
        Ok(map.map.upsert(bytes(env, &key)?, bytes(env, &value)?)?)
    }

    "putFrom" => fn put_from<'l>(
        env, map: jlong, key: JByteArray<'l>, key_buffer: JByteBuffer<'l>, key_offset: jint, key_length: jint,
        value: JByteArray<'l>, value_buffer: JByteBuffer<'l>, offset: jint, length: jint,
    ) -> () {
        let map = table::map(map)?;
        let key = array_or_buffer(env, &key, &key_buffer, key_offset, key_length)?;
        let value = array_or_buffer(env, &value, &value_buffer, offset, length)?;
        Ok(map.map.upsert(key, value)?)
    }

    "putIfAbsent" => fn put_if_absent<'l>(env, map: jlong, key: JByteArray<'l>, value: JByteArray<'l>) -> jboolean {
        let map = table::map(map)?;
        Ok(map.map.insert(bytes(env, &key)?, bytes(env, &value)?)?)
    }

    "replace" => fn replace<'l>(env, map: jlong, key: JByteArray<'l>, value: JByteArray<'l>) -> jboolean {
        let map = table::map(map)?;
        Ok(map.map.update(bytes(env, &key)?, bytes(env, &value)?)?)
    }

    "remove" => fn remove<'l>(env, map: jlong, key: JByteArray<'l>) -> jboolean {
        Ok(table::map(map)?.map.remove(bytes(env, &key)?)?)
    }

    "compareAndSet" => fn compare_and_set<'l>(
        env, map: jlong, key: JByteArray<'l>, expected: JByteArray<'l>, value: JByteArray<'l>,
    ) -> jboolean {
        let map = table::map(map)?;
        let (key, expected, value) = (bytes(env, &key)?, optional(env, &expected)?, optional(env, &value)?);
        Ok(map.map.compare_and_swap(key, expected, value)?)
    }

    "withDurability" => fn with_durability<'l>(env, map: jlong, durability: JByteArray<'l>) -> jlong {
        let map = table::map(map)?;
        let durability = options::durability(&text(env, &durability)?)?;
        let other = Map { map: map.map.with_durability(durability), database: map.database.clone() };
        Ok(map.database.own(Object::Map(Arc::new(other)))? as jlong)
    }

    "indexOf" => fn index_of<'l>(env, map: jlong) -> JByteArray<'l> {
        array(env, table::map(map)?.map.index_kind().name().as_bytes())
    }

    "isOrdered" => fn is_ordered<'l>(_env, map: jlong) -> jboolean {
        Ok(table::map(map)?.map.index_kind().is_ordered())
    }
}
