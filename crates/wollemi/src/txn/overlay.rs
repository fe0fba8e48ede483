//! Buffered changes, and the maps as they would be with them applied.

use crate::read::merge::Bounds;
use crate::txn::layer::{Changes, Layer};
use crate::write::map_index::{KeyState, Plan};
use crate::{Db, Error, MAX_KEY, MAX_VALUE, Map, Media};
use index::{Action, Direction, Edit, Order};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// The callback of a scan, for each key and its value.
pub type Visit<'v> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'v;

/// Buffered changes to any of a database's maps. [`Db::commit`] commits all of them or none. Only reads and edits
/// through the overlay see them.
///
/// An overlay records no reads and takes no locks, and its commit applies the changes regardless of the maps' content
/// at that time. Use it only if other writers are kept away meanwhile; otherwise use [`Db::transact`].
///
/// ```
/// use wollemi::{Overlay, Upsert};
///
/// let db = wollemi::Db::anonymous()?;
/// let map = db.map("letters")?;
/// let mut overlay = Overlay::new();
/// overlay.edit(&map, b"a", &mut Upsert(b"alpha"))?;
/// assert!(overlay.read(&map, b"a", |value| value == Some(b"alpha"))?);
/// assert_eq!(map.get("a")?, None);
/// db.commit(overlay)?;
/// assert_eq!(map.get("a")?, Some(b"alpha".to_vec()));
/// # Ok::<(), wollemi::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "an overlay changes nothing before it is committed"]
pub struct Overlay {
    /// In the order in which the maps were first changed.
    maps: Vec<Layer>,
    /// Maximum bytes of changes to one map.
    max: usize,
    /// Whether the limit was exceeded, so that changes are missing.
    outgrown: bool,
}

impl Default for Overlay {
    fn default() -> Overlay {
        Overlay::within(usize::MAX)
    }
}

impl Overlay {
    /// Creates an empty overlay.
    pub fn new() -> Overlay {
        Overlay::default()
    }

    /// Creates an empty overlay with a limit of this many bytes of changes to each map. Beyond it the overlay is
    /// [outgrown](Overlay::is_outgrown): it buffers no further values and cannot be committed.
    pub fn within(max: usize) -> Overlay {
        Overlay {
            maps: Vec::new(),
            max,
            outgrown: false,
        }
    }

    /// Returns the changes to a map, if there are any.
    pub(crate) fn of(&self, map: &Map) -> Option<&Changes> {
        let layer = self.maps.iter().find(|layer| layer.is_of(map));
        layer.map(|layer| &layer.changes)
    }

    /// Returns the buffered change of a key, if there is one.
    pub(crate) fn get(&self, map: &Map, key: &[u8]) -> Option<&Option<Vec<u8>>> {
        self.of(map)?.get(key)
    }

    /// Removes the first key in this direction. The caller has read the map from [what is left](Overlay::rest) up to
    /// this key, and keeps those reads valid.
    pub(crate) fn pop(&mut self, map: &Map, key: &[u8], direction: Direction) {
        self.set(map, key, None);
        if let Some(layer) = self.maps.iter_mut().find(|layer| layer.is_of(map)) {
            layer.exclude(key, direction);
        }
    }

