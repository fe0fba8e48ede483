//! The search by vectors.

use super::{Width, portable};
use std::arch::x86_64::*;

/// Masks for loads of 32-bit lanes, of a vector of eight: eight words from `8 - lanes` on.
static LANES: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

/// Up to 32 bytes of `partials` from byte `from` on, padded with zeros.
#[inline]
#[target_feature(enable = "avx2")]
fn load(partials: &[u8], from: usize) -> __m256i {
    let part = &partials[from.min(partials.len())..];
    let lanes = (part.len() / 4).min(8);
    let mask = LANES[8 - lanes..16 - lanes].as_ptr();
    // SAFETY: the slice has eight words.
    let mask = unsafe { _mm256_loadu_si256(mask.cast()) };
    // SAFETY: only the lanes of the mask are read, which are inside `part`.
    unsafe { _mm256_maskload_epi32(part.as_ptr().cast(), mask) }
}

#[target_feature(enable = "avx2,bmi2")]
pub(super) fn subsets_avx2(words: &[u64], masks: &[u64], partials: &[u8], width: Width) -> u64 {
    let dense = portable::dense(words, masks, |word, mask| _pext_u64(word, mask));
    let zero = _mm256_setzero_si256();
    match width {
        Width::One => {
            let dense = _mm256_set1_epi8(dense as i8);
            let lacks = _mm256_andnot_si256(dense, load(partials, 0));
            u64::from(_mm256_movemask_epi8(_mm256_cmpeq_epi8(lacks, zero)) as u32)
        }
        Width::Two => {
            let dense = _mm256_set1_epi16(dense as i16);
            let equal = |from| {
                let lacks = _mm256_andnot_si256(dense, load(partials, from));
                _mm256_cmpeq_epi16(lacks, zero)
            };
            // Packing interleaves the halves of both vectors.
            let packed = _mm256_packs_epi16(equal(0), equal(32));
            let ordered = _mm256_permute4x64_epi64::<0b11_01_10_00>(packed);
            u64::from(_mm256_movemask_epi8(ordered) as u32)
        }
        Width::Four => {
            let dense = _mm256_set1_epi32(dense as i32);
            let mut found = 0;
            for vector in 0..partials.len().div_ceil(32).min(4) {
                let lacks = _mm256_andnot_si256(dense, load(partials, vector * 32));
                let equal = _mm256_castsi256_ps(_mm256_cmpeq_epi32(lacks, zero));
                found |= u64::from(_mm256_movemask_ps(equal) as u32) << (vector * 8);
            }
            found
        }
    }
}

/// The lowest `count` bits, of up to 64.
#[inline(always)]
fn lowest(count: usize) -> u64 {
    u64::MAX.checked_shr(64 - count.min(64) as u32).unwrap_or(0)
}

#[target_feature(enable = "avx512bw,avx512vl,avx2,bmi2")]
pub(super) fn subsets_avx512(words: &[u64], masks: &[u64], partials: &[u8], width: Width) -> u64 {
    let lacking = !portable::dense(words, masks, |word, mask| _pext_u64(word, mask));
    let at = partials.as_ptr();
    match width {
        Width::One => {
            let inside = lowest(partials.len()) as u32;
            // SAFETY: only the bytes of the mask are read, which lie inside.
            let partials = unsafe { _mm256_maskz_loadu_epi8(inside, at.cast()) };
            u64::from(_mm256_testn_epi8_mask(partials, _mm256_set1_epi8(lacking as i8)))
        }
        Width::Two => {
            let inside = lowest(partials.len() / 2) as u32;
            // SAFETY: only the words of the mask are read, which lie inside.
            let partials = unsafe { _mm512_maskz_loadu_epi16(inside, at.cast()) };
            u64::from(_mm512_testn_epi16_mask(
                partials,
                _mm512_set1_epi16(lacking as i16),
            ))
        }
        Width::Four => {
            let lacking = _mm512_set1_epi32(lacking as i32);
            let mut found = 0;
            for (i, half) in partials.chunks(64).take(2).enumerate() {
                let inside = lowest(half.len() / 4) as u16;
                // SAFETY: only the words of the mask are read, which lie inside.
                let half = unsafe { _mm512_maskz_loadu_epi32(inside, half.as_ptr().cast()) };
                found |= u64::from(_mm512_testn_epi32_mask(half, lacking)) << (i * 16);
            }
            found
        }
    }
}
