//! Reading a map as a snapshot has it.

use super::maps::ask;
use super::native;
use crate::bytes::{array, bytes};
use crate::failure::Failure;
use crate::reads;
use crate::table;
use jni::objects::{JByteArray, JObject};
use jni::sys::{jboolean, jint, jlong};
use wollemi::View;

fn view(snapshot: jlong, map: jlong) -> Result<View, Failure> {
    Ok(table::snapshot(snapshot)?.snapshot.view(&table::map(map)?.map)?)
}

// `_held` is the handle of the map: while the call runs, it is not collected, and so not closed.
native! {
    "snapshotGet" => fn snapshot_get<'l>(env, snapshot: jlong, _held: JObject<'l>, map: jlong, key: JByteArray<'l>) -> JByteArray<'l> {
        let view = view(snapshot, map)?;
        match view.get(bytes(env, &key)?)? {
            Some(value) => array(env, &value),
            None => Ok(JByteArray::default()),
        }
    }

    "snapshotFetch" => fn snapshot_fetch<'l>(
        env, snapshot: jlong, _held: JObject<'l>, map: jlong, lower: JByteArray<'l>, lower_inclusive: jboolean,
        upper: JByteArray<'l>, upper_inclusive: jboolean, after: JByteArray<'l>, reverse: jboolean, limit: jint,
    ) -> JByteArray<'l> {
        let ask = ask(env, (&lower, lower_inclusive), (&upper, upper_inclusive), &after, reverse, limit)?;
        let entries = reads::of_view(&view(snapshot, map)?, &*table::map(map)?, &ask)?;
        array(env, &entries)
    }

    "snapshotMemory" => fn snapshot_memory<'l>(_env, snapshot: jlong) -> jlong {
        Ok(table::snapshot(snapshot)?.snapshot.memory() as jlong)
    }
}
