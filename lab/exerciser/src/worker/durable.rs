//! Calls about the durability of writes, at level `disk`; at the other levels they do not wait.

use super::{Worker, Wrong, is_full, same};
use crate::op::{Durable, EventualBy};
use crate::truth::Val;
use std::time::Duration;
use wollemi::{Durability, Error, Level};

impl Worker<'_> {
    pub(super) fn durable(&mut self, call: Durable) -> Result<Option<Wrong>, Error> {
        let (db, has_log) = (self.db, self.db.level() == Level::Disk);
        let answer = match call {
            Durable::Sync => {
                db.sync()?;
                Ok(())
            }
            Durable::Checkpoint(full) => same("checkpoint", db.checkpoint(full)?.is_some(), has_log),
            Durable::RequestCheckpoint => same("request_checkpoint", db.request_checkpoint(), has_log),
            Durable::SyncInterval(milliseconds) => {
                db.set_sync_within(Duration::from_millis(milliseconds));
                Ok(())
            }
            Durable::About => {
                // Sets the durability to its present value, because the other threads rely on it.
                db.set_durability(db.durability());
                let durability = match self.plan.durability {
                    Some(durability) if has_log => durability,
                    _ => Durability::Immediate,
                };
                same("durability", db.durability(), durability)
                    .and(same("log_stats", db.log_stats().is_some(), has_log))
                    .and(same("failure", db.failure(), None))
            }
        };
        Ok(answer.err())
    }

    pub(super) fn eventual(
        &mut self,
        slot: usize,
        n: usize,
        new: Val,
        by: EventualBy,
    ) -> Result<Option<Wrong>, Error> {
        let (db, map) = (self.db, self.map(slot)?);
        let (key, value) = (&self.keys[slot][n], new.bytes());
        match by {
            EventualBy::Map => {
                map.with_durability(Durability::Eventual).upsert(key, value)?;
                db.sync()?;
            }
            EventualBy::Batch => {
                let mut batch = db.batch();
                batch.upsert(&map, key, value).durability(Durability::Eventual);
                batch.commit()?;
                db.sync()?;
            }
            EventualBy::Transaction => {
                db.transact(|tx| {
                    tx.set_durability(Durability::Eventual);
                    tx.upsert(&map, key, &value)
                })?;
                db.sync()?;
            }
            EventualBy::Turn => {
                let mut turn = db.turn();
                for by_map in [false, true] {
                    match map.upsert(key, &value) {
                        // The pool may be full, but the first of the two writes has put the value.
                        Err(error) if by_map && is_full(&error) => {}
                        written => written?,
                    }
                    turn = db.resume(turn.pause());
                    match by_map {
                        true => map.settle_turn()?,
                        false => db.settle_turn()?,
                    }
                    if !db.is_turn_durable() {
                        return Ok(Some("a settled turn is not durable".into()));
                    }
                }
                turn.end()?;
            }
        }
        Ok(None)
    }
}
