//! The paper's switches (ROART §4.3, Fig. 16) as types, so that one binary runs the whole ablation.

use pmem::{LinkAndPersist, NonTemporal, Publication};
use std::marker::PhantomData;

/// Selects ROART's techniques.
pub trait Variant: Send + Sync + 'static {
    /// Entry compression (§3.3): key byte and pointer change by one store. Off: the key byte is persisted separately,
    /// ahead of the pointer.
    const EC: bool;
    /// Selective metadata persistence (§3.3.1). Off: counts and child indexes are persisted with every
    /// change.
    const SMP: bool;
    /// Minimally ordered split (§3.3.2): a new leaf and the new node above it share one fence. Off: one each.
    const MO: bool;
    /// Leaf compaction (§3.2). Off: two keys that diverge below a node get an N4.
    const LC: bool;
    /// Inline leaf arrays, which are not in the paper: pairs of a short key and an eight-byte value are stored in the
    /// array itself. They need leaf compaction.
    const INLINE: bool;
    /// Leaf arrays come in size classes (§3.2). Off: all have 64 entries, like those that the paper measured.
    const SIZES: bool;
    /// The policy by which a publication keeps readers from data that is not durable yet (§3.4.1).
    type Publish: Publication;
}

/// A choice of the paper's switches, with or without inline leaf arrays, which need leaf compaction.
#[derive(Debug)]
pub struct Switches<
    const EC: bool,
    const SMP: bool,
    const MO: bool,
    const LC: bool,
    const INLINE: bool = false,
    const SIZES: bool = true,
    P = LinkAndPersist,
>(PhantomData<P>);

impl<
    const EC: bool,
    const SMP: bool,
    const MO: bool,
    const LC: bool,
    const INLINE: bool,
    const SIZES: bool,
    P: Publication,
> Variant for Switches<EC, SMP, MO, LC, INLINE, SIZES, P>
{
    const EC: bool = EC;
    const SMP: bool = SMP;
    const MO: bool = MO;
    const LC: bool = LC;
    const INLINE: bool = INLINE && LC;
    const SIZES: bool = SIZES;
    type Publish = P;
}

/// All techniques on, published by link-and-persist: the default.
pub type Full = Switches<true, true, true, true, true>;
/// All techniques on, published by non-temporal stores, as in the paper.
pub type Streaming = Switches<true, true, true, true, true, true, NonTemporal>;
/// Without inline leaf arrays: exactly the paper's techniques. Each ablation below leaves out one of these.
pub type WithoutInline = Switches<true, true, true, true>;
/// Without entry compression.
pub type WithoutEc = Switches<false, true, true, true>;
/// Without selective metadata persistence.
pub type WithoutSmp = Switches<true, false, true, true>;
/// Without the minimally ordered split.
pub type WithoutMo = Switches<true, true, false, true>;
/// Without leaf compaction.
pub type WithoutLc = Switches<true, true, true, false>;
/// With leaf arrays of 64 entries, however few leaves they hold.
pub type WithoutSizes = Switches<true, true, true, true, false, false>;
/// The paper's raw version.
pub type Raw = Switches<false, false, false, false>;
