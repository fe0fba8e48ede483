//! RECIPE's indexes keep the contract of all indexes, on memory in a file, with restarts and crashes between
//! operations.

use wollemi_recipe::{BwTree, Clht, Hot, Masstree, Part};

index::conformance_on_heap! {
    part: Part,
    clht: Clht; scale = 0.5,
    hot: Hot; scale = 0.5,
    masstree: Masstree; scale = 0.5,
    bwtree: BwTree; scale = 0.5,
    bwtree_of_small_nodes: BwTree<pmem::Hardware, 8>; scale = 0.3,
}
