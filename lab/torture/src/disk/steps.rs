//! The steps of processes: writes of every kind, reads, checkpoints, syncs.

use super::faults::Kind;
use super::process::{Durable, MAPS, OTHER, Process, lock};
use super::state::{EXPIRING, State, key, value};
use super::trouble::Trouble;
use crashkit::Random;
use crashkit::disk::CrashDisk;
use std::sync::Arc;
use std::time::Duration;
use wollemi::{Durability, Error, Expiring, IndexError, IndexKind, Parts, Sorted};

/// A map's number, a key, and its new value (`None`: removed).
type StateChange = (usize, Vec<u8>, Option<Arc<[u8]>>);

/// The number of maps for single writes: all but the expiring map.
const PLAIN: u64 = 3;

impl Process {
    /// Executes one step.
    pub fn step(&mut self, random: &mut Random) -> Result<(), Trouble> {
        match random.below(40) {
            0..8 => self.write(random),
            8..10 => self.conditional(random),
            10..13 => self.batch(random),
            13..15 => self.transaction(random),
            15 | 16 => self.load(random),
            17 => self.pop(random),
            18..20 => self.live_entry(random),
            20 => self.sweep(),
            21..23 => self.make(random),
            23..25 => self.drop_other(),
            25 => self.build(random),
            26..28 => self.turn(random),
            28..30 => self.sync(),
            30..33 => self.checkpoint(random),
            33 => self.sync_beside_a_writer(random),
            34..36 => self.checkpoint_beside_a_writer(random),
            36..39 => self.read(random),
            _ => self.snapshot(random),
        }
    }

    /// Draws a change of a plain map.
    fn change(&mut self, random: &mut Random) -> StateChange {
        let value = (random.below(4) > 0).then(|| self.value(random));
        (random.below(PLAIN) as usize, key(random), value)
    }

    fn value(&mut self, random: &mut Random) -> Arc<[u8]> {
        self.last_value += 1;
        value(self.last_value, random)
    }

    fn touch(&mut self, changes: &[StateChange]) {
        let touched = changes
            .iter()
            .map(|(map, key, _)| (MAPS[*map].0.to_owned(), key.clone()));
        self.touched.extend(touched);
    }

    fn durability(random: &mut Random) -> Durability {
        match random.below(3) {
            0 => Durability::Eventual,
            _ => Durability::Immediate,
        }
    }

    fn write(&mut self, random: &mut Random) -> Result<(), Trouble> {
        let (change, how) = (self.change(random), Self::durability(random));
        self.touch(std::slice::from_ref(&change));
        let (map, key, value) = change;
        let state = self.now().with(MAPS[map].0, &key, value.as_ref());
        self.apply(vec![state], how.into(), |process| {
            let map = process.maps[map].with_durability(how);
            match &value {
                Some(value) => map.upsert(&key, value),
                None => map.remove(&key).map(drop),
            }
        })?;
        Ok(())
    }

    /// Makes a conditional write.
    fn conditional(&mut self, random: &mut Random) -> Result<(), Trouble> {
        let (map, key, how) = (
            random.below(PLAIN) as usize,
            key(random),
            Self::durability(random),
        );
        let (name, new, kind) = (MAPS[map].0, self.value(random), random.below(4));
        self.touch(&[(map, key.clone(), None)]);
        let old = self.now().get(name, &key).cloned();
        let expected = match random.below(2) {
            0 => old.clone(),
            _ => Some(Arc::from(&b"something else"[..])),
        };
        let done = match kind {
            0 => old.is_none(),
            1 => old.is_some(),
            2 => old == expected,
            _ => true,
        };
        let states = done.then(|| self.now().with(name, &key, Some(&new)));
        let answer = self.apply(states.into_iter().collect(), how.into(), |process| {
            let map = process.maps[map].with_durability(how);
            match kind {
                0 => map.insert(&key, &new),
                1 => map.update(&key, &new),
                2 => map.compare_and_swap(&key, expected.as_ref(), Some(&new)),
                _ => map.edit_with(&key, |_| Some(new.to_vec())).map(|_| true),
            }
        })?;
        match answer {
            Some(answer) if answer != done => wrong(format!("{name} answers {answer} to write {kind}")),
            _ => Ok(()),
        }
    }

