//! The machine's memory as a media.
//!
//! A store is a plain atomic store, a write-back one instruction, a fence one instruction. The instruction that
//! writes a line back is detected once, at run time, and kept in the value:
//!
//! | | instruction | keeps the line cached | ordered by |
//! |---|---|---|---|
//! | x86-64 | `clwb` | yes | `sfence` |
//! | | `clflushopt` | no | `sfence` |
//! | | `clflush` | no | program order |
//! | aarch64 | `dc cvap` (ARMv8.2), else `dc cvac` | yes | `dsb` |
//!
//! A line is 64 bytes. Where the processor's own lines are longer, one write-back covers more than requested; no
//! processor with these instructions is known to have shorter ones.
//!
//! On aarch64 too, every access to a shared word is ordered at least as strongly as on x86-64: loads acquire and
//! stores release, so that only a store and a later load can pass each other, and not even these as compiled today
//! (`stlr`, `ldar`). A write-back follows earlier accesses of its thread to its line, stores and loads alike, in
//! program order.
//!
//! A pool says how far a store must travel to survive ([`PersistenceDomain`]), and this media omits what would take
//! it further: write-backs where the processor's caches survive; at level `process` fences too, since a process ends
//! between two instructions, and the page cache holds all that the earlier ones stored. Program order remains, and
//! the compiler keeps it.
//!
//! Non-temporal stores are `movnti`, or ordinary stores at level `process`. aarch64 has no store that bypasses the
//! cache: there a non-temporal store is a store and a write-back, other threads see it before it is durable, and only
//! the link-and-persist policy keeps readers from acting on it ([`LinkAndPersist`](crate::LinkAndPersist)).

use crate::{Media, PSlot, PersistenceDomain, Purpose, candidates};
use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};

/// The instruction that writes a line back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteBack {
    /// `clwb`.
    #[cfg(target_arch = "x86_64")]
    Clwb,
    /// `clflushopt`.
    #[cfg(target_arch = "x86_64")]
    ClflushOpt,
    /// `clflush`.
    #[cfg(target_arch = "x86_64")]
    Clflush,
    /// `dc cvap`: to the point of persistence.
    #[cfg(target_arch = "aarch64")]
    DcCvap,
    /// `dc cvac`: to the point of coherency, which is memory.
    #[cfg(target_arch = "aarch64")]
    DcCvac,
    /// None: stores survive in the caches.
    Omitted,
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("Wollemi knows how to write a line back on x86-64 and aarch64 only");
#[cfg(not(target_endian = "little"))]
compile_error!("a pool's words are little-endian");

/// The machine's memory.
#[derive(Clone, Copy, Debug)]
pub struct Hardware {
    write_back: WriteBack,
    domain: PersistenceDomain,
    /// Whether the domain is fixed, whatever a pool asks for.
    fixed: bool,
    /// Whether the processor can search slots for [`candidates`].
    searches: bool,
}

impl Hardware {
    /// Detects the best write-back instruction of this processor, for pools that need one.
    pub fn detect() -> Hardware {
        Hardware {
            write_back: best_write_back(),
            domain: PersistenceDomain::Memory,
            fixed: false,
            searches: candidates::are_found(),
        }
    }

    /// The same, but issues every write-back and fence even where the pool's level needs none: treats ordinary memory
    /// as persistent memory, to measure its cost there.
    pub fn as_persistent() -> Hardware {
        Hardware {
            fixed: true,
            ..Hardware::detect()
        }
    }

    /// The instruction that writes lines back.
    #[inline]
    pub const fn write_back_by(&self) -> WriteBack {
        self.write_back
    }
}

impl Default for Hardware {
    fn default() -> Hardware {
        Hardware::detect()
    }
}

