//! What no paper plots: an index beside what people use today and beside what memory allows, what opening takes, and
//! what merges and recovery hold up.

mod limit;
mod open;
#[cfg(feature = "peers")]
mod peers;
mod stalls;

use super::{Figure, Maker};

pub fn figures(maker: &Maker) -> Vec<Figure> {
    [
        open::figure(maker),
        #[cfg(feature = "peers")]
        peers::figure(maker),
        limit::figure(maker),
        stalls::figure(maker),
    ]
    .into()
}
