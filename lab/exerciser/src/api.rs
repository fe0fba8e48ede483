//! Lists the public functions of the database that each call uses.
//!
//! A test compares these lists with the sources of the database, to find functions that no call uses.

use crate::op::{Durable, EventualBy, Op, Rare, Reading, Scanning, Write};
use crate::truth::{Plan, Role};

/// Functions that a round uses to open the pool (`Options::max_size` only if its size is bounded) and to compare its
/// content.
pub(crate) const ROUND: &[&str] = &[
    "Options::new",
    "Options::page_size",
    "Options::max_size",
    "Options::recovery_threads",
    "Options::huge_pages",
    "Options::index",
    "Options::create",
    "Options::lock_wait",
    "Options::open",
    "Db::find_map",
    "Map::reader",
    "Reader::visit",
    "Expiring::new",
    "Expiring::read",
];

/// Functions used by rounds of a pool that moves to level `disk` and back.
pub(crate) const ON_DISK: &[&str] = &[
    "Options::level",
    "Options::durability",
    "Options::sync_within",
    "Options::log_limit",
    "Options::on_rebuild",
    "Options::end_checkpoints_if",
];

/// Functions used by rounds after a simulated power loss.
pub(crate) const AFTER_POWER_LOSS: &[&str] = &["Options::after_power_loss"];

/// Functions used by a round that closes the pool.
pub(crate) const CLOSED: &[&str] = &["Db::close"];

/// Functions used by a round that ends the log.
pub(crate) const LOG_ENDED: &[&str] = &["Db::end_log"];

/// Functions used to check the pool.
pub(crate) const CHECKED: &[&str] = &["Db::check", "Check::is_clean"];

/// Functions used by rounds that open the pool read-only to compare its content once more.
pub(crate) const READ_ONLY: &[&str] = &["Options::read_only"];

/// Functions used by rounds in which a sweeper thread of the database runs.
pub(crate) const SWEPT: &[&str] = &["Expiring::sweeper", "Sweeper::removed"];

/// Functions used by a round that ends by copying the pool.
pub(crate) const COPIED: &[&str] = &["Db::copy_from", "Db::snapshot"];

/// Functions used by a round that ends by restoring the pool from a backup.
pub(crate) const RESTORED: &[&str] = &["Snapshot::backup_to", "Db::restore", "Db::snapshot"];

/// Functions that refuse a map whose index has no key order.
const NEEDS_ORDER: &[&str] = &[
    "Expiring::first",
    "Expiring::first_in",
    "Expiring::last",
    "Expiring::last_in",
    "Expiring::pop_first",
    "Expiring::pop_first_in",
    "Expiring::pop_last",
    "Expiring::pop_last_in",
    "Expiring::prefix",
    "Expiring::prefix_in",
    "Expiring::range",
    "Expiring::range_in",
    "Map::first",
    "Map::last",
    "Map::pop_first",
    "Map::pop_last",
    "Map::prefix",
    "Map::range",
    "Reader::prefix",
    "Reader::range",
    "Transaction::first",
    "Transaction::last",
    "Transaction::pop_first",
    "Transaction::pop_last",
    "Transaction::prefix",
    "Transaction::range",
    "TypedMap::first",
    "TypedMap::first_in",
    "TypedMap::iter_in",
    "TypedMap::last",
    "TypedMap::last_in",
    "TypedMap::pop_first",
    "TypedMap::pop_first_in",
    "TypedMap::pop_last",
    "TypedMap::pop_last_in",
    "TypedMap::prefix",
    "TypedMap::prefix_in",
    "TypedMap::range",
    "TypedMap::range_in",
    "TypedMap::with_first",
    "TypedMap::with_first_in",
    "View::first",
    "View::last",
    "View::prefix",
    "View::range",
];

/// Returns the functions that a call uses. Leaves out those that the call's map refuses because its index has no key
/// order.
pub(crate) fn functions(op: &Op, plan: &Plan) -> impl Iterator<Item = &'static str> {
    let slots = op.slots();
    let unordered = (0..plan.maps.len()).any(|slot| slots.has(slot) && !plan.maps[slot].is_ordered());
    let op_functions = op_functions(op, |slot| plan.maps[slot].role).iter().copied();
    op_functions.filter(move |name| !(unordered && NEEDS_ORDER.contains(name)))
}

