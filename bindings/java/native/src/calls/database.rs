//! Opening and closing a database, and operations on all of it.

use super::native;
use crate::bytes::{Packed, array, bytes, text, unpack};
use crate::failure::Failure;
use crate::options;
use crate::report;
use crate::table::{self, Map, Object, Snapshot};
use jni::objects::JByteArray;
use jni::sys::{jboolean, jint, jlong};
use std::sync::Arc;
use std::time::Duration;
use wollemi::{Check, RecoveryState};

/// Operations of a batch, with the numbers of `Batch.java`.
const PUT: u8 = 0;
const REMOVE: u8 = 1;
const EXPECT: u8 = 2;

/// Parses a batch's operation: its number (1 byte), the map's number (8 bytes).
fn operation(bytes: Option<&[u8]>) -> Option<(u8, i64)> {
    let (&what, map) = bytes?.split_first()?;
    Some((what, i64::from_be_bytes(map.try_into().ok()?)))
}

/// Returns a UTF-8 name of a packed array.
fn name(bytes: Option<&[u8]>) -> Result<&str, Failure> {
    let name = bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
    name.ok_or_else(|| Failure::Argument("a name that is not UTF-8".into()))
}

native! {
    "version" => fn version<'l>(env) -> JByteArray<'l> {
        array(env, env!("CARGO_PKG_VERSION").as_bytes())
    }

    "panic" => fn panic<'l>(env, message: JByteArray<'l>) -> () {
        let message = text(env, &message)?;
        std::panic::panic_any(message)
    }

    "close" => fn close<'l>(_env, number: jlong) -> jboolean {
        table::close(number)
    }

    "abandon" => fn abandon<'l>(_env, database: jlong) -> () {
        table::database(database)?.db.abandon();
        Ok(())
    }

    "open" => fn open<'l>(env, path: JByteArray<'l>, given: JByteArray<'l>) -> jlong {
        let path = if path.is_null() { None } else { Some(text(env, &path)?) };
        let given = bytes(env, &given)?;
        let given = unpack(&given)?.into_iter().map(name).collect::<Result<Vec<_>, _>>()?;
        let pairs: Vec<_> = given.as_chunks::<2>().0.iter().map(|&[name, value]| (name, value)).collect();
        let options = options::options(&pairs)?;
        let db = match path {
            Some(path) => options.open(path)?,
            None => options.anonymous()?,
        };
        Ok(table::add_database(db) as jlong)
    }

    "map" => fn map<'l>(env, database: jlong, name: JByteArray<'l>, index: JByteArray<'l>, create: jboolean) -> jlong {
        let database = table::database(database)?;
        let name = text(env, &name)?;
        let map = if !create {
            database.db.find_map(&name)?
        } else if index.is_null() {
            Some(database.db.map(&name)?)
        } else {
            let index = text(env, &index)?.parse();
            let index = index.map_err(|error: wollemi::UnknownIndex| Failure::Argument(error.to_string()))?;
            Some(database.db.map_with(&name, index)?)
        };
        let Some(map) = map else {
            return Ok(0);
        };
        let map = Map { map, database: database.clone() };
        Ok(database.own(Object::Map(Arc::new(map)))? as jlong)
    }

    "maps" => fn maps<'l>(env, database: jlong) -> JByteArray<'l> {
        array(env, &report::maps(&table::database(database)?.db.maps()?))
    }

    "dropMap" => fn drop_map<'l>(env, database: jlong, name: JByteArray<'l>) -> jboolean {
        Ok(table::database(database)?.db.drop_map(&text(env, &name)?)?)
    }

    "level" => fn level<'l>(env, database: jlong) -> JByteArray<'l> {
        array(env, table::database(database)?.db.level().name().as_bytes())
    }

    "sync" => fn sync<'l>(_env, database: jlong) -> () {
        Ok(table::database(database)?.db.sync()?)
    }

    "checkpoint" => fn checkpoint<'l>(_env, database: jlong, full: jboolean) -> jlong {
        let checkpoint = table::database(database)?.db.checkpoint(full)?;
        Ok(checkpoint.map_or(-1, |checkpoint| checkpoint.entries as jlong))
    }

    "setDurability" => fn set_durability<'l>(env, database: jlong, durability: JByteArray<'l>) -> () {
        let durability = options::durability(&text(env, &durability)?)?;
        table::database(database)?.db.set_durability(durability);
        Ok(())
    }

    "setSyncWithin" => fn set_sync_within<'l>(_env, database: jlong, millis: jlong) -> () {
        let within = u64::try_from(millis).ok().map(Duration::from_millis);
        table::database(database)?.db.set_sync_within(within);
        Ok(())
    }

    "stats" => fn stats<'l>(env, database: jlong) -> JByteArray<'l> {
        array(env, &report::stats(&table::database(database)?.db.stats()?))
    }

    "check" => fn check<'l>(env, database: jlong) -> JByteArray<'l> {
        let check: Check = table::database(database)?.db.check()?;
        array(env, &report::check(&check))
    }

    "waitRecovered" => fn wait_recovered<'l>(env, database: jlong) -> JByteArray<'l> {
        let state: RecoveryState = table::database(database)?.db.wait_recovered().state;
        array(env, state.to_string().as_bytes())
    }

    "giveBack" => fn give_back<'l>(_env, database: jlong) -> jlong {
        Ok(table::database(database)?.db.give_back()? as jlong)
    }

    "snapshot" => fn snapshot<'l>(_env, database: jlong, max: jlong) -> jlong {
        let database = table::database(database)?;
        let snapshot = match u64::try_from(max) {
            Ok(max) => database.db.snapshot_within(max)?,
            Err(_) => database.db.snapshot()?,
        };
        let snapshot = Snapshot { snapshot, _database: database.clone() };
        Ok(database.own(Object::Snapshot(Arc::new(snapshot)))? as jlong)
    }

    "commitBatch" => fn commit_batch<'l>(
        env, database: jlong, operations: JByteArray<'l>, durability: JByteArray<'l>,
    ) -> jboolean {
        let database = table::database(database)?;
        let operations = bytes(env, &operations)?;
        let operations = unpack(&operations)?;
        let mut batch = database.db.batch();
        if !durability.is_null() {
            batch.durability(options::durability(&text(env, &durability)?)?);
        }
        let torn = || Failure::Argument("a malformed batch".into());
        let mut last: Option<(i64, Arc<Map>)> = None;
        let (operations, []) = operations.as_chunks::<3>() else {
            return Err(torn());
        };
        for [what, key, value] in operations {
            let (what, number) = operation(*what).ok_or_else(torn)?;
            let map = match &last {
                Some((same, map)) if *same == number => map.clone(),
                _ => table::map(number)?,
            };
            let key = key.ok_or_else(torn)?;
            match (what, *value) {
                (PUT, Some(value)) => batch.upsert(&map.map, key, value),
                (REMOVE, _) => batch.remove(&map.map, key),
                (EXPECT, value) => batch.expect(&map.map, key, value),
                _ => return Err(torn()),
            };
            last = Some((number, map));
        }
        Ok(batch.commit()?)
    }

    "indexes" => fn indexes<'l>(env) -> JByteArray<'l> {
        let mut packed = Packed::default();
        for index in wollemi::IndexKind::ALL {
            packed.text(index.name());
        }
        array(env, &packed.0)
    }

    "maxKey" => fn max_key<'l>(_env) -> jint {
        Ok(wollemi::MAX_KEY as jint)
    }

    "maxValue" => fn max_value<'l>(_env) -> jint {
        Ok(wollemi::MAX_VALUE as jint)
    }
}
