//! Nodes under construction: private drafts, flushed with their batch.

use super::node::{Common, Node};
use super::{Adaptive, Prefix, Scheme};
use art::{Children, Kind, draft_smallest};
use heap::{Error, Heap};
use pmem::{Batch, Erased, Flushed, Media};

/// All that hangs in `node`, but for the child for `without`.
pub(crate) fn children_of<'e, 'h, S: Scheme, M: Media>(
    node: Node<'_, S>,
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
    let (node, kind, _) = draft_smallest::<Adaptive<S>, M>(heap, batch, |_| Common::new(header), children)?;
    Ok((node, kind))
}
