//! Maps whose entries expire.

use super::native;
use crate::bytes::{Packed, array, bytes};
use crate::failure::Failure;
use crate::table::{self, Object, Sweeping};
use jni::objects::JByteArray;
use jni::sys::{jboolean, jlong};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use wollemi::Expiring;

/// An expiring map, and the handle, dropped last, of the map below: closing the database waits for calls that hold one.
struct Held {
    expiring: Expiring,
    _map: Arc<table::Map>,
}

impl Deref for Held {
    type Target = Expiring;

    fn deref(&self) -> &Expiring {
        &self.expiring
    }
}

fn expiring(map: jlong) -> Result<Held, Failure> {
    let map = table::map(map)?;
    Ok(Held {
        expiring: Expiring::new(map.map.clone()),
        _map: map,
    })
}

/// Converts a life in milliseconds; a negative one means none.
fn life(millis: jlong) -> Option<Duration> {
    u64::try_from(millis).ok().map(Duration::from_millis)
}

/// Packs a value, with its remaining life in milliseconds if it expires.
fn living(read: Option<wollemi::WithLife>) -> Option<Packed> {
    let (value, left) = read?;
    let mut packed = Packed::default();
    packed.put(Some(&value));
    if let Some(left) = left {
        packed.number(u64::try_from(left.as_millis()).unwrap_or(u64::MAX >> 1));
    }
    Some(packed)
}

native! {
    "expiringGet" => fn expiring_get<'l>(env, map: jlong, key: JByteArray<'l>) -> JByteArray<'l> {
        match living(expiring(map)?.get_with_life(bytes(env, &key)?)?) {
            Some(packed) => array(env, &packed.0),
            None => Ok(JByteArray::default()),
        }
    }

    "expiringRead" => fn expiring_read<'l>(env, map: jlong, held: JByteArray<'l>) -> JByteArray<'l> {
        match living(expiring(map)?.read(&bytes(env, &held)?)?) {
            Some(packed) => array(env, &packed.0),
            None => Ok(JByteArray::default()),
        }
    }

    "expiringBytes" => fn expiring_bytes<'l>(env, map: jlong, value: JByteArray<'l>, millis: jlong) -> JByteArray<'l> {
        let held = expiring(map)?.bytes(bytes(env, &value)?, life(millis));
        array(env, &held)
    }

    "expiringPut" => fn expiring_put<'l>(env, map: jlong, key: JByteArray<'l>, value: JByteArray<'l>, millis: jlong) -> () {
        Ok(expiring(map)?.upsert(bytes(env, &key)?, bytes(env, &value)?, life(millis))?)
    }

    "expiringPutIfAbsent" => fn expiring_put_if_absent<'l>(
        env, map: jlong, key: JByteArray<'l>, value: JByteArray<'l>, millis: jlong,
    ) -> jboolean {
        Ok(expiring(map)?.insert(bytes(env, &key)?, bytes(env, &value)?, life(millis))?)
    }

    "expiringTouch" => fn expiring_touch<'l>(env, map: jlong, key: JByteArray<'l>, millis: jlong) -> jboolean {
        Ok(expiring(map)?.touch(bytes(env, &key)?, life(millis))?)
    }

    "expiringRemove" => fn expiring_remove<'l>(env, map: jlong, key: JByteArray<'l>) -> jboolean {
        Ok(expiring(map)?.remove(bytes(env, &key)?)?)
    }

    "sweeper" => fn sweeper<'l>(_env, map: jlong, pause_millis: jlong) -> jlong {
        let map = table::map(map)?;
        let pause = life(pause_millis).unwrap_or_default();
        let sweeper = Expiring::new(map.map.clone()).sweeper(pause)?;
        let database = map.database.clone();
        let sweeping = Sweeping { sweeper, _database: database.clone() };
        drop(map);
        Ok(database.own(Object::Sweeper(Arc::new(sweeping)))? as jlong)
    }

    "swept" => fn swept<'l>(_env, sweeper: jlong) -> jlong {
        Ok(table::sweeper(sweeper)?.sweeper.removed() as jlong)
    }
}
