//! Nodes under construction: private drafts, flushed with their batch.

use super::n48::N48;
use super::n256::N256;
use super::node::{Common, Inner, NodeRef};
use super::{Prefix, Scheme};
use art::{Children, Kind};
use heap::{Error, Heap};
use pmem::{Batch, Erased, Flushed, Media};

/// All that hangs in `node`, but for the child for `without`.
pub(crate) fn children_of<'e, 'h, S: Scheme, M: Media>(
    node: NodeRef<'_, S>,
    media: &M,
    without: Option<u8>,
) -> Children<'e, 'h> {
    let mut list = Vec::with_capacity(17);
    node.all(media, |byte, link| {
        if Some(byte) != without {
            list.push((byte, link));
        }
    });
    Children::of(node.common().ends.load(media), list)
}

/// Builds the smallest node that holds `children`.
pub(crate) fn draft_node<'e, 'h, S: Scheme, M: Media>(
    heap: &'h Heap<M>,
    batch: &Batch<'e, '_, M>,
    header: Prefix,
    mut children: Children<'e, 'h>,
) -> Result<(Flushed<'e, 'h, Erased>, Kind), Error> {
    children.list.sort_unstable_by_key(|(byte, _)| *byte);
    match children.list.len() {
        0..=4 => build::<S::N4, M>(heap, batch, header, children),
        5..=16 => build::<S::N16, M>(heap, batch, header, children),
        17..=48 => build::<N48, M>(heap, batch, header, children),
        _ => build::<N256, M>(heap, batch, header, children),
    }
}

fn build<'e, 'h, N: Inner, M: Media>(
    heap: &'h Heap<M>,
    batch: &Batch<'e, '_, M>,
    header: Prefix,
    children: Children<'e, 'h>,
) -> Result<(Flushed<'e, 'h, Erased>, Kind), Error> {
    let mut draft = heap.draft(N::new(Common::new(header)), 0, batch)?;
    if let Some(child) = children.ends {
        child.attach(&mut draft, N::ends_mut, 0);
    }
    for (i, (byte, child)) in children.list.into_iter().enumerate() {
        child.attach(&mut draft, |node| node.fill(i, byte), byte);
    }
    Ok((draft.flush(batch).erased(), N::KIND))
}