    /// Draws changes of different keys.
    fn changes(&mut self, random: &mut Random) -> (Vec<StateChange>, State) {
        let mut changes = Vec::<StateChange>::new();
        for _ in 0..1 + random.below(4) {
            let change = self.change(random);
            if !changes
                .iter()
                .any(|(map, key, _)| (map, key) == (&change.0, &change.1))
            {
                changes.push(change);
            }
        }
        let mut state = State::clone(&self.now());
        for (map, key, value) in &changes {
            state.set(MAPS[*map].0, key, value.as_ref());
        }
        self.touch(&changes);
        (changes, state)
    }

    fn batch(&mut self, random: &mut Random) -> Result<(), Trouble> {
        let ((changes, state), how) = (self.changes(random), Self::durability(random));
        self.apply(vec![state], how.into(), |process| {
            let mut batch = process.db.batch();
            for (map, key, value) in &changes {
                match value {
                    Some(value) => batch.upsert(&process.maps[*map], key, value),
                    None => batch.remove(&process.maps[*map], key),
                };
            }
            batch.durability(how);
            batch.commit().map(drop)
        })?;
        Ok(())
    }

    fn transaction(&mut self, random: &mut Random) -> Result<(), Trouble> {
        let ((changes, state), how) = (self.changes(random), Self::durability(random));
        let (map, read) = (random.below(PLAIN) as usize, key(random));
        let expected = self.now().get(MAPS[map].0, &read).cloned();
        let seen = self.apply(vec![state], how.into(), |process| {
            process.db.transact(|tx| {
                let seen = tx.get(&process.maps[map], &read)?;
                for (map, key, value) in &changes {
                    match value {
                        Some(value) => tx.upsert(&process.maps[*map], key, value)?,
                        None => tx.remove(&process.maps[*map], key).map(drop)?,
                    }
                }
                tx.set_durability(how);
                Ok::<_, Error>(seen)
            })
        })?;
        match seen {
            Some(seen) if seen.as_deref() != expected.as_deref() => {
                wrong(format!("a transaction reads {seen:?} instead of {expected:?}"))
            }
            _ => Ok(()),
        }
    }

    /// Loads several keys in one call; a crash may leave a prefix.
    fn load(&mut self, random: &mut Random) -> Result<(), Trouble> {
        let map = random.below(PLAIN) as usize;
        let (mut entries, mut states, mut state) = (Vec::new(), Vec::new(), State::clone(&self.now()));
        for _ in 0..1 + random.below(3) {
            let (key, value) = (key(random), self.value(random));
            self.touch(&[(map, key.clone(), None)]);
            state.set(MAPS[map].0, &key, Some(&value));
            states.push(state.clone());
            entries.push((key, value));
        }
        self.apply(states, Durable::OnReturn, |process| {
            process.maps[map].load(entries.iter().map(|(key, value)| (key, value)))
        })?;
        Ok(())
    }

    /// Pops the first entry of an ordered map, or the last.
    fn pop(&mut self, random: &mut Random) -> Result<(), Trouble> {
        let (map, last) = (random.below(PLAIN - 1) as usize, random.below(2) == 0);
        let now = self.now();
        let held = now.0.get(MAPS[map].0).map(|entries| &entries.held);
        let end = held.and_then(|held| {
            if last {
                held.last_key_value()
            } else {
                held.first_key_value()
            }
        });
        let expected = end.map(|(key, value)| (key.clone(), value.to_vec()));
        let states = expected.iter().map(|(key, _)| now.with(MAPS[map].0, key, None));
        if let Some((key, _)) = &expected {
            self.touch(&[(map, key.clone(), None)]);
        }
        let popped = self.apply(states.collect(), Durable::OnReturn, |process| match last {
            true => process.maps[map].pop_last(),
            false => process.maps[map].pop_first(),
        })?;
        match popped {
            Some(popped) if popped != expected => {
                wrong(format!("a pop returns {popped:?} instead of {expected:?}"))
            }
            _ => Ok(()),
        }
    }

    /// Writes an entry that never expires, expires after any history, or has expired already.
    fn live_entry(&mut self, random: &mut Random) -> Result<(), Trouble> {
        let (key, value) = (key(random), self.value(random));
        let life = *random.pick(&[None, Some(Duration::from_secs(100_000)), Some(Duration::ZERO)]);
        let visible = Some(&value).filter(|_| life != Some(Duration::ZERO));
        let state = self.now().with(EXPIRING, &key, visible);
        let how = Self::durability(random);
        self.apply(vec![state], how.into(), |process| {
            let map = Expiring::new(process.maps[3].with_durability(how));
            map.upsert(&key, &value, life)
        })?;
        Ok(())
    }

