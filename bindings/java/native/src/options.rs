//! Options for opening a database: pairs of a name and a value, as text.

use crate::failure::Failure;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;
use wollemi::{AfterPowerLoss, Durability, Options};

fn parse<T: FromStr<Err: Display>>(name: &str, value: &str) -> Result<T, Failure> {
    value
        .parse()
        .map_err(|error| Failure::Argument(format!("{name}: {error}")))
}

/// Returns the durability with this Java name.
pub fn durability(name: &str) -> Result<Durability, Failure> {
    match name {
        "immediate" => Ok(Durability::Immediate),
        "eventual" => Ok(Durability::Eventual),
        _ => Err(Failure::Argument(format!("unknown durability '{name}'"))),
    }
}

fn after_power_loss(name: &str) -> Result<AfterPowerLoss, Failure> {
    match name {
        "refuse" => Ok(AfterPowerLoss::Refuse),
        "look" => Ok(AfterPowerLoss::Look),
        "accept" => Ok(AfterPowerLoss::Accept),
        _ => Err(Failure::Argument(format!(
            "unknown choice after a loss of power: '{name}'"
        ))),
    }
}

/// Builds options from pairs of texts.
pub fn options(pairs: &[(&str, &str)]) -> Result<Options, Failure> {
    let mut options = Options::new();
    for &(name, value) in pairs {
        options = match name {
            "level" => options.level(parse(name, value)?),
            "index" => options.index(parse(name, value)?),
            "maxSize" => options.max_size(parse(name, value)?),
            "pageSize" => options.page_size(parse(name, value)?),
            "recoveryThreads" => options.recovery_threads(parse(name, value)?),
            "create" => options.create(parse(name, value)?),
            "readOnly" => options.read_only(parse(name, value)?),
            "durability" => options.durability(durability(value)?),
            "syncWithinMillis" => options.sync_within(Duration::from_millis(parse(name, value)?)),
            "logLimit" => options.log_limit(parse(name, value)?),
            "lockWaitMillis" => options.lock_wait(Duration::from_millis(parse(name, value)?)),
            "afterPowerLoss" => options.after_power_loss(after_power_loss(value)?),
            _ => return Err(Failure::Argument(format!("unknown option '{name}'"))),
        };
    }
    Ok(options)
}
