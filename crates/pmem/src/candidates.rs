//! Narrows a search over many slots to those that the caller has to load, eight slots at a time.
//!
//! The caller loads each slot that the search names, and judges the loaded value. It does not look again at a slot
//! that the search leaves out, so leaving one out must rest on a value that a single load of it returned:
//!
//! I1 The load covers the whole word. `vmovdqa` loads two words aligned to 16 bytes by one access on each processor
//!    that has AVX (Intel 64 and IA-32 SDM, volume 3, "Guaranteed Atomic Operations"; AMD64 APM, volume 2, "Access
//!    Atomicity"). Elsewhere the search names all slots.
//! I2 The load acquires: x86-64 keeps loads in order, and an `asm!` that may touch any memory keeps the compiler from
//!    moving others across it.
//! I3 A marked slot is never left out, so a reader that meets it persists it ([`PSlot::load`](crate::PSlot::load)).

#[cfg(target_arch = "x86_64")]
use crate::PSlot;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Maximum number of slots of a search.
pub(crate) const MAX: usize = u64::BITS as usize;

/// A bit for each of `len` slots, up to [`MAX`].
#[inline(always)]
pub(crate) const fn all(len: usize) -> u64 {
    if len >= MAX { u64::MAX } else { (1 << len) - 1 }
}

/// Whether one instruction loads two words atomically on this processor.
pub(crate) fn are_found() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        !cfg!(miri) && is_x86_feature_detected!("avx")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// Slots per step.
#[cfg(target_arch = "x86_64")]
const STEP: usize = 8;

/// Returns a bit for each of the first [`MAX`] of `slots` whose highest 16 bits are `top`. Returns the bits of all of
/// them if one is marked, if there are fewer than [`STEP`], if their number is odd, or if they are not aligned to 16
/// bytes.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx")]
pub(crate) fn find(slots: &[PSlot], top: u16) -> u64 {
    let slots = &slots[..slots.len().min(MAX)];
    let len = slots.len();
    let (Some(first), Some(last)) = (slots.first_chunk(), slots.last_chunk()) else {
        return all(len);
    };
    if !len.is_multiple_of(2) || !slots.as_ptr().addr().is_multiple_of(16) {
        return all(len);
    }
    let wanted = _mm_set1_epi16(top.cast_signed());
    let mut seen = _mm_setzero_si128();
    let mut look_at = |step: &[PSlot; STEP]| {
        let [a, b, c, d] = load(step);
        seen = _mm_or_si128(seen, _mm_or_si128(_mm_or_si128(a, b), _mm_or_si128(c, d)));
        let tops = _mm_packs_epi32(upper_halves(a, b), upper_halves(c, d));
        _mm_cmpeq_epi16(tops, wanted)
    };
    let mut look_at_two = |[first, second]: [&[PSlot; STEP]; 2]| {
        let equal = _mm_packs_epi16(look_at(first), look_at(second));
        u64::from(_mm_movemask_epi8(equal).cast_unsigned())
    };
    // If the length is not a whole number of steps, the last step overlaps the one before: a slot in both is named if
    // either load named it.
    let mut found = 0;
    if let Some(pair) = slots.last_chunk() {
        let pairs = slots.as_chunks().0.iter().enumerate();
        for (i, pair) in pairs {
            found |= look_at_two(steps_of(pair)) << (i * 2 * STEP);
        }
        if !len.is_multiple_of(2 * STEP) {
            found |= look_at_two(steps_of(pair)) << (len - 2 * STEP);
        }
    } else {
        let both = look_at_two([first, last]);
        found = both & all(STEP) | both >> STEP << (len - STEP);
    }
    let marks = _mm_movemask_pd(_mm_castsi128_pd(_mm_slli_epi64::<63>(seen)));
    if marks == 0 { found } else { all(len) }
}

/// Two adjacent steps.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn steps_of(pair: &[PSlot; 2 * STEP]) -> [&[PSlot; STEP]; 2] {
    let steps = pair.as_chunks().0;
    [&steps[0], &steps[1]]
}