/// Miri interprets no instruction of a processor's own: it checks accesses to memory, and never loses any.
#[cfg(miri)]
fn best_write_back() -> WriteBack {
    WriteBack::Omitted
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn best_write_back() -> WriteBack {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    const EXTENDED_FEATURES: u32 = 7;
    const CLFLUSHOPT: u32 = 1 << 23;
    const CLWB: u32 = 1 << 24;
    if __cpuid(0).eax < EXTENDED_FEATURES {
        return WriteBack::Clflush;
    }
    let features = __cpuid_count(EXTENDED_FEATURES, 0).ebx;
    if features & CLWB != 0 {
        WriteBack::Clwb
    } else if features & CLFLUSHOPT != 0 {
        WriteBack::ClflushOpt
    } else {
        WriteBack::Clflush
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
fn best_write_back() -> WriteBack {
    if std::arch::is_aarch64_feature_detected!("dpb") {
        WriteBack::DcCvap
    } else {
        WriteBack::DcCvac
    }
}

// SAFETY: every access is the atomic of the same name with the ordering asked for. A write-back instruction follows
// the thread's earlier stores to its line in program order, `asm!` without `nomem` keeps the compiler from moving
// stores across it, and the fence waits for the write-backs and non-temporal stores before it. Where stores survive
// wherever they are (`Process`), none is non-temporal; they survive in program order, and other threads see them by
// release and acquire.
unsafe impl Media for Hardware {
    #[inline(always)]
    fn load(&self, word: &AtomicU64) -> u64 {
        word.load(Ordering::Acquire)
    }

    #[inline(always)]
    fn candidates(&self, slots: &[PSlot], top: u16) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if self.searches {
            // SAFETY: the processor has AVX: `are_found` has checked.
            return unsafe { candidates::find(slots, top) };
        }
        let _ = (top, self.searches);
        candidates::all(slots.len())
    }

    #[inline(always)]
    fn store(&self, word: &AtomicU64, value: u64) {
        word.store(value, Ordering::Release);
    }

    #[inline(always)]
    fn compare_exchange(&self, word: &AtomicU64, old: u64, new: u64) -> Result<u64, u64> {
        word.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire)
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn store_nt(&self, word: &AtomicU64, value: u64) {
        if cfg!(miri) || self.domain == PersistenceDomain::Process {
            // No fence will follow.
            return self.store(word, value);
        }
        // SAFETY: the word is 8 aligned bytes that may be written through a shared reference; `movnti` stores them
        // at once, and the contract of `Media` asks for no order before the next fence.
        unsafe { std::arch::x86_64::_mm_stream_si64(word.as_ptr().cast(), value.cast_signed()) };
    }

    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    fn store_nt(&self, word: &AtomicU64, value: u64) {
        word.store(value, Ordering::Release);
        self.write_back(word, Purpose::Node);
    }

    #[inline(always)]
    fn writes_back(&self) -> bool {
        self.write_back != WriteBack::Omitted
    }

    #[inline(always)]
    fn fences(&self) -> bool {
        self.domain != PersistenceDomain::Process
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn write_back_joined(&self, at: *const u8, _purpose: Purpose) {
        use std::arch::asm;
        match self.write_back {
            // SAFETY: the processor has the instruction (it was detected), which changes no memory's value. The caller
            // promises that the line is mapped.
            WriteBack::Clwb => unsafe { asm!("clwb [{}]", in(reg) at, options(nostack, preserves_flags)) },
            // SAFETY: as above.
            WriteBack::ClflushOpt => unsafe {
                asm!("clflushopt [{}]", in(reg) at, options(nostack, preserves_flags));
            },
            // SAFETY: every x86-64 processor has it; the rest as above.
            WriteBack::Clflush => unsafe {
                asm!("clflush [{}]", in(reg) at, options(nostack, preserves_flags));
            },
            WriteBack::Omitted => {}
        }
    }

    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    unsafe fn write_back_joined(&self, at: *const u8, _purpose: Purpose) {
        use std::arch::asm;
        match self.write_back {
            // `sys #3, c7, c12, #1` is `dc cvap`, spelt so that assemblers for ARMv8.0 accept it. SAFETY: the
            // processor has the instruction (it was detected), which changes no memory's value. The caller promises
            // that the line is mapped.
            WriteBack::DcCvap => unsafe {
                asm!("sys #3, c7, c12, #1, {}", in(reg) at, options(nostack, preserves_flags));
            },
            // SAFETY: every aarch64 processor has it, and Linux allows it in user mode; the rest as above.
            WriteBack::DcCvac => unsafe {
                asm!("dc cvac, {}", in(reg) at, options(nostack, preserves_flags));
            },
            WriteBack::Omitted => {}
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn fence(&self, _purpose: Purpose) {
        if cfg!(miri) || self.domain == PersistenceDomain::Process {
            return compiler_fence(Ordering::SeqCst);
        }
        // SAFETY: every x86-64 processor has it, and it changes nothing.
        unsafe { std::arch::asm!("sfence", options(nostack, preserves_flags)) };
    }

    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    fn fence(&self, _purpose: Purpose) {
        if cfg!(miri) || self.domain == PersistenceDomain::Process {
            return compiler_fence(Ordering::SeqCst);
        }
        // SAFETY: every aarch64 processor has it, and it changes nothing. Cache maintenance is complete only after a
        // `dsb`; a `dmb` does not wait for it. `sy`, the whole system: persistent memory lies beyond the domain that
        // the processors share.
        unsafe { std::arch::asm!("dsb sy", options(nostack, preserves_flags)) };
    }

    #[inline(always)]
    fn load_volatile(&self, word: &AtomicU64) -> u64 {
        word.load(Ordering::Acquire)
    }

    #[inline(always)]
    fn store_volatile(&self, word: &AtomicU64, value: u64) {
        word.store(value, Ordering::Release);
    }

    #[inline(always)]
    fn compare_exchange_volatile(&self, word: &AtomicU64, old: u64, new: u64) -> Result<u64, u64> {
        word.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire)
    }

    fn stores_survive_in(&mut self, domain: PersistenceDomain) {
        if !self.fixed {
            self.domain = domain;
            self.write_back = match domain {
                PersistenceDomain::Memory => best_write_back(),
                PersistenceDomain::Caches | PersistenceDomain::Process => WriteBack::Omitted,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use PersistenceDomain::{Caches, Memory, Process};

    fn set_domain(mut media: Hardware, domain: PersistenceDomain) -> Hardware {
        media.stores_survive_in(domain);
        media
    }

    /// Lines are written back where they must reach memory, and where the caller asks for it whatever the pool says.
    #[test]
    fn write_backs_are_left_out_where_nothing_needs_them() {
        let best = Hardware::detect().write_back_by();
        assert_ne!(best, WriteBack::Omitted);
        for (domain, needed) in [
            (Memory, best),
            (Caches, WriteBack::Omitted),
            (Process, WriteBack::Omitted),
        ] {
            let media = set_domain(Hardware::detect(), domain);
            assert_eq!(media.write_back_by(), needed);
            // Batches rely on this: otherwise they would drop lines that need a write-back.
            assert_eq!(media.writes_back(), needed != WriteBack::Omitted);
            let media = set_domain(Hardware::as_persistent(), domain);
            assert_eq!((media.write_back_by(), media.writes_back()), (best, true));
        }
        assert_eq!(
            set_domain(set_domain(Hardware::detect(), Process), Memory).write_back_by(),
            best
        );
    }

    /// Stores of every kind arrive, and no write-back instruction of this processor changes them.
    #[test]
    fn memory_keeps_its_values() {
        let obeying = [Memory, Caches, Process].map(|domain| set_domain(Hardware::detect(), domain));
        for media in obeying
            .into_iter()
            .chain([set_domain(Hardware::as_persistent(), Process)])
        {
            let word = AtomicU64::new(1);
            media.store(&word, 2);
            media.write_back(&word, Purpose::Node);
            media.fence(Purpose::Node);
            assert_eq!(media.load(&word), 2);
            media.store_nt(&word, 3);
            media.fence(Purpose::Node);
            assert_eq!(media.load(&word), 3);
            assert_eq!(media.compare_exchange(&word, 2, 4), Err(3));
            assert_eq!(media.compare_exchange(&word, 3, 4), Ok(3));
            media.store_volatile(&word, 5);
            assert_eq!(media.compare_exchange_volatile(&word, 5, 6), Ok(5));
            assert_eq!(media.load_volatile(&word), 6);
        }
    }

    /// The detected instruction is the best one that the system reports for the processor.
    #[test]
    fn detection_agrees_with_the_system() {
        // A user-mode emulator shows the file of the host machine.
        let named = if cfg!(target_arch = "x86_64") {
            "flags"
        } else {
            "Features"
        };
        let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let Some(features) = cpu.lines().find(|line| line.starts_with(named)) else {
            return;
        };
        let has = |feature| features.split_whitespace().any(|word| word == feature);
        #[cfg(target_arch = "x86_64")]
        let best = match (has("clwb"), has("clflushopt")) {
            (true, _) => WriteBack::Clwb,
            (_, true) => WriteBack::ClflushOpt,
            _ => WriteBack::Clflush,
        };
        #[cfg(target_arch = "aarch64")]
        let best = if has("dcpop") {
            WriteBack::DcCvap
        } else {
            WriteBack::DcCvac
        };
        assert_eq!(Hardware::detect().write_back_by(), best);
    }
}
