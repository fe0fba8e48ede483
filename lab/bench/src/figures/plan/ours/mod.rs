//! What no paper plots: an index beside what people use today and beside what memory allows, what opening and
//! restarting take, and what merges and recovery hold up.

mod limit;
mod open;
#[cfg(feature = "peers")]
mod peers;
#[cfg(feature = "peers")]
mod restart;
mod stalls;

use super::{Figure, Maker};

pub fn figures(maker: &Maker) -> Vec<Figure> {
    [
        open::figure(maker),
        #[cfg(feature = "peers")]
        peers::figure(maker),
        #[cfg(feature = "peers")]
        restart::figure(maker),
        limit::figure(maker),
        stalls::figure(maker),
    ]
    .into()
}
