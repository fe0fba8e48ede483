//! Redis's databases as maps of a pool: the first is the map that memcached's items are in too, database N the map of
//! that name with `-N` behind it. The server's tests share this file.

use server::{Change, Commit, DATABASES, Maps, NotMade};
use std::sync::Arc;
use wollemi::{Db, Error, Map};

/// The maps of the databases behind the first, whose map has this name. `open` finds a map or makes it.
pub fn maps<E: ToString>(
    db: &Db,
    first: &str,
    open: impl Fn(&Db, &str) -> Result<Map, E> + Send + Sync + 'static,
) -> Maps {
    let (db, first) = (db.clone(), first.to_owned());
    Arc::new(move |number, create| {
        let name = map_name(&first, number);
        let map = match create {
            true => open(&db, &name).map(Some).map_err(|error| error.to_string())?,
            false => db.find_map(&name).map_err(|error| error.to_string())?,
        };
        Ok(map.map(|map| map.index()))
    })
}

/// The map of a database above 0.
fn map_name(first: &str, number: usize) -> String {
    format!("{first}-{number}")
}

/// What commits a transaction: a batch over the databases' maps.
pub fn commit(db: &Db, first: &str) -> Commit {
    let (db, first) = (db.clone(), first.to_owned());
    Arc::new(move |changes: &[Change<'_>]| {
        let mut maps: [Option<Map>; DATABASES] = Default::default();
        let mut batch = db.batch();
        for change in changes {
            let map = match &mut maps[change.database] {
                Some(map) => map,
                none => {
                    let name = match change.database {
                        0 => first.clone(),
                        number => map_name(&first, number),
                    };
                    let found = db.find_map(&name).map_err(|error| error.to_string())?;
                    none.insert(found.ok_or_else(|| format!("map '{name}' is gone"))?)
                }
            };
            match change.value {
                Some(value) => batch.upsert(map, change.key, value),
                None => batch.remove(map, change.key),
            };
        }
        // Nothing was expected, so it is carried out.
        batch.commit().map(drop).map_err(|error| match error {
            Error::Unfinished(_) => NotMade::Unfinished(error.to_string()),
            error => NotMade::Refused(error.to_string()),
        })
    })
}