fn op_functions(op: &Op, role: impl Fn(usize) -> Role) -> &'static [&'static str] {
    let is_expiring = |slot: usize| role(slot) == Role::Expiring;
    match *op {
        Op::Read(slot, _, Reading::Get) if is_expiring(slot) => &["Expiring::get"],
        Op::Read(slot, _, Reading::Contains) if is_expiring(slot) => &[],
        Op::Read(_, _, how) => match how {
            Reading::Get => &["Map::get"],
            Reading::Contains => &["Map::contains"],
            Reading::Borrowed => &["Map::reader", "Reader::get"],
            Reading::Several => &["Map::multi_get"],
        },
        Op::Write(slot, _, write) if is_expiring(slot) => match write {
            Write::Insert(_) => &["Expiring::insert"],
            Write::Upsert(_) | Write::Update(_) | Write::Expired(_) => &["Expiring::upsert"],
            Write::Remove => &["Expiring::remove"],
            Write::Touch(_) => &["Expiring::touch"],
            Write::CompareAndSwap { .. } | Write::Edit(_) => &[],
        },
        Op::Write(_, _, write) => match write {
            Write::Insert(_) => &["Map::insert"],
            Write::Upsert(_) => &["Map::upsert"],
            Write::Update(_) => &["Map::update"],
            Write::Remove => &["Map::remove"],
            Write::CompareAndSwap { .. } => &["Map::compare_and_swap"],
            Write::Edit(_) => &["Map::edit"],
            Write::Touch(_) | Write::Expired(_) => &[],
        },
        Op::Load { slot, .. } if is_expiring(slot) => &["Map::load", "Expiring::bytes"],
        Op::Load { .. } => &["Map::load"],
        Op::Batch { .. } => &[
            "Db::batch",
            "Batch::upsert",
            "Batch::remove",
            "Batch::expect",
            "Batch::len",
            "Batch::is_empty",
            "Batch::commit",
        ],
        Op::Transaction(ref body) if body.commits => &[
            "Db::transact",
            "Transaction::get",
            "Transaction::upsert",
            "Transaction::remove",
            "Transaction::range",
        ],
        Op::Transaction(_) => &["Db::begin"],
        Op::Scan { how, .. } => match how {
            Scanning::Copied => &["Map::range"],
            Scanning::Borrowed => &["Map::reader", "Reader::range"],
            Scanning::Visited => &["Map::reader", "Reader::visit"],
            Scanning::Prefix => &["Map::prefix"],
        },
        Op::Walk { .. } => &["Map::walk"],
        Op::Snapshot(Some(_)) => &["Db::snapshot_within"],
        Op::Snapshot(None) => &["Db::snapshot"],
        Op::ReadSnapshot(..) => &["Snapshot::find_view", "View::get"],
        Op::Backup => &["Snapshot::backup", "Db::anonymous", "Db::restore"],
        Op::Watch(_) => &["Map::watch", "Watch::try_next"],
        Op::Rare(rare) => rare_functions(rare),
        Op::Create(_) => &["Db::map_with"],
        Op::Drop(_) => &["Db::drop_map"],
        Op::Count(_) => &["Map::count", "Map::is_empty"],
        Op::Sweep(_) => &["Expiring::sweep"],
        Op::Stats => &["Db::stats"],
        Op::Maps => &["Db::maps"],
        Op::GiveBack => &["Db::give_back"],
        Op::Recover => &["Db::recover"],
        Op::WaitRecovered => &["Db::wait_recovered"],
        Op::DropSnapshot => &[],
    }
}

