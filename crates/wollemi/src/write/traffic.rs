//! What writes of all maps of a database pass, and a map's index as those behind it see it.

use crate::write::active::Active;
use crate::write::befores::Befores;
use crate::write::commit::Plan;
use crate::write::gate::{Closed, Gate};
use crate::write::intent::Change;
use crate::write::stripes::{StripeId, Stripes};
use crate::write::watch::Watches;
use index::{Action, Edit, Error, Index, Remove, Upsert};
use std::sync::Arc;

/// What the maps of a database have in common.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub gate: Gate,
    pub stripes: Stripes,
    pub active: Active,
    pub befores: Befores,
    pub watches: Arc<Watches>,
    #[cfg(feature = "doubles")]
    pub doubles: Doubles,
}

/// An index behind the gate.
pub(crate) trait MapIndex: Index {
    /// The map's name.
    fn name(&self) -> &str;

    /// Writes, for a thread that holds the key's stripe.
    fn write_held(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error>;

    /// The stripe of a key.
    fn stripe_of(&self, key: &[u8]) -> StripeId;

    /// Closes the database's gate.
    fn close_gate(&self) -> Result<Closed<'_>, Error>;

    /// The database's.
    fn traffic(&self) -> &Arc<Traffic>;

    /// Commits what `plan` plans; has it plan anew after a conflict, as the default [`Retry`](crate::Retry) says.
    fn commit(&self, plan: &mut dyn FnMut() -> Result<Plan, crate::Error>) -> Result<(), crate::Error>;
}

impl std::fmt::Debug for dyn MapIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MapIndex")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

/// Makes a change, in the map's index, for a thread that holds its stripe.
pub(crate) fn make(change: &Change<'_>, index: &dyn MapIndex) -> Result<(), crate::Error> {
    match change.value {
        Some(value) => index.write_held(change.key, &mut Upsert(value))?,
        None => index.write_held(change.key, &mut Remove)?,
    };
    Ok(())
}

/// What a test has put before the commits of a database.
#[cfg(feature = "doubles")]
#[derive(Default)]
pub(crate) struct Doubles(pub std::sync::OnceLock<BeforeCommit>);

/// What is asked before each commit.
#[cfg(feature = "doubles")]
pub(crate) type BeforeCommit = Box<dyn Fn() -> Result<(), crate::Error> + Send + Sync>;

#[cfg(feature = "doubles")]
impl Doubles {
    pub fn before_commit(&self) -> Result<(), crate::Error> {
        self.0.get().map_or(Ok(()), |before| before())
    }
}

#[cfg(feature = "doubles")]
impl std::fmt::Debug for Doubles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Doubles").finish_non_exhaustive()
    }
}
