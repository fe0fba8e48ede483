//! Nodes under construction: private drafts, flushed with their batch.

use super::branch::Common;
use super::locate::skip;
use super::node::Node;
use super::{Adaptive, Prefix, Scheme};
use art::{Child, Children, Grown, Kind, Spot, draft_smallest};
use heap::{Access, Error, Heap};
use pmem::{Erased, Flushed, Media, PersistBatch};

/// All children of `node`, except for the one for `without`.
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
    batch: &PersistBatch<'e, 'h, M>,
    header: Prefix,
    mut children: Children<'e, 'h>,
) -> Result<(Flushed<'e, 'h, Erased>, Kind), Error> {
    children.list.sort_unstable_by_key(|(byte, _)| *byte);
    let (node, kind, _) =
        draft_smallest::<Adaptive<S>, M>(heap, batch, |_| Common::new(header), &mut children)?;
    Ok((node, kind))
}

impl<S: Scheme> Grown for Adaptive<S> {
    fn draft_node<'e, 'h, M: Media>(
        heap: &'h Access<M>,
        batch: &PersistBatch<'e, 'h, M>,
        spot: Spot<'_>,
        children: &mut Children<'e, 'h>,
    ) -> Result<Child<'e, 'h>, Error> {
        let header = |_| Common::new(Prefix::of(spot.key, spot.depth, spot.level));
        let (node, kind, _) = draft_smallest::<Adaptive<S>, M>(heap, batch, header, children)?;
        Ok(Child::New(node, kind, skip(spot.depth, spot.level)))
    }
}
