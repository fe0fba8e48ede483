//! `bench about`: prints the available measurements and the machine, as an object for scripts (`lab/figures` reads it).

use crate::keys::KeyKind;
use crate::machine::Machine;
use crate::workload;
use crate::{Error, alloc};
use clap::ValueEnum;
use serde_json::{Map, Value, json};
use wollemi::indexes::IndexKind;

/// Prints the object.
pub fn run() -> Result<(), Error> {
    let index = |index: &IndexKind| {
        json!({
            "name": index.name(),
            "about": index.about(),
            "ablation": index.is_ablation(),
            "ordered": index.is_ordered(),
        })
    };
    let kind = |kind: &KeyKind| {
        let value = kind.to_possible_value()?;
        let help = value.get_help()?.to_string();
        Some((value.get_name().to_owned(), format!("Keys: {help}").into()))
    };
    let machine = Machine::detect();
    let about = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "hardware": machine.hardware(),
        "machine": machine,
        "default": IndexKind::default().name(),
        "indexes": IndexKind::ALL.iter().map(index).collect::<Vec<_>>(),
        "workloads": workload::ALL.iter().map(|one| (one.name.to_owned(), one.about.into())).collect::<Map<_, Value>>(),
        "key_kinds": KeyKind::value_variants().iter().filter_map(kind).collect::<Map<_, Value>>(),
        "allocators": alloc::installed(),
        "in_memory": { "u64": in_memory(KeyKind::U64), "str": in_memory(KeyKind::Str) },
        "durable": durable(),
    });
    crate::print(&serde_json::to_string(&about)?)
}

#[cfg(feature = "peers")]
fn in_memory(kind: KeyKind) -> Vec<&'static str> {
    crate::peers::in_memory(kind)
        .into_iter()
        .map(|(name, _)| name)
        .collect()
}

#[cfg(feature = "peers")]
fn durable() -> Vec<&'static str> {
    crate::peers::DURABLE.iter().map(|peer| peer.name).collect()
}

#[cfg(not(feature = "peers"))]
fn in_memory(_: KeyKind) -> Vec<&'static str> {
    Vec::new()
}

#[cfg(not(feature = "peers"))]
fn durable() -> Vec<&'static str> {
    Vec::new()
}