    /// Returns the bounds of what pops have left of a map: with its changes, it has no key outside of them.
    pub(crate) fn rest(&self, map: &Map) -> Bounds<'_> {
        let layer = self.maps.iter().find(|layer| layer.is_of(map));
        layer.map_or((Bound::Unbounded, Bound::Unbounded), Layer::rest)
    }

    /// Buffers a change of a key.
    pub(crate) fn set(&mut self, map: &Map, key: &[u8], value: Option<&[u8]>) {
        let place = self.maps.iter().position(|layer| layer.is_of(map));
        let place = place.unwrap_or_else(|| {
            self.maps.push(Layer::new(map));
            self.maps.len() - 1
        });
        let layer = &mut self.maps[place];
        let len = |value: Option<&[u8]>| value.map_or(0, <[u8]>::len);
        let full = layer.bytes > self.max;
        if full && value.is_some() {
            self.outgrown = true;
            return;
        }
        layer.bytes += key.len() + len(value);
        if value.is_some() {
            layer.include(key);
        }
        let value = value.map(<[u8]>::to_vec);
        if let Some(old) = layer.changes.insert(key.to_vec(), value) {
            layer.bytes -= key.len() + len(old.as_deref());
        }
    }

    /// Calls a closure with a key's value.
    ///
    /// # Errors
    ///
    /// Those of the map's index.
    pub fn read<T>(
        &self,
        map: &Map,
        key: &[u8],
        show: impl FnOnce(Option<&[u8]>) -> T,
    ) -> Result<T, index::Error> {
        if let Some(value) = self.get(map, key) {
            return Ok(show(value.as_deref()));
        }
        let guard = heap::pin();
        Ok(show(map.index.get(key, &guard)?.as_deref()))
    }

    /// Applies an edit to the overlay. Returns its decision, or [`Action::Keep`] if it would remove an absent key.
    ///
    /// # Errors
    ///
    /// A key or a value that is too long, and the errors of the map's index.
    pub fn edit(&mut self, map: &Map, key: &[u8], edit: &mut dyn Edit) -> Result<Action, index::Error> {
        if key.len() > MAX_KEY {
            return Err(index::Error::KeyTooLong(key.len()));
        }
        let mut was_there = false;
        let action = self.read(map, key, |current| {
            was_there = current.is_some();
            edit.decide(current)
        })?;
        match action {
            Action::Put if edit.value().len() > MAX_VALUE => {
                return Err(index::Error::ValueTooLong(edit.value().len()));
            }
            Action::Put => self.set(map, key, Some(edit.value())),
            Action::Remove if was_there => self.set(map, key, None),
            Action::Remove | Action::Keep => return Ok(Action::Keep),
        }
        Ok(action)
    }

    /// Visits the keys between the bounds in the order of the map's index, until the visitor breaks, as
    /// [`walk`](index::Index::walk) does.
    ///
    /// # Errors
    ///
    /// Those of the map's index.
    pub fn scan(
        &self,
        map: &Map,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), index::Error> {
        let guard = heap::pin();
        let order = map.index.order();
        let changes = self.of(map).filter(|_| order.has_between(lower, upper));
        let mut between = changes.map_or_else(
            || Box::new(std::iter::empty()) as Between<'_>,
            |changes| between(changes, order, (lower, upper), direction),
        );
        let mut next = between.next();
        let mut ended = false;
        map.index
            .walk(lower, upper, direction, &guard, &mut |key, value| {
                // Buffered changes of keys before this one.
                while let Some((before, kept)) = next
                    && order.comes_first(before, key, direction)
                {
                    next = between.next();
                    if let Some(value) = kept
                        && visit(before, value).is_break()
                    {
                        ended = true;
                        return ControlFlow::Break(());
                    }
                }
                let shown = match next {
                    Some((same, kept)) if same.as_slice() == key => {
                        next = between.next();
                        kept.as_deref().map(|value| visit(key, value))
                    }
                    _ => Some(visit(key, &value)),
                };
                let flow = shown.unwrap_or(ControlFlow::Continue(()));
                ended = flow.is_break();
                flow
            })?;
        while let Some((key, kept)) = next
            && !ended
        {
            next = between.next();
            if let Some(value) = kept {
                ended = visit(key, value).is_break();
            }
        }
        Ok(())
    }

    /// Returns the number of changed keys.
    pub fn len(&self) -> usize {
        self.maps.iter().map(|layer| layer.changes.len()).sum()
    }

    /// Returns whether no key is changed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of the changed keys and of their values.
    pub fn bytes(&self) -> usize {
        self.maps.iter().map(|layer| layer.bytes).sum()
    }

    /// Returns whether the limit was exceeded.
    pub fn is_outgrown(&self) -> bool {
        self.outgrown || self.maps.iter().any(|layer| layer.bytes > self.max)
    }

    /// Converts the changes for a commit.
    pub(crate) fn into_changes(self) -> Arc<[KeyState]> {
        let layers = self.maps.into_iter();
        layers
            .flat_map(|Layer { map, changes, .. }| {
                changes.into_iter().map(move |(key, value)| KeyState {
                    map: map.index.clone(),
                    key,
                    value,
                })
            })
            .collect()
    }
}

/// Changes, in order from one end.
type Between<'c> = Box<dyn Iterator<Item = (&'c Vec<u8>, &'c Option<Vec<u8>>)> + 'c>;

/// Returns the changes between bounds that do not cross.
fn between<'c>(
    changes: &'c Changes,
    order: Order,
    bounds: (Bound<&[u8]>, Bound<&[u8]>),
    direction: Direction,
) -> Between<'c> {
    if order.is_by_keys() {
        let range = changes.range::<[u8], _>(bounds);
        return match direction {
            Direction::Forward => Box::new(range),
            Direction::Reverse => Box::new(range.rev()),
        };
    }
    // The changes are ordered by their bytes.
    let mut some: Vec<_> = changes
        .iter()
        .filter(|(key, _)| order.contains(bounds, key))
        .collect();
    order.sort(&mut some, |(key, _)| key);
    match direction {
        Direction::Forward => Box::new(some.into_iter()),
        Direction::Reverse => Box::new(some.into_iter().rev()),
    }
}