fn rare_functions(rare: Rare) -> &'static [&'static str] {
    match rare {
        Rare::About(_) => &[
            "Map::name",
            "Map::index_kind",
            "Map::index",
            "Db::map",
            "Db::carried_out",
            "Db::recovery_progress",
        ],
        Rare::Ends(_) => &[
            "Map::first",
            "Map::last",
            "Map::len",
            "Map::is_empty",
            "Map::iter",
        ],
        Rare::Pop(_, false) => &["Map::pop_first"],
        Rare::Pop(_, true) => &["Map::pop_last"],
        Rare::Edit(..) => &["Map::edit_with"],
        Rare::Borrowed(..) => &[
            "Reader::multi_get",
            "Reader::repin",
            "Reader::prefix",
            "Reader::iter",
        ],
        Rare::Views(..) => &[
            "Snapshot::view",
            "Snapshot::maps",
            "Snapshot::memory",
            "View::name",
            "View::index_kind",
            "View::range",
            "View::prefix",
            "View::iter",
            "View::contains",
            "View::multi_get",
            "View::first",
            "View::last",
            "View::len",
            "View::is_empty",
        ],
        Rare::Transaction(_, _, _, true) => &[
            "Db::begin",
            "Db::begin_owned",
            "Db::transact_owned",
            "Retry::new",
            "Transaction::check",
            "Transaction::set_again",
            "Transaction::multi_get",
            "Transaction::update",
            "Transaction::edit_with",
            "Transaction::first",
            "Transaction::last",
            "Transaction::pop_first",
            "Transaction::pop_last",
            "Transaction::contains",
            "Transaction::insert",
            "Transaction::prefix",
            "Transaction::len",
            "Transaction::is_empty",
            "Transaction::commit",
        ],
        Rare::Transaction(..) => &["Db::transact_with", "Retry::new", "Retry::tries"],
        Rare::Wait(..) => &["Map::watch", "Watch::next_within"],
        Rare::Alive(..) => &[
            "Expiring::map",
            "Expiring::range",
            "Expiring::get_with_life",
            "Expiring::contains",
            "Expiring::multi_get",
            "Expiring::iter",
            "Expiring::prefix",
            "Expiring::first",
            "Expiring::last",
            "Expiring::len",
            "Expiring::is_empty",
        ],
        Rare::Relive(_, _, Some(_)) => &[
            "Expiring::get_in",
            "Expiring::contains_in",
            "Expiring::range_in",
            "Expiring::prefix_in",
            "Expiring::insert_in",
            "Expiring::upsert_in",
            "Expiring::with_durability",
            "Expiring::edit_with",
            "Expiring::compare_and_swap",
            "Expiring::update",
        ],
        Rare::Relive(..) => &[
            "Expiring::get_in",
            "Expiring::contains_in",
            "Expiring::range_in",
            "Expiring::prefix_in",
            "Expiring::remove_in",
            "Expiring::with_durability",
            "Expiring::edit_with",
            "Expiring::compare_and_swap",
            "Expiring::update",
        ],
        Rare::Durable(call) => match call {
            Durable::Sync => &["Db::sync"],
            Durable::Checkpoint(_) => &["Db::checkpoint", "Db::level"],
            Durable::RequestCheckpoint => &["Db::request_checkpoint", "Db::level"],
            Durable::SyncInterval(_) => &["Db::set_sync_within"],
            Durable::About => &[
                "Db::set_durability",
                "Db::durability",
                "Db::log_stats",
                "Db::failure",
            ],
        },
        Rare::Eventual(_, _, _, later) => match later {
            EventualBy::Map => &["Map::with_durability", "Db::sync"],
            EventualBy::Batch => &["Batch::durability", "Db::sync"],
            EventualBy::Transaction => &["Transaction::set_durability", "Db::sync"],
            EventualBy::Turn => &[
                "Db::turn",
                "Db::resume",
                "Db::settle_turn",
                "Map::settle_turn",
                "Db::is_turn_durable",
            ],
        },
        Rare::Own => OWN,
        Rare::Unordered(..) => &[],
    }
}

/// Functions that [`Rare::Own`] uses.
const OWN: &[&str] = &[
    "Expiring::edit_with_in",
    "Expiring::first_in",
    "Expiring::last_in",
    "Expiring::load",
    "Expiring::multi_get_in",
    "Expiring::pop_first",
    "Expiring::pop_first_in",
    "Expiring::pop_last",
    "Expiring::pop_last_in",
    "Expiring::touch_in",
    "Expiring::update_in",
    "Expiring::view",
    "Expiring::watch",
    "TypedMap::new",
    "TypedMap::map",
    "TypedMap::key",
    "TypedMap::value",
    "TypedMap::compare_and_swap",
    "TypedMap::edit_with",
    "TypedMap::load",
    "TypedMap::multi_get",
    "TypedMap::prefix",
    "TypedMap::update",
    "TypedMap::view",
    "TypedMap::watch",
    "TypedMap::with_first",
    "TypedMap::get",
    "TypedMap::contains",
    "TypedMap::insert",
    "TypedMap::upsert",
    "TypedMap::remove",
    "TypedMap::iter",
    "TypedMap::range",
    "TypedMap::first",
    "TypedMap::last",
    "TypedMap::len",
    "TypedMap::is_empty",
    "TypedMap::pop_first",
    "TypedMap::pop_last",
    "TypedMap::get_in",
    "TypedMap::insert_in",
    "TypedMap::upsert_in",
    "TypedMap::remove_in",
    "TypedMap::range_in",
    "TypedMap::contains_in",
    "TypedMap::prefix_in",
    "TypedMap::update_in",
    "TypedMap::first_in",
    "TypedMap::last_in",
    "TypedMap::pop_first_in",
    "TypedMap::pop_last_in",
    "TypedMap::edit_with_in",
    "TypedMap::iter_in",
    "TypedMap::multi_get_in",
    "TypedMap::with_first_in",
    "TypedMap::watch_prefix",
    "TypedMap::with_durability",
];