/// The highest 16 bits of four words, each sign-extended to 32 bits.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx")]
fn upper_halves(a: __m128i, b: __m128i) -> __m128i {
    let halves = _mm_shuffle_ps::<0b11_01_11_01>(_mm_castsi128_ps(a), _mm_castsi128_ps(b));
    _mm_srai_epi32::<16>(_mm_castps_si128(halves))
}

/// The words of a step, which is aligned to 16 bytes, two by two.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx")]
fn load(step: &[PSlot; STEP]) -> [__m128i; STEP / 2] {
    let (a, b, c, d);
    // SAFETY: it reads the step's 64 bytes, whose alignment the caller has checked.
    unsafe {
        std::arch::asm!(
            "vmovdqa {a}, xmmword ptr [{step}]",
            "vmovdqa {b}, xmmword ptr [{step} + 16]",
            "vmovdqa {c}, xmmword ptr [{step} + 32]",
            "vmovdqa {d}, xmmword ptr [{step} + 48]",
            step = in(reg) step,
            a = out(xmm_reg) a,
            b = out(xmm_reg) b,
            c = out(xmm_reg) c,
            d = out(xmm_reg) d,
            options(nostack, preserves_flags),
        );
    }
    [a, b, c, d]
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::Link;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    #[repr(align(16))]
    struct Aligned([PSlot; MAX + 2]);

    /// The search names exactly the slots that have the highest bits, or all slots: wherever a marked one is, however
    /// many slots there are and wherever they lie.
    #[test]
    fn what_is_left_out_is_nothing_to_a_caller() {
        if !are_found() {
            return;
        }
        let mut state = 7_u64;
        let mut next = |below: usize| {
            state = state
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 24) as usize % below
        };
        let tops = [0, 1, 0x7fff, 0x8000, 0xffff, 0x1234];
        let mut narrowed = 0;
        for round in 0..20_000 {
            let slots = Aligned([const { PSlot::null() }; MAX + 2]);
            for slot in &slots.0 {
                slot.0
                    .store((tops[next(5)] << 48) | (next(1 << 30) as u64) << 4 | 2, Relaxed);
            }
            let from = next(3);
            let slots = &slots.0[from..from + next(MAX + 1)];
            let is_marked = round % 4 == 0 && !slots.is_empty();
            if is_marked {
                slots[next(slots.len())].0.fetch_or(Link::MARK, Relaxed);
            }
            for top in tops {
                let equal = |(i, slot): (usize, &PSlot)| u64::from(slot.0.load(Relaxed) >> 48 == top) << i;
                let exact = slots.iter().enumerate().map(equal).fold(0, |a, b| a | b);
                // SAFETY: the processor has AVX.
                let (found, all) = (unsafe { find(slots, top as u16) }, all(slots.len()));
                let is_searched =
                    slots.len() >= STEP && slots.len().is_multiple_of(2) && from != 1 && !is_marked;
                assert_eq!(
                    found,
                    if is_searched { exact } else { all },
                    "{top:x}, {} from {from}",
                    slots.len()
                );
                narrowed += u32::from(found != all);
            }
        }
        assert!(narrowed > 1_000);
    }

    /// A search beside writers leaves out no slot that keeps the highest bits throughout, whatever the other slots
    /// do.
    #[test]
    fn what_stays_is_named_beside_writers() {
        if !are_found() {
            return;
        }
        let slots = Aligned([const { PSlot::null() }; MAX + 2]);
        let done = AtomicBool::new(false);
        let words = &slots.0[..MAX];
        for slot in words {
            slot.0.store(0xabcd << 48 | 0x20, Relaxed);
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for i in 0..200_000_u64 {
                    let slot = &words[i as usize % MAX];
                    // Every other slot keeps its highest bits.
                    let top = if i % 2 == 0 { 0xabcd } else { i & 0xffff };
                    slot.0.store(top << 48 | i << 4 & 0xffff_fff0, Relaxed);
                }
                done.store(true, Relaxed);
            });
            while !done.load(Relaxed) {
                // SAFETY: the processor has AVX.
                let found = unsafe { find(words, 0xabcd) };
                assert_eq!(found & 0x5555_5555_5555_5555, 0x5555_5555_5555_5555);
            }
        });
    }
}
