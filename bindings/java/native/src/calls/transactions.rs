//! Transactions.

use super::maps::cursor_request;
use super::native;
use crate::bytes::{array, bytes, text};
use crate::failure::Failure;
use crate::table::{self, Borrowed, Map, Object, Running, Transaction};
use crate::{options, reads};
use jni::objects::{JByteArray, JObject};
use jni::sys::{jboolean, jint, jlong};
use std::sync::{Arc, Mutex, PoisonError};
use wollemi::Error;

const ENDED: Failure = Failure::Closed("the transaction has ended");

/// Runs a closure with a transaction that has not ended.
fn with<R>(
    number: jlong,
    run: impl FnOnce(&mut wollemi::Transaction<'_>) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let transaction = table::transaction(number)?;
    let mut running = transaction.running.lock().unwrap_or_else(PoisonError::into_inner);
    running.with_dependent_mut(|_, running| run(running.0.as_mut().ok_or(ENDED)?))
}

/// Runs a closure with a transaction and a map.
fn with_map<R>(
    number: jlong,
    map: jlong,
    run: impl FnOnce(&mut wollemi::Transaction<'_>, &Map) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let map = table::map(map)?;
    with(number, |transaction| run(transaction, &map))
}

/// Ends a transaction. Only one of several threads that try succeeds.
fn end(
    number: jlong,
    how: impl FnOnce(wollemi::Transaction<'_>) -> Result<(), Error>,
) -> Result<(), Failure> {
    let transaction = table::transaction(number)?;
    let ended = {
        let mut running = transaction.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.with_dependent_mut(|_, running| Ok(how(running.0.take().ok_or(ENDED)?)?))
    };
    table::close(number)?;
    ended
}

// `_held` is the map's handle: passing it keeps it from being collected, and so closed, during the call.
native! {
    "begin" => fn begin<'l>(env, database: jlong, durability: JByteArray<'l>, again: jboolean) -> jlong {
        let database = table::database(database)?;
        let mut running = Borrowed::new(database.clone(), |database| {
            let mut transaction = database.db.begin();
            transaction.set_again(again);
            Running(Some(transaction))
        });
        if !durability.is_null() {
            let durability = options::durability(&text(env, &durability)?)?;
            running.with_dependent_mut(|_, running| {
                if let Some(transaction) = &mut running.0 {
                    transaction.set_durability(durability);
                }
            });
        }
        let running = Mutex::new(running);
        let transaction = Transaction { running, _database: database.clone() };
        Ok(database.own(Object::Transaction(Arc::new(transaction)))? as jlong)
    }

    "txGet" => fn tx_get<'l>(env, tx: jlong, _held: JObject<'l>, map: jlong, key: JByteArray<'l>) -> JByteArray<'l> {
        let key = bytes(env, &key)?;
        match with_map(tx, map, |tx, map| Ok(tx.get(&map.map, &key)?))? {
            Some(value) => array(env, &value),
            None => Ok(JByteArray::default()),
        }
    }

    "txPut" => fn tx_put<'l>(env, tx: jlong, _held: JObject<'l>, map: jlong, key: JByteArray<'l>, value: JByteArray<'l>) -> () {
        let (key, value) = (bytes(env, &key)?, bytes(env, &value)?);
        with_map(tx, map, |tx, map| Ok(tx.upsert(&map.map, &key, &value)?))
    }

    "txPutIfAbsent" => fn tx_put_if_absent<'l>(
        env, tx: jlong, _held: JObject<'l>, map: jlong, key: JByteArray<'l>, value: JByteArray<'l>,
    ) -> jboolean {
        let (key, value) = (bytes(env, &key)?, bytes(env, &value)?);
        with_map(tx, map, |tx, map| Ok(tx.insert(&map.map, &key, &value)?))
    }

    "txRemove" => fn tx_remove<'l>(env, tx: jlong, _held: JObject<'l>, map: jlong, key: JByteArray<'l>) -> jboolean {
        let key = bytes(env, &key)?;
        with_map(tx, map, |tx, map| Ok(tx.remove(&map.map, &key)?))
    }

    "txFetch" => fn tx_fetch<'l>(
        env, tx: jlong, _held: JObject<'l>, map: jlong, lower: JByteArray<'l>, lower_inclusive: jboolean,
        upper: JByteArray<'l>, upper_inclusive: jboolean, after: JByteArray<'l>, reverse: jboolean, limit: jint,
    ) -> JByteArray<'l> {
        let request = cursor_request(env, (&lower, lower_inclusive), (&upper, upper_inclusive), &after, reverse, limit)?;
        let entries = with_map(tx, map, |tx, map| reads::of_transaction(tx, map, &request))?;
        array(env, &entries)
    }

    "txCommit" => fn tx_commit<'l>(_env, tx: jlong) -> () {
        end(tx, |tx| tx.commit())
    }

    "txCheck" => fn tx_check<'l>(_env, tx: jlong) -> () {
        end(tx, |tx| tx.check())
    }
}
