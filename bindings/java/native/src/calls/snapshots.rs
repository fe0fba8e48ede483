//! Reading maps in a snapshot.

use super::maps::cursor_request;
use super::native;
use crate::bytes::{array, bytes};
use crate::failure::Failure;
use crate::reads;
use crate::table;
use jni::objects::{JByteArray, JObject};
use jni::sys::{jboolean, jint, jlong};
use std::sync::Arc;
use wollemi::View;

/// Returns a map's view in a snapshot, with the snapshot's handle, to be dropped after the view: closing the database
/// waits for the calls that hold one.
fn view(snapshot: jlong, map: jlong) -> Result<(Arc<table::Snapshot>, View), Failure> {
    let snapshot = table::snapshot(snapshot)?;
    let view = snapshot.snapshot.view(&table::map(map)?.map)?;
    Ok((snapshot, view))
}

// `_held` is the map's handle: passing it keeps it from being collected, and so closed, during the call.
native! {
    "snapshotGet" => fn snapshot_get<'l>(env, snapshot: jlong, _held: JObject<'l>, map: jlong, key: JByteArray<'l>) -> JByteArray<'l> {
        // Dropped in reverse order.
        let (_snapshot, view) = view(snapshot, map)?;
        match view.get(bytes(env, &key)?)? {
            Some(value) => array(env, &value),
            None => Ok(JByteArray::default()),
        }
    }

    "snapshotFetch" => fn snapshot_fetch<'l>(
        env, snapshot: jlong, _held: JObject<'l>, map: jlong, lower: JByteArray<'l>, lower_inclusive: jboolean,
        upper: JByteArray<'l>, upper_inclusive: jboolean, after: JByteArray<'l>, reverse: jboolean, limit: jint,
    ) -> JByteArray<'l> {
        let request = cursor_request(env, (&lower, lower_inclusive), (&upper, upper_inclusive), &after, reverse, limit)?;
        let (_snapshot, view) = view(snapshot, map)?;
        let entries = reads::of_view(&view, &*table::map(map)?, &request)?;
        array(env, &entries)
    }

    "snapshotMemory" => fn snapshot_memory<'l>(_env, snapshot: jlong) -> jlong {
        Ok(table::snapshot(snapshot)?.snapshot.memory() as jlong)
    }
}