impl<M: Media> Db<M> {
    /// Applies all changes of an overlay or, whenever a crash comes, none: they are durable when this returns. It works
    /// like the commit of a [`Batch`](crate::Batch).
    ///
    /// # Errors
    ///
    /// Those of [`Batch::commit`](crate::Batch::commit), including [`Error::OtherDatabase`];
    /// [`Error::OverlayOutgrown`]. Nothing was changed then.
    pub fn commit(&self, overlay: Overlay) -> Result<(), Error> {
        if overlay.is_outgrown() {
            return Err(Error::OverlayOutgrown(overlay.max));
        }
        let plan = Plan {
            changes: overlay.into_changes(),
            ..Plan::default()
        };
        // It has no expectations, so it is always applied.
        self.store().commit(&plan).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use index::{Remove, Upsert};
    use proptest::prelude::*;

    type Step = (u8, Option<Vec<u8>>);

    fn apply(map: &Map, (key, value): &Step) {
        let done = match value {
            Some(value) => map.upsert([*key], value),
            None => map.remove([*key]).map(drop),
        };
        done.expect("there is room");
    }

    fn lay(overlay: &mut Overlay, map: &Map, (key, value): &Step) {
        let done = match value {
            Some(value) => overlay.edit(map, &[*key], &mut Upsert(value)),
            None => overlay.edit(map, &[*key], &mut Remove),
        };
        done.expect("the map can be read");
    }

    fn seen(
        overlay: &Overlay,
        map: &Map,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        max: usize,
    ) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut seen = Vec::new();
        let scanned = overlay.scan(map, bounds, direction, &mut |key, value| {
            seen.push((key.to_vec(), value.to_vec()));
            match seen.len() < max {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        });
        scanned.expect("the map can be read");
        seen
    }

    /// An overlay that has exceeded its limit cannot be committed, even when its changes have become smaller again.
    #[test]
    fn an_outgrown_overlay_is_not_committed() -> Result<(), Error> {
        let db = Db::anonymous()?;
        let map = db.map("map")?;
        let mut overlay = Overlay::within(10);
        for key in ["a", "b", "c"] {
            overlay.edit(&map, key.as_bytes(), &mut Upsert(b"12345678"))?;
        }
        map.upsert("a", "there")?;
        overlay.edit(&map, b"a", &mut Remove)?;
        overlay.edit(&map, b"b", &mut Remove)?;
        assert!(overlay.is_outgrown());
        assert!(matches!(db.commit(overlay), Err(Error::OverlayOutgrown(10))));
        assert_eq!(map.count()?, 1);
        Ok(())
    }

    /// Maps of the same name in two databases are two maps: each shows its own changes, and a commit to either database
    /// changes nothing in the other.
    #[test]
    fn maps_of_other_databases_are_refused() -> Result<(), Error> {
        let databases = [Db::anonymous()?, Db::anonymous()?];
        let [ours, theirs] = [databases[0].map("map")?, databases[1].map("map")?];
        let mut overlay = Overlay::new();
        overlay.edit(&ours, b"a", &mut Upsert(b"ours"))?;
        assert!(overlay.read(&theirs, b"a", |value| value.is_none())?);
        overlay.edit(&theirs, b"b", &mut Upsert(b"theirs"))?;
        assert!(overlay.read(&ours, b"b", |value| value.is_none())?);
        assert!(matches!(
            databases[0].commit(overlay),
            Err(Error::OtherDatabase(_))
        ));
        assert!(ours.is_empty()? && theirs.is_empty()?);
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// Through an overlay the map reads as if the changes had been made, while the map itself is unchanged; after
        /// the commit it has the changes.
        #[test]
        fn an_overlay_shows_its_own_changes(
            before in prop::collection::vec(any::<Step>(), 0..30),
            within in prop::collection::vec(any::<Step>(), 0..30),
            low: u8, high: u8, max in 1..20usize,
        ) {
            let db = Db::anonymous().expect("memory");
            let [ours, direct] = ["ours", "direct"].map(|name| db.map(name).expect("room"));
            let mut overlay = Overlay::new();
            for step in &before {
                apply(&ours, step);
                apply(&direct, step);
            }
            let (all, none) = ((Bound::Unbounded, Bound::Unbounded), Overlay::new());
            let untouched = seen(&none, &ours, all, Direction::Forward, usize::MAX);
            for step in &within {
                lay(&mut overlay, &ours, step);
                apply(&direct, step);
            }
            let (low, high) = ([low], [high]);
            for direction in [Direction::Forward, Direction::Reverse] {
                for bounds in [all, (Bound::Included(&low[..]), Bound::Excluded(&high[..]))] {
                    prop_assert_eq!(
                        seen(&overlay, &ours, bounds, direction, max),
                        seen(&none, &direct, bounds, direction, max)
                    );
                }
            }
            for key in 0..=u8::MAX {
                let read = |overlay: &Overlay, map| overlay.read(map, &[key], |value| value.map(<[u8]>::to_vec)).ok();
                prop_assert_eq!(read(&overlay, &ours), read(&none, &direct));
            }
            prop_assert_eq!(seen(&none, &ours, all, Direction::Forward, usize::MAX), untouched);
            db.commit(overlay).expect("room");
            let after = seen(&none, &direct, all, Direction::Forward, usize::MAX);
            prop_assert_eq!(seen(&none, &ours, all, Direction::Forward, usize::MAX), after);
        }
    }
}