    fn sweep(&mut self) -> Result<(), Trouble> {
        self.apply(Vec::new(), Durable::Later, |process| {
            Expiring::new(process.maps[3].clone()).sweep(&mut None, usize::MAX)
        })?;
        Ok(())
    }

    /// Makes the temporary map `OTHER` unless it exists, and writes to it.
    fn make(&mut self, random: &mut Random) -> Result<(), Trouble> {
        let kind = *random.pick(&[IndexKind::Roart, IndexKind::Woart, IndexKind::Clht]);
        let now = self.now();
        if !now.0.contains_key(OTHER) {
            self.reach("maps made");
            let mut state = State::clone(&now);
            state.0.entry(OTHER.into()).or_default().index = kind.name().into();
            self.apply(vec![state], Durable::OnReturn, |process| {
                process.db.map_with(OTHER, kind).map(drop)
            })?;
        }
        let (now, key, value) = (self.now(), key(random), self.value(random));
        if !now.0.contains_key(OTHER) {
            return Ok(());
        }
        let (state, how) = (now.with(OTHER, &key, Some(&value)), Self::durability(random));
        let map = match self.db.find_map(OTHER) {
            Ok(Some(map)) => map.with_durability(how),
            Ok(None) => return wrong(format!("the map {OTHER} is missing")),
            // The sync after its creation has failed.
            Err(Error::Index(IndexError::NotDurable(_)))
                if self.disk.injected() > 0 && self.has_failed()? =>
            {
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        self.apply(vec![state], how.into(), |_| map.upsert(&key, &value))?;
        Ok(())
    }

    fn drop_other(&mut self) -> Result<(), Trouble> {
        let mut state = State::clone(&self.now());
        if state.0.remove(OTHER).is_none() {
            return Ok(());
        }
        self.reach("maps dropped");
        self.apply(vec![state], Durable::OnReturn, |process| {
            process.db.drop_map(OTHER)
        })?;
        Ok(())
    }

    /// Builds `OTHER` from sorted pairs, unless it exists.
    fn build(&mut self, random: &mut Random) -> Result<(), Trouble> {
        let now = self.now();
        if now.0.contains_key(OTHER) {
            return Ok(());
        }
        let mut state = State::clone(&now);
        state.0.entry(OTHER.into()).or_default().index = "roart".into();
        let mut states = vec![state.clone()];
        let keys = std::iter::repeat_with(|| key(random))
            .take(3)
            .collect::<std::collections::BTreeSet<_>>();
        let pairs: Vec<_> = keys.into_iter().map(|key| (key, self.value(random))).collect();
        for (key, value) in &pairs {
            state.set(OTHER, key, Some(value));
            states.push(state.clone());
        }
        self.apply(states, Durable::OnReturn, |process| {
            let mut sorted = Sorted::new(pairs.iter().map(|(key, value)| (key, value)));
            let parts = Parts::new(&mut sorted);
            process
                .db
                .build_map_with(OTHER, IndexKind::Roart, parts)
                .map(drop)
        })?;
        Ok(())
    }

    /// Makes several writes in one turn: they become durable together.
    fn turn(&mut self, random: &mut Random) -> Result<(), Trouble> {
        let mut states = Vec::new();
        let mut changes = Vec::new();
        let mut state = State::clone(&self.now());
        for _ in 0..2 + random.below(2) {
            let change = self.change(random);
            state.set(MAPS[change.0].0, &change.1, change.2.as_ref());
            states.push(state.clone());
            changes.push(change);
        }
        self.touch(&changes);
        self.apply(states, Durable::OnReturn, |process| {
            let turn = process.db.turn();
            for (map, key, value) in &changes {
                match value {
                    Some(value) => process.maps[*map].upsert(key, value)?,
                    None => process.maps[*map].remove(key).map(drop)?,
                }
            }
            turn.end()
        })?;
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Trouble> {
        let reached = self.notes().now.done;
        if self
            .apply(Vec::new(), Durable::Later, |process| process.db.sync())?
            .is_some()
        {
            self.synced(reached);
        }
        Ok(())
    }

    /// Notes that everything up to this state is durable.
    fn synced(&mut self, reached: usize) {
        self.notes().end(reached, true);
        let now = self.notes().now;
        if now.durable == now.max {
            self.touched.clear();
        }
    }

    fn checkpoint(&mut self, random: &mut Random) -> Result<(), Trouble> {
        let (full, reached) = (random.below(4) == 0, self.notes().now.done);
        let taken = self.apply_kind(Kind::Checkpoint, Vec::new(), Durable::Later, |process| {
            process.db.checkpoint(full)
        })?;
        if let Some(taken) = taken.flatten() {
            self.reach(if taken.full { "full checkpoints" } else { "deltas" });
            self.synced(reached);
        }
        Ok(())
    }

    /// Syncs while another thread writes; the sync need not cover that write.
    fn sync_beside_a_writer(&mut self, random: &mut Random) -> Result<(), Trouble> {
        self.write(random)?;
        self.beside(random, 0);
        let done = self.sync();
        self.disk.forget_amid_sync();
        done
    }

    /// Takes a checkpoint while another thread writes.
    fn checkpoint_beside_a_writer(&mut self, random: &mut Random) -> Result<(), Trouble> {
        let later = random.below(6);
        self.beside(random, later);
        let done = self.checkpoint(random);
        self.disk.forget_amid_sync();
        done
    }

    /// Schedules an eventual write in the middle of a sync of the disk, `later` syncs from now, if the log has room for
    /// it.
    fn beside(&mut self, random: &mut Random, later: u64) {
        let (map, key, value) = self.change(random);
        self.touch(&[(map, key.clone(), None)]);
        let log = self
            .db
            .stats()
            .ok()
            .and_then(|stats| stats.log)
            .unwrap_or_default();
        if log.kept + (24 << 10) > log.limit {
            return;
        }
        let (notes, errors) = (self.notes.clone(), self.beside.clone());
        let target = self.maps[map].with_durability(Durability::Eventual);
        amid(&self.disk.clone(), later, move || {
            let state = lock(&notes).newest().with(MAPS[map].0, &key, value.as_ref());
            let last = lock(&notes).begin([state]);
            let written = match &value {
                Some(value) => target.upsert(&key, value),
                None => target.remove(&key).map(drop),
            };
            let mut notes = lock(&notes);
            if let Err(Error::Index(IndexError::Refused(_))) = written {
                let before = notes.states[last - 1].clone();
                notes.states[last] = None;
                notes.begin(before.map(|noted| State::clone(&noted.state)));
            }
            lock(&errors).extend(written.err());
            let reached = notes.states.len() - 1;
            notes.end(reached, false);
        });
    }

    fn read(&mut self, random: &mut Random) -> Result<(), Trouble> {
        let (map, key, now) = (random.below(PLAIN) as usize, key(random), self.now());
        let name = MAPS[map].0;
        let got = self.apply(Vec::new(), Durable::Later, |process| process.maps[map].get(&key))?;
        if let Some(got) = got
            && got.as_deref() != now.get(name, &key).map(|value| &**value)
        {
            return wrong(format!("{name} {} reads {got:?}", key.escape_ascii()));
        }
        let all = self.apply(Vec::new(), Durable::Later, |process| State::of(&process.db))?;
        match all {
            Some(all) if all != *now => wrong(format!("it reads\n{all:?}\n  instead of\n{now:?}")),
            _ => Ok(()),
        }
    }

    /// Checks that a snapshot still shows the content at the time it was taken.
    fn snapshot(&mut self, random: &mut Random) -> Result<(), Trouble> {
        let before = self.now();
        let Some(snapshot) = self.apply(Vec::new(), Durable::Later, |process| process.db.snapshot())? else {
            return Ok(());
        };
        self.write(random)?;
        let shown = self.apply(Vec::new(), Durable::Later, |process| {
            let view = snapshot.view(&process.maps[0])?;
            view.iter().collect::<Result<Vec<_>, _>>()
        })?;
        let held = before.0.get("a").into_iter().flat_map(|entries| &entries.held);
        let held: Vec<_> = held.map(|(key, value)| (key.clone(), value.to_vec())).collect();
        match shown {
            Some(shown) if shown != held => {
                wrong("a snapshot differs from the content when it was taken".into())
            }
            _ => Ok(()),
        }
    }
}

/// Schedules an action in the middle of a sync of the disk, `later` syncs from now.
fn amid(disk: &CrashDisk, later: u64, action: impl FnOnce() + Send + 'static) {
    let this = disk.clone();
    disk.amid_next_sync(move || match later {
        0 => action(),
        later => amid_boxed(&this, later - 1, Box::new(action)),
    });
}

fn amid_boxed(disk: &CrashDisk, later: u64, action: Box<dyn FnOnce() + Send>) {
    amid(disk, later, action);
}

fn wrong<T>(what: String) -> Result<T, Trouble> {
    Err(Trouble::Wrong(what))
}
