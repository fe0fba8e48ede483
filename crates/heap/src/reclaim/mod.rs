//! Reclamation: when an object that is out of use, or was never in use, becomes free.
//!
//! | module | what it holds |
//! |---|---|
//! | `guard` | epochs, and the guards that hold them back |
//! | `grace_period` | grace periods that end exactly, under media that reuse memory at once |
//! | `dram` | DRAM that lives under the same guards as the pool's objects |
//! | `mark_sweep` | marks on pages of earlier generations, and their sweep |
//! | `retire` | when a retired object is freed, beside recovery and without it |
//! | `phase` | the phases of recovery, what holds them back, and waits for them |

pub(crate) mod dram;
pub(crate) mod grace_period;
pub(crate) mod guard;
pub(crate) mod mark_sweep;
pub(crate) mod phase;
pub(crate) mod retire;
