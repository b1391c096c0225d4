//! Structures of u64 counters, used as arrays.

use std::slice::{from_mut, from_ref};

use bytemuck::{Pod, cast_slice, cast_slice_mut};

/// Combine each counter of `a` with the same counter of `b`.
pub fn combine<T: Pod>(a: &T, b: &T, with: impl Fn(u64, u64) -> u64) -> T {
    let mut combined = *a;
    let words: &mut [u64] = cast_slice_mut(from_mut(&mut combined));
    for (word, &other) in words.iter_mut().zip(cast_slice(from_ref(b))) {
        *word = with(*word, other);
    }
    combined
}

/// Add up the counters of all structures, each with its like.
pub fn total<'a, T: Pod>(all: impl Iterator<Item = &'a T>) -> T {
    all.fold(T::zeroed(), |sum, one| combine(&sum, one, u64::wrapping_add))
}

/// Return the sum of all counters of a structure.
pub fn sum<T: Pod>(counters: &T) -> u64 {
    cast_slice::<T, u64>(from_ref(counters)).iter().sum()
}
