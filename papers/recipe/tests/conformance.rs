//! RECIPE's indexes keep the contract of all indexes, on memory in a file, with restarts and crashes between
//! operations.

use wollemi_recipe::{BwTree, Clht, Hot, Masstree, Part};

index::conformance_on_heap! {
    part: Part,
    clht: Clht,
    hot: Hot,
    masstree: Masstree,
    bwtree: BwTree,
    bwtree_of_small_nodes: BwTree<pmem::Hardware, 8>; scale = 0.3,
}
